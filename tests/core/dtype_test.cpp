#include "gridscope/core/dtype.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace gridscope {
namespace {

TEST(DtypeTable, HasTheTypesOfSafetensorsInItsOrder) {
  std::vector<std::string> names;
  for (const DtypeInfo& info : all_dtypes()) {
    if (info.in_safetensors) names.emplace_back(info.name);
  }
  const std::vector<std::string> expected = {
      "BOOL",    "F4",          "F6_E2M3",     "F6_E3M2", "U8",  "I8",  "F8_E5M2", "F8_E4M3",
      "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I16",     "U16", "F16", "BF16",    "I32",
      "U32",     "F32",         "C64",         "F64",     "I64", "U64"};
  EXPECT_EQ(names, expected);
}

TEST(DtypeTable, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (const DtypeInfo& info : all_dtypes()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(&dtype_info(info.dtype), &info);
    EXPECT_EQ(dtype_name(info.dtype), info.name);
  }
}

TEST(DtypeTable, SafetensorsNamesAreFoundExactly) {
  EXPECT_EQ(safetensors_dtype("BF16"), Dtype::kBF16);
  EXPECT_EQ(safetensors_dtype("F8_E4M3FNUZ"), Dtype::kF8E4M3Fnuz);
  EXPECT_EQ(safetensors_dtype("bf16"), std::nullopt);
  EXPECT_EQ(safetensors_dtype("BF16 "), std::nullopt);
  EXPECT_EQ(safetensors_dtype(""), std::nullopt);
}

TEST(DtypeTable, GgufBlockTypesAreNoSafetensorsTypes) {
  EXPECT_EQ(safetensors_dtype("Q4_0"), std::nullopt);
  EXPECT_EQ(safetensors_dtype("MXFP4"), std::nullopt);
}

TEST(DtypeTable, PlainTypesHoldOneElementOfTheirBits) {
  const auto bits = [](Dtype dtype) {
    EXPECT_FALSE(is_block_type(dtype));
    return dtype_info(dtype).block_bits;
  };
  EXPECT_EQ(bits(Dtype::kF4), 4);
  EXPECT_EQ(bits(Dtype::kF6E2M3), 6);
  EXPECT_EQ(bits(Dtype::kF6E3M2), 6);
  EXPECT_EQ(bits(Dtype::kBool), 8);
  EXPECT_EQ(bits(Dtype::kF8E8M0), 8);
  EXPECT_EQ(bits(Dtype::kBF16), 16);
  EXPECT_EQ(bits(Dtype::kF32), 32);
  EXPECT_EQ(bits(Dtype::kC64), 64);
}

// A block is what its fields take: an f16 scale (and minimum), then the packed numbers.
TEST(DtypeTable, BlocksAreTheSumOfTheirFields) {
  const auto is = [](Dtype dtype, std::uint32_t elements, std::uint32_t bytes) {
    const DtypeInfo& info = dtype_info(dtype);
    return is_block_type(dtype) && info.block_elements == elements && info.block_bits == bytes * 8;
  };
  EXPECT_TRUE(is(Dtype::kQ4_0, 32, 2 + 32 / 2));
  EXPECT_TRUE(is(Dtype::kQ4_1, 32, 2 + 2 + 32 / 2));
  EXPECT_TRUE(is(Dtype::kQ5_0, 32, 2 + 4 + 32 / 2));
  EXPECT_TRUE(is(Dtype::kQ5_1, 32, 2 + 2 + 4 + 32 / 2));
  EXPECT_TRUE(is(Dtype::kQ8_0, 32, 2 + 32));
  EXPECT_TRUE(is(Dtype::kQ2_K, 256, 2 + 2 + 256 / 16 + 256 / 4));
  EXPECT_TRUE(is(Dtype::kQ3_K, 256, 2 + 12 + 256 / 8 + 256 / 4));
  EXPECT_TRUE(is(Dtype::kQ4_K, 256, 2 + 2 + 12 + 256 / 2));
  EXPECT_TRUE(is(Dtype::kQ5_K, 256, 2 + 2 + 12 + 256 / 8 + 256 / 2));
  EXPECT_TRUE(is(Dtype::kQ6_K, 256, 2 + 256 / 16 + 256 / 4 + 256 / 2));
  EXPECT_TRUE(is(Dtype::kQ8_K, 256, 4 + 256 + 2 * 256 / 16));
  EXPECT_TRUE(is(Dtype::kMXFP4, 32, 1 + 32 / 2));
  EXPECT_TRUE(is(Dtype::kNVFP4, 64, 64 / 16 + 64 / 2));
  EXPECT_TRUE(is(Dtype::kQ1_0, 128, 2 + 128 / 8));
  EXPECT_TRUE(is(Dtype::kQ2_0, 64, 2 + 64 / 4));
}

TEST(DtypeTable, EveryBlockIsWholeBytes) {
  for (const DtypeInfo& info : all_dtypes()) {
    EXPECT_EQ(info.in_safetensors, !is_block_type(info.dtype)) << info.name;
    EXPECT_TRUE(info.in_safetensors || info.block_bits % 8 == 0) << info.name;
  }
}

TEST(DtypeTable, PlainFloatsAreThoseOfSixteenBitsAndMore) {
  std::set<std::string_view> names;
  for (const DtypeInfo& info : all_dtypes()) {
    if (is_plain_float(info.dtype)) names.insert(info.name);
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"F16", "BF16", "F32", "F64"}));
}

}  // namespace
}  // namespace gridscope
