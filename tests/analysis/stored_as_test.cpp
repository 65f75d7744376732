#include "gridscope/analysis/stored_as.hpp"

#include <gtest/gtest.h>

namespace gridscope::analysis {
namespace {

using model::Scheme;

TEST(StorageKind, OfPlainTensorsIsTheirType) {
  EXPECT_EQ(describe(StorageKind{.dtype = Dtype::kBF16}), "BF16");
  EXPECT_EQ(describe(StorageKind{.scheme = Scheme::kUnknown, .dtype = Dtype::kU8}),
            "U8 of unknown packing");
  EXPECT_EQ(describe(StorageKind{.scheme = Scheme::kGgufBlock, .bits = 4, .dtype = Dtype::kQ4_K}),
            "Q4_K");
}

TEST(StorageKind, OfCodesNamesBitsGroupAndScales) {
  EXPECT_EQ(describe(StorageKind{.scheme = Scheme::kCtPackQuantized,
                                 .bits = 4,
                                 .group_size = 32,
                                 .dtype = Dtype::kI32,
                                 .scales = Dtype::kBF16}),
            "int4 g32, BF16 scales");
  EXPECT_EQ(describe(StorageKind{.scheme = Scheme::kCtInt, .bits = 8, .group_size = -1}),
            "int8 per row");
  EXPECT_EQ(describe(StorageKind{.scheme = Scheme::kFp8Scaled, .bits = 8, .scales = Dtype::kF32}),
            "fp8, F32 scales");
  EXPECT_EQ(describe(StorageKind{
                .scheme = Scheme::kCtNvfp4, .bits = 4, .group_size = 16, .scales = Dtype::kF8E4M3}),
            "nvfp4 g16, F8_E4M3 scales");
  EXPECT_EQ(describe(StorageKind{.scheme = Scheme::kBnbNf4, .bits = 4, .group_size = 64}),
            "nf4 g64");
}

TEST(StorageKind, OfTorchAoGoesByTheTypeOfTheCodes) {
  EXPECT_EQ(describe(StorageKind{.scheme = Scheme::kTorchAo, .bits = 8, .dtype = Dtype::kF8E4M3}),
            "torchao fp8");
  EXPECT_EQ(describe(StorageKind{.scheme = Scheme::kTorchAo, .bits = 8, .dtype = Dtype::kI8}),
            "torchao int8");
}

TEST(StorageKind, OfCodesOfUnknownWidthLeavesTheNumberOut) {
  EXPECT_EQ(describe(StorageKind{.scheme = Scheme::kGptq, .group_size = 128}), "int g128");
}

TEST(StorageMix, IsEmptyForNothing) {
  EXPECT_EQ(describe(StorageMix{}), "");
}

TEST(StorageMix, NamesTheLargestFirst) {
  const StorageMix mix = {{{.dtype = Dtype::kF32}, 10}, {{.dtype = Dtype::kBF16}, 20}};
  EXPECT_EQ(describe(mix), "BF16 + F32");
}

TEST(StorageMix, CountsWhatItDoesNotName) {
  const StorageMix mix = {{{.dtype = Dtype::kF32}, 5},
                          {{.dtype = Dtype::kBF16}, 4},
                          {{.dtype = Dtype::kF16}, 3},
                          {{.dtype = Dtype::kI64}, 2},
                          {{.dtype = Dtype::kU8}, 1}};
  EXPECT_EQ(describe(mix), "F32 + BF16 + F16 + 2 more");
}

TEST(IsCoded, TellsCodesFromPlainValues) {
  EXPECT_FALSE(is_coded(Scheme::kPlain));
  EXPECT_FALSE(is_coded(Scheme::kGgufBlock));
  EXPECT_FALSE(is_coded(Scheme::kUnknown));
  EXPECT_TRUE(is_coded(Scheme::kAwqGemm));
  EXPECT_TRUE(is_coded(Scheme::kFp8Block));
}

}  // namespace
}  // namespace gridscope::analysis
