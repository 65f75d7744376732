#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gridscope/format/safetensors.hpp"
#include "gridscope/quant/codec.hpp"
#include "quant/fixture_file.hpp"
#include "quant/tiles.hpp"

// Files that the writers themselves made, and what their own dequantizers make of them. (GGUF has
// its files in gguf_decoder_test.cpp.) What a configuration would say stands in the tables here;
// the names of the tensors are those of the writers.

namespace gridscope::quant {
namespace {

constexpr auto kAsStored = WeightSpec::GptqZeros::kAsStored;
constexpr auto kMinusOne = WeightSpec::GptqZeros::kMinusOne;
constexpr auto kPlanar = WeightSpec::GptqPacking::kPlanar;

constexpr auto kWrapped = "gptqmodel/v1-4bit-asym-wrapped";

struct Reference {
  std::string file;  // below fixtures/quant, without its ending
  WeightSpec like;
};

void PrintTo(const Reference& reference, std::ostream* out) {
  *out << reference.file;
}

// ---- the files ----------------------------------------------------------------------------------

std::vector<Reference> compressed_tensors_integers() {
  const auto packed = [](const std::string& name, std::uint32_t bits, std::int64_t group_size = 32,
                         bool symmetric = true) {
    const bool old = name.starts_with("v0");
    return Reference{
        "compressed-tensors/" + name,
        {.scheme = Scheme::kCtPackQuantized,
         .bits = bits,
         .group_size = group_size,
         .symmetric = symmetric,
         .ct_packing = old ? WeightSpec::CtPacking::kWholeCodes : WeightSpec::CtPacking::kDense}};
  };
  const auto integers = [](const std::string& name, WeightSpec like) {
    like.scheme = Scheme::kCtInt;
    return Reference{"compressed-tensors/" + name, std::move(like)};
  };
  return {
      packed("packed1-sym", 1),
      packed("packed2-sym", 2),
      packed("packed3-sym", 3),
      packed("packed4-sym", 4),
      packed("packed5-sym", 5),
      packed("packed6-sym", 6),
      packed("packed7-sym", 7),
      packed("packed8-sym", 8),
      packed("packed3-asym", 3, 32, false),
      packed("packed4-asym", 4, 32, false),
      packed("packed8-asym", 8, 32, false),
      packed("packed4-channel", 4, -1),
      packed("packed4-channel-asym", 4, -1, false),
      packed("packed4-tensor", 4, 0),
      packed("packed4-tensor-asym", 4, 0, false),
      packed("v0.16-packed3-sym", 3),
      packed("v0.16-packed5-sym", 5),
      packed("v0.16-packed6-sym", 6),
      packed("v0.16-packed7-sym", 7),
      packed("v0.16-packed3-asym", 3, 32, false),
      packed("v0.16-packed4-g_idx", 4),
      packed("v0.9-packed4-asym", 4, 32, false),
      integers("int8-channel", {.bits = 8, .group_size = -1, .symmetric = true}),
      integers("int8-channel-asym", {.bits = 8, .group_size = -1, .symmetric = false}),
      integers("naive4-group", {.bits = 4, .group_size = 32, .symmetric = true}),
      integers("v0.16-int8-g_idx", {.bits = 8, .group_size = 32, .symmetric = false}),
  };
}

std::vector<Reference> compressed_tensors_floats() {
  return {
      {"compressed-tensors/fp8-tensor", {.scheme = Scheme::kCtFloat, .bits = 8}},
      {"compressed-tensors/fp8-channel", {.scheme = Scheme::kCtFloat, .bits = 8, .group_size = -1}},
      {"compressed-tensors/fp8-block", {.scheme = Scheme::kCtFloat, .bits = 8, .block = {8, 48}}},
      {"compressed-tensors/nvfp4", {.scheme = Scheme::kCtNvfp4, .bits = 4, .group_size = 16}},
      {"compressed-tensors/mxfp4", {.scheme = Scheme::kCtMxfp4, .bits = 4, .group_size = 32}},
      {"compressed-tensors/mxfp8", {.scheme = Scheme::kCtMxfp8, .bits = 8, .group_size = 32}},
      {"compressed-tensors/v0.9-sparse-bitmask", {.scheme = Scheme::kCtSparse}},
      {"compressed-tensors/v0.9-sparse-24-bitmask", {.scheme = Scheme::kCtSparse}},
  };
}

std::vector<Reference> autoawq() {
  const auto awq = [](const std::string& name, Scheme scheme, std::int64_t group_size) {
    return Reference{"autoawq/" + name,
                     {.scheme = scheme, .bits = 4, .group_size = group_size, .symmetric = false}};
  };
  return {
      awq("gemm-g32", Scheme::kAwqGemm, 32),
      awq("gemm-row", Scheme::kAwqGemm, -1),
      awq("gemv-g32", Scheme::kAwqGemv, 32),
      awq("gemv-g64", Scheme::kAwqGemv, 64),
      awq("gemv-g128", Scheme::kAwqGemv, 128),
      awq("gemv-fast-g64", Scheme::kAwqGemvFast, 64),
      awq("gemv-fast-g128", Scheme::kAwqGemvFast, 128),
  };
}

std::vector<Reference> gptqmodel() {
  const auto gptq = [](const std::string& name, std::uint32_t bits, std::int64_t group_size = 32) {
    WeightSpec like = {.scheme = Scheme::kGptq, .bits = bits, .group_size = group_size};
    like.symmetric = name.find("asym") == std::string::npos;
    like.act_order = name.find("act-order") != std::string::npos;
    like.gptq_zeros = name.starts_with("v1") ? kMinusOne : kAsStored;
    if (name.starts_with("planar")) like.gptq_packing = kPlanar;
    return Reference{"gptqmodel/" + name, std::move(like)};
  };
  return {
      gptq("v1-2bit-sym", 2),
      gptq("v1-3bit-sym", 3),
      gptq("v1-4bit-sym", 4),
      gptq("v1-8bit-sym", 8),
      gptq("v1-3bit-asym", 3),
      gptq("v1-4bit-asym", 4),
      gptq("v1-4bit-asym-channel", 4, -1),
      gptq("v1-4bit-sym-act-order", 4, 16),
      gptq("v2-2bit-asym", 2),
      gptq("v2-3bit-asym", 3),
      gptq("v2-4bit-asym-act-order", 4, 16),
      gptq("v2-8bit-asym", 8),
      gptq("planar-3bit-asym", 3),
      gptq("planar-5bit-sym", 5),
      gptq("planar-6bit-asym", 6),
      gptq("planar-7bit-sym", 7),
      gptq("v1-2bit-sym-int8", 2),
      gptq("v1-4bit-asym-int16-act-order", 4, 16),
  };
}

std::vector<Reference> mlx() {
  const auto affine = [](const std::string& name, std::uint32_t bits, std::int64_t group_size) {
    return Reference{"mlx/" + name,
                     {.scheme = Scheme::kMlxAffine, .bits = bits, .group_size = group_size}};
  };
  return {
      affine("affine2-g32-f16", 2, 32),
      affine("affine3-g32-bf16", 3, 32),
      affine("affine4-g32-bf16", 4, 32),
      affine("affine4-g64-f16", 4, 64),
      affine("affine4-g128-f32", 4, 128),
      affine("affine5-g64-bf16", 5, 64),
      affine("affine6-g64-f16", 6, 64),
      affine("affine8-g32-bf16", 8, 32),
      affine("affine8-g128-f16", 8, 128),
      {"mlx/mxfp4", {.scheme = Scheme::kMlxFp, .bits = 4, .group_size = 32}},
      {"mlx/mxfp8", {.scheme = Scheme::kMlxFp, .bits = 8, .group_size = 32}},
      {"mlx/nvfp4", {.scheme = Scheme::kMlxFp, .bits = 4, .group_size = 16}},
      {"mlx/nvfp4-global", {.scheme = Scheme::kMlxFp, .bits = 4, .group_size = 16}},
  };
}

std::vector<Reference> bitsandbytes() {
  return {
      {"bitsandbytes/nf4", {.scheme = Scheme::kBnbNf4}},
      {"bitsandbytes/nf4-block128", {.scheme = Scheme::kBnbNf4}},
      {"bitsandbytes/nf4-nested", {.scheme = Scheme::kBnbNf4}},
      {"bitsandbytes/nf4-bf16-storage", {.scheme = Scheme::kBnbNf4}},
      {"bitsandbytes/fp4", {.scheme = Scheme::kBnbFp4}},
      {"bitsandbytes/fp4-nested", {.scheme = Scheme::kBnbFp4}},
      {"bitsandbytes/int8", {.scheme = Scheme::kBnbInt8}},
  };
}

std::vector<Reference> all_references() {
  std::vector<Reference> all;
  for (auto references : {compressed_tensors_integers(), compressed_tensors_floats(), autoawq(),
                          gptqmodel(), mlx(), bitsandbytes()}) {
    std::ranges::move(references, std::back_inserter(all));
  }
  return all;
}

// ---- reading them -------------------------------------------------------------------------------

struct PartName {
  std::string_view name;
  Companion companion;
};

constexpr auto kParts = std::to_array<PartName>({
    {"weight_packed", Companion::kCodes},
    {"weight", Companion::kCodes},
    {"compressed", Companion::kCodes},
    {"qweight", Companion::kCodes},
    {"weight_scale", Companion::kScale},
    {"scales", Companion::kScale},
    {"weight.absmax", Companion::kScale},
    {"SCB", Companion::kScale},
    {"weight_zero_point", Companion::kZeroPoint},
    {"qzeros", Companion::kZeroPoint},
    {"biases", Companion::kOffset},
    {"weight_g_idx", Companion::kGroupIndex},
    {"g_idx", Companion::kGroupIndex},
    {"weight_shape", Companion::kShape},
    {"shape", Companion::kShape},
    {"weight_global_scale", Companion::kGlobalScale},
    {"global_scale", Companion::kGlobalScale},
    {"weight.quant_map", Companion::kQuantMap},
    {"weight.quant_state.bitsandbytes__nf4", Companion::kQuantState},
    {"weight.quant_state.bitsandbytes__fp4", Companion::kQuantState},
    {"weight.nested_absmax", Companion::kNestedScale},
    {"weight.nested_quant_map", Companion::kNestedQuantMap},
    {"weight_format", Companion::kWeightFormat},
    {"bitmask", Companion::kBitmask},
    {"row_offsets", Companion::kRowOffsets},
});

struct Fixture {
  WeightSpec spec;
  Dtype dtype = Dtype::kF32;  // of what is expected
  std::vector<double> expected = {};
};

void add_tensor(const format::TensorInfo& info, std::vector<std::byte> bytes, Fixture& fixture) {
  if (info.name == "expected") {
    fixture.dtype = info.dtype;
    fixture.expected.resize(info.elements());
    load_numbers(info.dtype, bytes, fixture.expected);
    return;
  }
  const auto part = std::ranges::find(kParts, std::string_view(info.name), &PartName::name);
  ASSERT_NE(part, kParts.end()) << info.name;
  fixture.spec[part->companion] =
      StoredTensor{.dtype = info.dtype, .shape = info.shape, .data = std::move(bytes)};
}

Fixture read_fixture(const Reference& reference) {
  Fixture fixture = {.spec = reference.like};
  fixture.spec.name = reference.file;
  NullObserver observer;
  const auto source = open_fixture(reference.file + ".safetensors", observer);
  if (source == nullptr) return fixture;
  const auto table = format::read_safetensors_header(*source);
  EXPECT_THAT(table, test::IsOk());
  if (!table) return fixture;
  for (const format::TensorInfo& info : table->tensors) {
    add_tensor(info, read_tensor(*source, info), fixture);
  }
  return fixture;
}

// ---- tests --------------------------------------------------------------------------------------

class ReferenceWriter : public ::testing::TestWithParam<Reference> {};

// What is expected is the writer's result in the type of the scales, or in F32 where the writer
// rounds no more than once to it. Rounded to that type once, our exact values are the same.
// (compressed-tensors with NVFP4, MLX with a global scale and bitsandbytes with int8 round in 32
// bits more often: their results are kept in 16 bits.)
TEST_P(ReferenceWriter, MeansTheSameWeights) {
  const Fixture fixture = read_fixture(GetParam());
  const RowBlock block = decoded(fixture.spec);
  ASSERT_EQ(block.values.size(), fixture.expected.size());
  ASSERT_FALSE(block.values.empty());
  for (std::size_t i = 0; i < block.values.size(); ++i) {
    ASSERT_EQ(rounded_to(fixture.dtype, block.values[i]), fixture.expected[i])
        << "row " << i / block.columns << ", column " << i % block.columns;
  }
}

// What is written as it should be is nothing to remark on.
TEST_P(ReferenceWriter, LeavesNothingToRemarkOn) {
  const Fixture fixture = read_fixture(GetParam());
  const auto decoder = decoder_of(fixture.spec);
  ASSERT_NE(decoder, nullptr);
  const OwnedTile owned =
      cut_tile(*decoder, fixture.spec, {.first = 0, .count = decoder->layout().rows});
  EXPECT_THAT(decoder->layout().remarks, ::testing::IsEmpty());
  EXPECT_EQ(decoder->remark_on(owned.tile), "");
}

INSTANTIATE_TEST_SUITE_P(Files, ReferenceWriter, ::testing::ValuesIn(all_references()),
                         [](const auto& test) {
                           std::string name = test.param.file;
                           std::ranges::replace_if(
                               name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

// Version 1 stores zero points less one, and GPTQModel subtracts from whole words: a zero point of
// 0 takes one more from its neighbour, the next output. Others subtract from each by itself, and
// that is how all are read here; the remark says what that does to files like this one.
TEST(ReferenceWriters, AZeroPointOfZeroOfGptqModelIsRemarkedOn) {
  const Fixture fixture = read_fixture(
      {kWrapped, {.scheme = Scheme::kGptq, .bits = 4, .group_size = 64, .symmetric = false}});
  const auto decoder = decoder_of(fixture.spec);
  ASSERT_NE(decoder, nullptr);
  const RowBlock block = decoded(fixture.spec);
  ASSERT_EQ(block.values.size(), fixture.expected.size());
  for (std::uint64_t row = 0; row < block.rows; ++row) {
    const bool after_zero = row == 6 || row == 19;  // 5 and 18 have a zero point of 0
    const double step = after_zero ? block.scales[row] : 0.0;
    for (std::uint64_t k = 0; k < block.columns; ++k) {
      const std::uint64_t at = row * block.columns + k;
      ASSERT_EQ(rounded_to(fixture.dtype, block.values[at] - step), fixture.expected[at]) << row;
    }
  }
  const auto remark_of = [&](RowRange rows) {
    return decoder->remark_on(cut_tile(*decoder, fixture.spec, rows).tile);
  };
  EXPECT_THAT(remark_of({.first = 4, .count = 4}),
              ::testing::HasSubstr("some of its zero points are 0"));
  EXPECT_EQ(remark_of({.first = 6, .count = 12}), "");
}

TEST(ReferenceWriters, NoFileOfTheirsIsLeftOut) {
  std::set<std::string> tested = {kWrapped};
  for (const Reference& reference : all_references()) tested.insert(reference.file);
  std::set<std::string> stored;
  const std::filesystem::path root = std::string(GRIDSCOPE_FIXTURES) + "/quant";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".safetensors") continue;
    stored.insert(entry.path().lexically_relative(root).replace_extension().generic_string());
  }
  EXPECT_EQ(tested, stored);
}

}  // namespace
}  // namespace gridscope::quant
