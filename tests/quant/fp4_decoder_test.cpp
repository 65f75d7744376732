#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "quant/any_weight.hpp"
#include "quant/cross_vector.hpp"
#include "quant/tiles.hpp"

namespace gridscope::quant {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Kind {
  Scheme scheme;
  std::uint64_t group_size;
  std::uint32_t bits;
};

constexpr std::array kKinds = {Kind{Scheme::kCtNvfp4, 16, 4},       Kind{Scheme::kCtMxfp4, 32, 4},
                               Kind{Scheme::kModelOptNvfp4, 16, 4}, Kind{Scheme::kPackedFp4, 32, 4},
                               Kind{Scheme::kGptOssMxfp4, 32, 4},   Kind{Scheme::kMlxFp, 32, 4},
                               Kind{Scheme::kMlxFp, 16, 4},         Kind{Scheme::kMlxFp, 32, 8}};

WeightSpec fp(const Kind& kind) {
  return {.name = "q_proj", .scheme = kind.scheme, .bits = kind.bits};
}

// Levels that E2M1 has, scales that E8M0 and E4M3 have.
LeveledWeight small_weight(const Kind& kind) {
  constexpr std::array<std::int16_t, 11> kLevels = {0, 1, 2, 3, 4, 6, -1, -2, -3, -4, -6};
  LeveledWeight weight = {
      .rows = 6, .columns = 64, .bits = kind.bits, .group_size = kind.group_size};
  for (std::size_t i = 0; i < 6 * 64; ++i) weight.levels.push_back(kLevels[i * 7 % 11]);
  for (std::size_t i = 0; i < 6 * 64 / kind.group_size; ++i) {
    weight.scales.push_back(std::ldexp(1.0, static_cast<int>(i % 9) - 5));
  }
  return weight;
}

TEST(Fp4Decoder, DecodesWhatWasPackedInEveryFormat) {
  for (const Kind& kind : kKinds) {
    const LeveledWeight weight = small_weight(kind);
    const WeightSpec spec = packed(weight, fp(kind));
    const RowBlock block = decoded(spec);
    EXPECT_EQ(block.values, weights_of(weight)) << scheme_key(kind.scheme);
    EXPECT_EQ(block.scales, weight.scales);
    EXPECT_THAT(block.zeros, IsEmpty());
    expect_any_rows_agree(spec);
    expect_whole_is_contiguous(spec);
    const auto decoder = decoder_of(spec);
    EXPECT_EQ(decoder->layout().bits, kind.bits);
    EXPECT_EQ(decoder->layout().groups.size(), kind.group_size);
    EXPECT_EQ(decoder->layout().highest_level, kind.bits == 4 ? 7 : 126);
    EXPECT_EQ(decoder->layout().lowest_level, -decoder->layout().highest_level);
  }
}

// All sixteen codes in order; the level is the magnitude's code with its sign.
TEST(Fp4Decoder, ReadsTheLowNibbleFirst) {
  WeightSpec spec = fp({Scheme::kCtMxfp4, 32, 4});
  spec[Companion::kCodes] = tensor_of<std::uint8_t>(
      Dtype::kU8, {1, 16},
      {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0});
  spec[Companion::kScale] = tensor_of<std::uint8_t>(Dtype::kU8, {1, 1}, {127});
  RowBlock block = decoded(spec);
  block.values.resize(16);
  block.levels.resize(16);
  EXPECT_THAT(block.values,
              ElementsAre(0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6));
  EXPECT_THAT(block.levels, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 0, -1, -2, -3, -4, -5, -6, -7));
}

// gpt-oss: byte 0x92 under scale 126 is 0.5 and -0.25.
TEST(Fp4Decoder, ReadsTheWorkedExampleOfGptOss) {
  WeightSpec spec = fp({Scheme::kGptOssMxfp4, 32, 4});
  std::vector<std::uint8_t> blocks(2 * 3 * 2 * 16, 0x92);
  spec[Companion::kCodes] = tensor_of(Dtype::kU8, {2, 3, 2, 16}, blocks);
  spec[Companion::kScale] =
      tensor_of(Dtype::kU8, {2, 3, 2}, std::vector<std::uint8_t>(2 * 3 * 2, 126));
  const RowBlock block = decoded(spec);
  EXPECT_EQ(block.rows, 6);
  EXPECT_EQ(block.columns, 64);
  for (std::size_t i = 0; i < block.values.size(); ++i) {
    ASSERT_EQ(block.values[i], i % 2 == 0 ? 0.5 : -0.25);
  }
}

// Code 7, scale 1, and a divisor of 1000: 0.006, rounded once.
TEST(Fp4Decoder, DividesByTheGlobalScaleOfCompressedTensors) {
  WeightSpec spec = fp({Scheme::kCtNvfp4, 16, 4});
  spec[Companion::kCodes] = tensor_of(Dtype::kU8, {1, 8}, std::vector<std::uint8_t>(8, 0x77));
  spec[Companion::kScale] = tensor_of<std::uint8_t>(Dtype::kF8E4M3, {1, 1}, {0x38});
  spec[Companion::kGlobalScale] = floats_of(Dtype::kF32, {1}, {1000});
  const RowBlock block = decoded(spec);
  EXPECT_THAT(block.values, Each(6.0 / 1000));
  EXPECT_THAT(block.scales, ElementsAre(1.0 / 1000));
}

TEST(Fp4Decoder, MultipliesByTheGlobalScaleOfModelOpt) {
  WeightSpec spec =
      packed(small_weight({Scheme::kModelOptNvfp4, 16, 4}), fp({Scheme::kModelOptNvfp4, 16, 4}));
  spec[Companion::kGlobalScale] = floats_of(Dtype::kF32, {}, {0.375});
  std::vector<double> expected = weights_of(small_weight({Scheme::kModelOptNvfp4, 16, 4}));
  for (double& value : expected) value *= 0.375;
  EXPECT_EQ(decoded(spec).values, expected);
}

TEST(Fp4Decoder, MultipliesColumnsOfModelOpt) {
  const Kind kind = {Scheme::kModelOptNvfp4, 16, 4};
  WeightSpec spec = packed(small_weight(kind), fp(kind));
  std::vector<double> factors;
  for (int k = 0; k < 64; ++k) factors.push_back(1 + k / 64.0);
  spec[Companion::kPreQuantScale] = floats_of(Dtype::kBF16, {64}, factors);
  std::vector<double> expected = weights_of(small_weight(kind));
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] *= factors[i % 64];
  EXPECT_EQ(decoded(spec).values, expected);
}

// The global scale of MLX is the largest magnitude: over 6 * 448 it is a factor.
TEST(Fp4Decoder, TakesTheGlobalScaleOfMlxForTheLargestMagnitude) {
  const Kind kind = {Scheme::kMlxFp, 16, 4};
  WeightSpec spec = packed(small_weight(kind), fp(kind));
  spec[Companion::kGlobalScale] = floats_of(Dtype::kF32, {1}, {5.0});
  std::vector<double> expected = weights_of(small_weight(kind));
  for (double& value : expected) value = value * 5.0 / 2688.0;
  EXPECT_EQ(decoded(spec).values, expected);
}

TEST(Fp4Decoder, TakesOneGlobalScaleForEachMatrix) {
  const Kind kind = {Scheme::kModelOptNvfp4, 16, 4};
  WeightSpec spec = packed(small_weight(kind), fp(kind));
  spec[Companion::kCodes]->shape = {2, 3, 32};
  spec[Companion::kScale]->shape = {2, 3, 4};
  spec[Companion::kGlobalScale] = floats_of(Dtype::kF32, {2, 1, 1}, {2.0, 4.0});
  std::vector<double> expected = weights_of(small_weight(kind));
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] *= i < 3 * 64 ? 2.0 : 4.0;
  EXPECT_EQ(decoded(spec).values, expected);
  expect_any_rows_agree(spec);
  spec[Companion::kGlobalScale] = floats_of(Dtype::kF32, {3}, {1, 1, 1});
  EXPECT_THAT(
      make_decoder(spec),
      test::Fails(ErrorCode::kCorrupt, HasSubstr("its global scale has 3 numbers, expected 2")));
  // Some writers have one for the gate and one for the up projection.
  spec[Companion::kGlobalScale] = floats_of(Dtype::kF32, {2, 2}, {1, 1, 1, 1});
  EXPECT_THAT(make_decoder(spec), test::Fails(ErrorCode::kUnsupported,
                                              HasSubstr("it has 2 global scales for a matrix")));
}

TEST(Fp4Decoder, RefusesScalesThatAreNoNumbers) {
  for (const Kind& kind : kKinds) {
    WeightSpec spec = packed(small_weight(kind), fp(kind));
    const std::size_t groups = 64 / kind.group_size;
    spec[Companion::kScale]->data[2 * groups + 1] = std::byte{0xff};
    EXPECT_THAT(decode_all(spec),
                test::Fails(ErrorCode::kCorrupt, HasSubstr("its scale of row 2, group 1 is nan")));
  }
}

TEST(Fp4Decoder, LeavesCodesThatAreNoNumbersToTheirReader) {
  const Kind kind = {Scheme::kMlxFp, 32, 8};
  WeightSpec spec = packed(small_weight(kind), fp(kind));
  spec[Companion::kCodes]->data[5] = std::byte{0x7f};
  EXPECT_TRUE(std::isnan(decoded(spec).values[5]));
}

TEST(Fp4Decoder, RefusesIncompleteWeights) {
  for (const Kind& kind : kKinds) {
    for (const Companion companion : {Companion::kCodes, Companion::kScale}) {
      WeightSpec spec = packed(small_weight(kind), fp(kind));
      spec[companion].reset();
      EXPECT_THAT(
          make_decoder(spec),
          test::Fails(ErrorCode::kCorrupt,
                      HasSubstr("its " + std::string(companion_name(companion)) + " is missing")));
    }
  }
  for (const Scheme scheme : {Scheme::kCtNvfp4, Scheme::kModelOptNvfp4}) {
    WeightSpec spec = packed(small_weight({scheme, 16, 4}), fp({scheme, 16, 4}));
    spec[Companion::kGlobalScale].reset();
    EXPECT_THAT(make_decoder(spec),
                test::Fails(ErrorCode::kCorrupt, HasSubstr("its global scale is missing")));
  }
}

TEST(Fp4Decoder, RefusesTypesThatTheFormatDoesNotHave) {
  for (const Kind& kind : kKinds) {
    WeightSpec spec = packed(small_weight(kind), fp(kind));
    spec[Companion::kCodes]->dtype = Dtype::kF16;
    EXPECT_THAT(make_decoder(spec),
                test::Fails(ErrorCode::kCorrupt, HasSubstr("its codes is F16")));
    spec = packed(small_weight(kind), fp(kind));
    spec[Companion::kScale]->dtype = Dtype::kI8;
    EXPECT_THAT(make_decoder(spec), test::Fails(ErrorCode::kCorrupt, HasSubstr("its scale is I8")));
  }
}

TEST(Fp4Decoder, RefusesShapesThatContradictEachOther) {
  for (const Kind& kind : kKinds) {
    for (const std::size_t axis : {0U, 1U}) {
      WeightSpec spec = packed(small_weight(kind), fp(kind));
      auto& shape = spec[Companion::kScale]->shape;
      shape[shape.size() - 1 - axis] += 1;
      const bool mode = kind.scheme == Scheme::kMlxFp && axis == 0;
      EXPECT_THAT(make_decoder(spec),
                  test::Fails(ErrorCode::kCorrupt,
                              HasSubstr(mode ? "are of no known mode" : "do not fit its scales")));
    }
  }
  WeightSpec spec = packed(small_weight({Scheme::kCtMxfp4, 32, 4}), fp({Scheme::kCtMxfp4, 32, 4}));
  spec[Companion::kCodes]->shape = {0, 32};
  spec[Companion::kScale]->shape = {0, 2};
  EXPECT_THAT(make_decoder(spec),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("it holds no weights")));
}

TEST(Fp4Decoder, RefusesGlobalScalesThatAreNoUse) {
  const Kind kind = {Scheme::kCtNvfp4, 16, 4};
  WeightSpec spec = packed(small_weight(kind), fp(kind));
  spec[Companion::kGlobalScale] = floats_of(Dtype::kF32, {1}, {0.0});
  EXPECT_THAT(make_decoder(spec),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("its global scale is 0")));
  spec[Companion::kGlobalScale] =
      floats_of(Dtype::kF32, {1}, {std::numeric_limits<double>::infinity()});
  EXPECT_THAT(make_decoder(spec),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("its global scale is inf")));
}

TEST(Fp4Decoder, NamesTheSwizzledScalesOfTensorRt) {
  const Kind kind = {Scheme::kModelOptNvfp4, 16, 4};
  WeightSpec spec = packed(small_weight(kind), fp(kind));
  spec[Companion::kScale]->dtype = Dtype::kU8;
  spec[Companion::kScale]->shape = {24};
  EXPECT_THAT(make_decoder(spec), test::Fails(ErrorCode::kUnsupported, HasSubstr("swizzled")));
}

}  // namespace
}  // namespace gridscope::quant
