#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "gridscope/format/gguf.hpp"
#include "quant/any_weight.hpp"
#include "quant/cross_vector.hpp"
#include "quant/fixture_file.hpp"
#include "quant/int4_tiles.hpp"
#include "quant/tiles.hpp"

namespace gridscope::quant {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

WeightSpec gguf(const std::string& type = "") {
  return {.name = "blk.0.attn_q", .scheme = Scheme::kGgufBlock, .format = type};
}

// `rows` rows of `blocks` blocks of zeros.
WeightSpec zeros(Dtype dtype, std::uint64_t rows = 1, std::uint64_t blocks = 1) {
  const DtypeInfo& info = dtype_info(dtype);
  WeightSpec spec = gguf();
  StoredTensor codes = {.dtype = dtype, .shape = {rows, blocks * info.block_elements}};
  codes.data.resize(rows * blocks * info.block_bits / 8);
  spec[Companion::kCodes] = std::move(codes);
  return spec;
}

void put(WeightSpec& spec, std::size_t offset, std::initializer_list<int> bytes) {
  auto& data = spec[Companion::kCodes].value().data;
  for (const int byte : bytes) data.at(offset++) = static_cast<std::byte>(byte);
}

// ---- vectors ------------------------------------------------------------------------------------

TEST(GgufDecoder, ReadsTheVector) {
  const WeightSpec spec = packed(cross_weight(), gguf("Q4_0"));
  const RowBlock block = decoded(spec);
  EXPECT_EQ(block.values, weights_of(cross_weight()));
  EXPECT_EQ(block.levels, cross_weight().levels);
  EXPECT_EQ(block.scales, cross_weight().scales);
  EXPECT_THAT(block.zeros, IsEmpty());
  expect_any_rows_agree(spec);
  expect_int4_agrees(spec);
  expect_whole_is_contiguous(spec);
  const auto decoder = decoder_of(spec);
  EXPECT_EQ(decoder->layout().groups.size(), 32);
  EXPECT_EQ(decoder->layout().scale_dtype, Dtype::kF16);
  EXPECT_EQ(decoder->layout().lowest_level, -8);
  EXPECT_EQ(decoder->layout().highest_level, 7);
}

TEST(GgufDecoder, ReadsTheVectorWithMinima) {
  const WeightSpec spec = packed(cross_weight(), gguf("Q4_1"));
  const RowBlock block = decoded(spec);
  EXPECT_EQ(block.values, weights_of(cross_weight()));
  EXPECT_EQ(block.levels, cross_weight().levels);
  EXPECT_THAT(block.zeros, Each(0));
  expect_int4_agrees(spec);
}

TEST(GgufDecoder, ReadsTheWorkedExample) {
  WeightSpec spec = zeros(Dtype::kQ4_0);
  put(spec, 0, {0x66, 0x2E, 0x8F});
  const RowBlock block = decoded(spec);
  EXPECT_EQ(block.values[0], 7 * 0.0999755859375);
  EXPECT_EQ(block.values[16], 0.0);
}

// 1.5 * 20 * c - 0.5 * 7 in the second group.
TEST(GgufDecoder, ReadsScalesAndMinimaOfQ4K) {
  WeightSpec spec = zeros(Dtype::kQ4_K);
  put(spec, 0, {0x00, 0x3E, 0x00, 0x38});
  put(spec, 4, {0x01, 0x54, 0xA1, 0xFF, 0x02, 0x47, 0x9F, 0xFC, 0xB5, 0x92, 0x68, 0xFE, 0xA3});
  const RowBlock block = decoded(spec);
  EXPECT_EQ(block.values[0], 1.5 * 3 - 1.0);
  EXPECT_EQ(block.values[32], 30.0 * 10 - 3.5);
  EXPECT_EQ(block.levels[32], 2);
  EXPECT_EQ(block.scales[1], 30.0);
  EXPECT_EQ(block.zeros[1], -8);
  EXPECT_FALSE(offers_int4(spec));
}

TEST(GgufDecoder, ReadsTypesThatTheFixturesDoNotHave) {
  WeightSpec signs = zeros(Dtype::kQ1_0);
  put(signs, 0, {0x00, 0x38, 0b00000010});
  const RowBlock one = decoded(signs);
  EXPECT_EQ(one.values[0], -0.5);
  EXPECT_EQ(one.values[1], 0.5);
  EXPECT_EQ(one.levels[0], -1);
  EXPECT_EQ(one.levels[1], 1);
  WeightSpec pairs = zeros(Dtype::kQ2_0);
  put(pairs, 0, {0x00, 0x38, 0b11100100});
  const RowBlock two = decoded(pairs);
  EXPECT_EQ(part_of(two.values, 4, {.first = 0, .count = 1}), (std::vector{-0.5, 0.0, 0.5, 1.0}));
}

// ---- files of the reference ---------------------------------------------------------------------

struct Fixture {
  WeightSpec spec;
  std::vector<double> expected;
};

Fixture read_fixture(const std::string& name) {
  Fixture fixture;
  NullObserver observer;
  const auto source = open_fixture("gguf/" + name + ".gguf", observer);
  if (source == nullptr) return fixture;
  const auto header = format::read_gguf_header(*source);
  EXPECT_THAT(header, test::IsOk());
  if (!header) return fixture;
  for (const format::TensorInfo& info : header->table.tensors) {
    std::vector<std::byte> bytes = read_tensor(*source, info);
    if (info.name == "expected") {
      fixture.expected.resize(info.elements());
      load_numbers(info.dtype, bytes, fixture.expected);
      continue;
    }
    fixture.spec.name = name;
    fixture.spec.scheme = is_block_type(info.dtype) ? Scheme::kGgufBlock : Scheme::kPlain;
    fixture.spec[Companion::kCodes] =
        StoredTensor{.dtype = info.dtype, .shape = info.shape, .data = std::move(bytes)};
  }
  return fixture;
}

class GgufReference : public ::testing::TestWithParam<std::string> {};

// The reference computes in 32-bit floats and rounds no more than once: the sum with a minimum, or
// the product of 25 bits in Q6_K. Rounded once, our exact values are the same; the other types do
// not need it.
TEST_P(GgufReference, MeansTheSameWeights) {
  static const std::set<std::string, std::less<>> kRounded = {"q2_k", "q4_1", "q4_k",
                                                              "q5_1", "q5_k", "q6_k"};
  const Fixture fixture = read_fixture(GetParam());
  const RowBlock block = decoded(fixture.spec);
  ASSERT_EQ(block.values.size(), fixture.expected.size());
  const bool exact = !kRounded.contains(GetParam());
  for (std::size_t i = 0; i < block.values.size(); ++i) {
    const double value = exact ? block.values[i] : rounded_to(Dtype::kF32, block.values[i]);
    ASSERT_EQ(value, fixture.expected[i]) << i;
  }
  expect_any_rows_agree(fixture.spec);
  expect_whole_is_contiguous(fixture.spec);
}

// Levels and scales say what the values do; zero points as nearly as a level can.
TEST_P(GgufReference, LevelsTellTheValues) {
  static const std::set<std::string, std::less<>> kUneven = {"iq4_nl", "iq4_xs", "mxfp4", "nvfp4"};
  const WeightSpec spec = read_fixture(GetParam()).spec;
  const auto decoder = decoder_of(spec);
  ASSERT_NE(decoder, nullptr);
  const WeightLayout& layout = decoder->layout();
  const RowBlock block = decoded(spec);
  if (kUneven.contains(GetParam()) || block.levels.empty()) return;
  for (std::size_t i = 0; i < block.values.size(); ++i) {
    const std::size_t term = i / layout.groups.size();
    const int zero = block.zeros.empty() ? 0 : block.zeros[term];
    const double scale = block.scales[term];
    const double tolerance = block.zeros.empty() ? 0.0 : std::abs(scale) / 2;
    ASSERT_GE(block.levels[i], layout.lowest_level);
    ASSERT_LE(block.levels[i], layout.highest_level);
    if (scale == 0.0) continue;  // no step, no zero point
    ASSERT_NEAR((block.levels[i] - zero) * scale, block.values[i], tolerance) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GgufReference,
                         ::testing::Values("bf16", "f16", "iq4_nl", "iq4_xs", "mxfp4", "nvfp4",
                                           "q2_k", "q3_k", "q4_0", "q4_1", "q4_k", "q5_0", "q5_1",
                                           "q5_k", "q6_k", "q8_0", "tq2_0"),
                         [](const auto& name) { return name.param; });

TEST(GgufDecoder, OffersKernelsTheFilesOfTheReference) {
  expect_int4_agrees(read_fixture("q4_0").spec);
  for (const char* name : {"q4_k", "q8_0", "iq4_nl", "mxfp4", "tq2_0"}) {
    EXPECT_FALSE(offers_int4(read_fixture(name).spec)) << name;
  }
}

// ---- the scale beside NVFP4 ---------------------------------------------------------------------

TEST(GgufDecoder, MultipliesWithTheScaleOfTheWeight) {
  WeightSpec spec = zeros(Dtype::kNVFP4, 2);
  auto& codes = spec[Companion::kCodes].value();
  codes.shape = {2, 1, 64};
  put(spec, 0, {0x38, 0, 0, 0, 0x0F});   // 1, -6
  put(spec, 36, {0x3C, 0, 0, 0, 0x20});  // 1.5, 1 as element 8
  EXPECT_EQ(decoded(spec).values[0], -6.0);
  const double third = rounded_to(Dtype::kF32, 1.0 / 3.0);
  spec[Companion::kGlobalScale] = floats_of(Dtype::kF32, {1}, {third});
  EXPECT_EQ(decoded(spec).values[0], -6 * third);
  EXPECT_EQ(decoded(spec).scales[0], third);
  spec[Companion::kGlobalScale] = floats_of(Dtype::kF32, {2}, {2.0, third});
  EXPECT_EQ(decoded(spec).values[0], -12.0);
  EXPECT_EQ(decoded(spec).values[64 + 8], 1.5 * third);
  expect_any_rows_agree(spec);
}

TEST(GgufDecoder, RefusesAScaleThatDoesNotBelong) {
  WeightSpec spec = zeros(Dtype::kNVFP4, 2);
  spec[Companion::kGlobalScale] = floats_of(Dtype::kF32, {2}, {1.0, 1.0});
  EXPECT_THAT(make_decoder(spec), test::Fails(ErrorCode::kCorrupt,
                                              HasSubstr("global scale has 2 numbers, expected 1")));
  spec[Companion::kGlobalScale] =
      floats_of(Dtype::kF32, {1}, {std::numeric_limits<double>::infinity()});
  EXPECT_THAT(make_decoder(spec),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("its global scale is inf")));
  spec[Companion::kGlobalScale] = floats_of(Dtype::kBF16, {1}, {1.0});
  EXPECT_THAT(make_decoder(spec), test::Fails(ErrorCode::kCorrupt,
                                              HasSubstr("global scale is BF16 [1], expected F32")));
}

// ---- what is refused ----------------------------------------------------------------------------

struct BadFactor {
  Dtype dtype;
  std::size_t offset;  // in the block
  std::initializer_list<int> bytes;
  std::string message;
};

TEST(GgufDecoder, NamesTheBlockOfAFactorThatIsNone) {
  const BadFactor cases[] = {
      {Dtype::kQ4_0, 0, {0x00, 0x7C}, "scale of row 1, block 2 is inf"},
      {Dtype::kQ8_0, 0, {0x00, 0xFC}, "scale of row 1, block 2 is -inf"},
      {Dtype::kQ5_1, 2, {0x00, 0x7C}, "offset of row 1, block 2 is inf"},
      {Dtype::kQ2_K, 82, {0x00, 0x7C}, "offset of row 1, block 2 is"},
      {Dtype::kQ3_K, 108, {0x00, 0x7C}, "scale of row 1, block 2 is -inf"},
      {Dtype::kQ4_K, 0, {0x01, 0x7C}, "scale of row 1, block 2 is"},
      {Dtype::kQ5_K, 2, {0x01, 0xFE}, "offset of row 1, block 2 is"},
      {Dtype::kQ6_K, 208, {0x01, 0xFE}, "scale of row 1, block 2 is"},
      {Dtype::kTQ2_0, 64, {0x00, 0x7C}, "scale of row 1, block 2 is inf"},
      {Dtype::kIQ4_XS, 0, {0x00, 0x7C}, "scale of row 1, block 2 is -inf"},
      {Dtype::kMXFP4, 0, {0xFF}, "scale of row 1, block 2 is"},
  };
  for (const BadFactor& bad : cases) {
    WeightSpec spec = zeros(bad.dtype, 2, 3);
    const std::size_t block_bytes = dtype_info(bad.dtype).block_bits / 8;
    EXPECT_THAT(decode_all(spec), test::IsOk());
    put(spec, 5 * block_bytes + bad.offset, bad.bytes);
    EXPECT_THAT(decode_all(spec), test::Fails(ErrorCode::kCorrupt, HasSubstr(bad.message)))
        << dtype_name(bad.dtype);
  }
}

TEST(GgufDecoder, RefusesByNameWhatIsOnlyIdentified) {
  for (const Dtype dtype :
       {Dtype::kQ8_1, Dtype::kQ8_K, Dtype::kIQ1_S, Dtype::kIQ1_M, Dtype::kIQ2_XXS, Dtype::kIQ2_XS,
        Dtype::kIQ2_S, Dtype::kIQ3_XXS, Dtype::kIQ3_S, Dtype::kTQ1_0}) {
    const std::string message =
        "type " + std::string(dtype_name(dtype)) + " is recognised, but not decoded";
    EXPECT_THAT(make_decoder(zeros(dtype)),
                test::Fails(ErrorCode::kUnsupported, HasSubstr(message)));
  }
}

TEST(GgufDecoder, RefusesWhatAreNoBlocks) {
  WeightSpec spec = zeros(Dtype::kQ4_0);
  spec[Companion::kCodes].value().shape = {1, 48};
  EXPECT_THAT(make_decoder(spec),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("rows of 48 weights are no whole blocks "
                                                         "of 32")));
  spec[Companion::kCodes].value().shape = {0, 32};
  EXPECT_THAT(make_decoder(spec),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("it holds no weights")));
  spec[Companion::kCodes] = floats_of(Dtype::kF16, {1, 2}, {1, 2});
  EXPECT_THAT(make_decoder(spec),
              test::Fails(ErrorCode::kCorrupt,
                          HasSubstr("its codes are F16 [1, 2], expected a block type")));
  spec[Companion::kCodes].reset();
  EXPECT_THAT(make_decoder(spec),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("its codes is missing")));
}

// ---- properties ---------------------------------------------------------------------------------

RC_GTEST_PROP(GgufDecoder, DecodesWhatWasPacked, ()) {
  struct PackedType {
    const char* name;
    std::uint32_t bits;
    Zeros zeros;
  };
  const auto type = *rc::gen::elementOf(std::vector<PackedType>{{"Q4_0", 4, Zeros::kNone},
                                                                {"Q4_1", 4, Zeros::kAny},
                                                                {"Q5_0", 5, Zeros::kNone},
                                                                {"Q5_1", 5, Zeros::kNone},
                                                                {"Q8_0", 8, Zeros::kNone}});
  const LeveledWeight weight = any_weight({.rows = *rc::gen::inRange<std::uint64_t>(1, 5),
                                           .columns = 32 * *rc::gen::inRange<std::uint64_t>(1, 4),
                                           .bits = type.bits,
                                           .group_size = 32},
                                          type.zeros);
  const WeightSpec spec = packed(weight, gguf(type.name));
  const RowBlock block = decoded(spec);
  RC_ASSERT(block.values == weights_of(weight));
  RC_ASSERT(block.levels == weight.levels);
  RC_ASSERT(block.scales == weight.scales);
  expect_any_rows_agree(spec);
  if (type.bits == 4) expect_int4_agrees(spec);
}

}  // namespace
}  // namespace gridscope::quant
