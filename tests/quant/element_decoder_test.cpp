#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "quant/any_weight.hpp"
#include "quant/cross_vector.hpp"
#include "quant/tiles.hpp"

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Shape = std::vector<std::uint64_t>;

WeightSpec element(Scheme scheme, Dtype scale_dtype = Dtype::kBF16) {
  WeightSpec spec = {.name = "q_proj", .scheme = scheme};
  spec[Companion::kScale] = StoredTensor{.dtype = scale_dtype};
  return spec;
}

// Codes as they are stored, one byte each.
WeightSpec bytes_with(Scheme scheme, Dtype dtype, const Shape& shape,
                      const std::vector<std::uint8_t>& codes, StoredTensor scale) {
  WeightSpec spec = element(scheme);
  spec[Companion::kCodes] = tensor_of<std::uint8_t>(dtype, shape, codes);
  spec[Companion::kScale] = std::move(scale);
  return spec;
}

void expect_round_trip(const LeveledWeight& weight, const WeightSpec& like) {
  const WeightSpec spec = packed(weight, like);
  const RowBlock block = decoded(spec);
  EXPECT_EQ(block.levels, weight.levels);
  EXPECT_EQ(block.scales, weight.scales);
  EXPECT_EQ(block.zeros, weight.zeros);
  EXPECT_EQ(block.values, weights_of(weight));
  expect_any_rows_agree(spec);
  expect_whole_is_contiguous(spec);
}

TEST(ElementDecoder, ReadsTheCrossFormatVectorAsIntegers) {
  expect_round_trip(cross_weight(), element(Scheme::kCtInt));
  expect_round_trip(asymmetric_cross_weight(), element(Scheme::kCtInt));
  expect_round_trip(cross_weight(), element(Scheme::kModelOptInt8));
}

TEST(ElementDecoder, KnowsTheRangeOfItsBits) {
  const auto layout_of = [](const WeightSpec& spec) { return decoder_of(spec)->layout(); };
  const WeightLayout four = layout_of(packed(cross_weight(), element(Scheme::kCtInt)));
  EXPECT_EQ(four.bits, 4);
  EXPECT_EQ(four.lowest_level, -8);
  EXPECT_EQ(four.highest_level, 7);
  EXPECT_EQ(four.scale_dtype, Dtype::kBF16);
  const WeightLayout e4m3 = layout_of(bytes_with(Scheme::kCtFloat, Dtype::kF8E4M3, {1, 2}, {0, 0},
                                                 floats_of(Dtype::kF32, {1}, {1.0})));
  EXPECT_EQ(e4m3.bits, 8);
  EXPECT_EQ(e4m3.lowest_level, -126);
  EXPECT_EQ(e4m3.highest_level, 126);
}

TEST(ElementDecoder, ReadsFloatsOfEveryKind) {
  struct Case {
    Dtype dtype;
    std::vector<std::uint8_t> codes;
    std::vector<double> values;
  };
  const std::vector<Case> cases = {
      {.dtype = Dtype::kF8E4M3, .codes = {0x38, 0xB8, 0x7E, 0x80}, .values = {1, -1, 448, 0}},
      {.dtype = Dtype::kF8E5M2,
       .codes = {0x3C, 0xBC, 0x7B, 0x01},
       .values = {1, -1, 57344, 0x1p-16}},
      {.dtype = Dtype::kF8E4M3Fnuz, .codes = {0x40, 0xC0, 0x7F, 0}, .values = {1, -1, 240, 0}},
      {.dtype = Dtype::kF8E5M2Fnuz, .codes = {0x40, 0xC0, 0x7F, 0}, .values = {1, -1, 57344, 0}}};
  for (const Case& c : cases) {
    const WeightSpec spec = bytes_with(Scheme::kCtFloat, c.dtype, {2, 2}, c.codes,
                                       floats_of(Dtype::kF32, {2, 1}, {0.5, 2.0}));
    const RowBlock block = decoded(spec);
    EXPECT_THAT(block.values,
                ElementsAre(c.values[0] * 0.5, c.values[1] * 0.5, c.values[2] * 2, c.values[3] * 2))
        << dtype_name(c.dtype);
    EXPECT_EQ(block.levels[1], -block.levels[0]);
    EXPECT_THAT(block.zeros, IsEmpty());
  }
}

// Levels of floats follow their values; both zeros are level 0.
TEST(ElementDecoder, OrdersTheLevelsOfFloats) {
  const WeightSpec spec =
      bytes_with(Scheme::kCtFloat, Dtype::kF8E4M3, {1, 6}, {0xFE, 0x81, 0x80, 0x00, 0x01, 0x7E},
                 floats_of(Dtype::kF32, {}, {1.0}));
  EXPECT_THAT(decoded(spec).levels, ElementsAre(-126, -1, 0, 0, 1, 126));
}

TEST(ElementDecoder, ReadsBlocks) {
  WeightSpec spec =
      bytes_with(Scheme::kFp8Block, Dtype::kF8E4M3, {3, 5}, std::vector<std::uint8_t>(15, 0x38),
                 floats_of(Dtype::kF32, {2, 2}, {1, 2, 3, 4}));
  spec.block = {2, 4};
  const RowBlock block = decoded(spec);
  EXPECT_THAT(block.values, ElementsAre(1, 1, 1, 1, 2, 1, 1, 1, 1, 2, 3, 3, 3, 3, 4));
  EXPECT_THAT(block.scales, ElementsAre(1, 2, 1, 2, 3, 4));
  expect_any_rows_agree(spec);
  expect_whole_is_contiguous(spec);
}

// 300 rows and columns are three blocks of 128 each way, the last ones short.
TEST(ElementDecoder, TakesTheUsualBlocksWhereNoneAreClaimed) {
  const WeightSpec spec = bytes_with(Scheme::kFp8Block, Dtype::kF8E4M3, {300, 300},
                                     std::vector<std::uint8_t>(90000, 0x38),
                                     floats_of(Dtype::kF32, {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const RowBlock block = decoded(spec);
  EXPECT_EQ(block.row_values(127)[128], 2);
  EXPECT_EQ(block.row_values(128)[127], 4);
  EXPECT_EQ(block.row_values(299)[299], 9);
}

TEST(ElementDecoder, DividesWhereScalesAreInverse) {
  WeightSpec spec = bytes_with(Scheme::kFp8Block, Dtype::kF8E4M3, {1, 2}, {0x38, 0x40},
                               floats_of(Dtype::kF32, {1, 1}, {3.0}));
  spec.block = {1, 2};
  spec.scale_use = WeightSpec::ScaleUse::kDivide;
  const RowBlock block = decoded(spec);
  EXPECT_THAT(block.values, ElementsAre(1.0 / 3, 2.0 / 3));
  EXPECT_THAT(block.scales, ElementsAre(1.0 / 3));
  spec[Companion::kScale] = floats_of(Dtype::kF32, {1, 1}, {0.0});
  EXPECT_THAT(decode_all(spec),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("its scale of row 0, group 0 is inf")));
}

TEST(ElementDecoder, ReadsExponentScales) {
  for (const Dtype dtype : {Dtype::kU8, Dtype::kF8E8M0}) {
    std::vector<std::uint8_t> codes(64, 0x38);
    WeightSpec spec = bytes_with(Scheme::kCtMxfp8, Dtype::kF8E4M3, {1, 64}, codes,
                                 tensor_of<std::uint8_t>(dtype, {1, 2}, {126, 128}));
    const RowBlock block = decoded(spec);
    EXPECT_EQ(block.values[31], 0.5);
    EXPECT_EQ(block.values[32], 2.0);
    EXPECT_EQ(decoder_of(spec)->layout().scale_dtype, Dtype::kF8E8M0);
    spec[Companion::kScale].value().data[1] = std::byte{255};
    EXPECT_THAT(decode_all(spec),
                test::Fails(ErrorCode::kCorrupt, HasSubstr("its scale of row 0, group 1 is nan")));
    spec[Companion::kScale] = tensor_of<std::uint8_t>(dtype, {1, 4}, {126, 126, 126, 126});
    EXPECT_THAT(make_decoder(spec),
                test::Fails(ErrorCode::kCorrupt,
                            HasSubstr("its rows of 64 weights have 4 groups of size 32")));
  }
}

TEST(ElementDecoder, ReadsBitsandbytes) {
  WeightSpec spec = bytes_with(Scheme::kBnbInt8, Dtype::kI8, {2, 2}, {127, 0x81, 1, 0x80},
                               floats_of(Dtype::kF32, {2}, {0.1F, 254.0}));
  spec[Companion::kWeightFormat] = tensor_of<std::uint8_t>(Dtype::kU8, {}, {0});
  const RowBlock block = decoded(spec);
  EXPECT_THAT(block.values,
              ElementsAre(static_cast<double>(0.1F), -static_cast<double>(0.1F), 2, -256));
  EXPECT_EQ(block.scales[1], 2.0);
  spec[Companion::kWeightFormat] = tensor_of<std::uint8_t>(Dtype::kU8, {}, {1});
  EXPECT_THAT(make_decoder(spec),
              test::Fails(ErrorCode::kUnsupported, HasSubstr("weight_format is not 0")));
}

TEST(ElementDecoder, MultipliesByColumnFactors) {
  WeightSpec spec = packed(cross_weight(), element(Scheme::kModelOptInt8));
  std::vector<double> factors(32, 1.0);
  factors[3] = 0.5;
  spec[Companion::kPreQuantScale] = floats_of(Dtype::kBF16, {32}, factors);
  const RowBlock block = decoded(spec);
  EXPECT_EQ(block.values[3], weights_of(cross_weight())[3] * 0.5);
  EXPECT_EQ(block.values[4], weights_of(cross_weight())[4]);
}

TEST(ElementDecoder, FollowsAGroupIndex) {
  LeveledWeight weight = cross_weight();
  weight.group_size = 16;
  weight.scales.resize(16, 0.25);
  for (std::uint32_t k = 0; k < 32; ++k) weight.group_of_column.push_back(k % 2);
  expect_round_trip(weight, element(Scheme::kCtInt));
}

TEST(ElementDecoder, ReadsStackedExpertsWithAScaleEach) {
  WeightSpec spec =
      bytes_with(Scheme::kModelOptFp8, Dtype::kF8E4M3, {2, 2, 2},
                 std::vector<std::uint8_t>(8, 0x38), floats_of(Dtype::kF32, {2}, {1.0, 2.0}));
  EXPECT_THAT(decoded(spec).values, ElementsAre(1, 1, 1, 1, 2, 2, 2, 2));
  expect_any_rows_agree(spec);
}

TEST(ElementDecoder, RefusesCodesThatAreNone) {
  WeightSpec spec = packed(cross_weight(), element(Scheme::kCtInt));
  spec[Companion::kCodes].value().data[35] = std::byte{9};
  EXPECT_THAT(decode_all(spec),
              test::Fails(ErrorCode::kCorrupt,
                          HasSubstr("its code of row 1, column 3 is 9, expected -8 to 7")));
  spec = bytes_with(Scheme::kCtFloat, Dtype::kF8E4M3, {1, 2}, {0x38, 0x7F},
                    floats_of(Dtype::kF32, {1}, {1.0}));
  EXPECT_THAT(
      decode_all(spec),
      test::Fails(ErrorCode::kCorrupt,
                  HasSubstr("its code of row 0, column 1 is nan, expected a finite number")));
}

TEST(ElementDecoder, RefusesIncompleteAndOtherTypes) {
  WeightSpec spec = packed(cross_weight(), element(Scheme::kCtInt));
  spec.symmetric = false;
  EXPECT_THAT(make_decoder(spec),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("its zero point is missing")));
  spec.symmetric = {};
  spec.bits = 16;
  EXPECT_THAT(
      make_decoder(spec),
      test::Fails(ErrorCode::kCorrupt, HasSubstr("it claims 16 bits, but its codes are I8")));
  spec[Companion::kCodes].value().dtype = Dtype::kF8E4M3;
  EXPECT_THAT(make_decoder(spec),
              test::Fails(ErrorCode::kCorrupt,
                          HasSubstr("its codes is F8_E4M3 [8, 32], expected I8 or I16")));
  spec.scheme = Scheme::kFp8Block;
  spec[Companion::kScale].reset();
  EXPECT_THAT(
      make_decoder(spec),
      test::Fails(ErrorCode::kCorrupt, HasSubstr("weight \"q_proj\" (fp8_block): its scale is "
                                                 "missing")));
}

TEST(ElementDecoder, RefusesZeroPointsForOtherGroups) {
  WeightSpec spec = packed(asymmetric_cross_weight(), element(Scheme::kCtInt));
  spec[Companion::kZeroPoint] =
      tensor_of<std::int8_t>(Dtype::kI8, {8, 2}, std::vector<std::int8_t>(16));
  EXPECT_THAT(make_decoder(spec),
              test::Fails(ErrorCode::kCorrupt,
                          HasSubstr("its zero points are for 16 columns, its scales for 32")));
}

RC_GTEST_PROP(ElementDecoder, DecodesIntegersThatWerePacked, ()) {
  const WeightShape shape = {.rows = *rc::gen::inRange<std::uint64_t>(1, 8),
                             .columns = 96,
                             .bits = *rc::gen::inRange<std::uint32_t>(2, 17),
                             .group_size = *rc::gen::element<std::uint64_t>(8, 32, 96)};
  const auto zeros = *rc::gen::element(Zeros::kNone, Zeros::kAny);
  expect_round_trip(any_weight(shape, zeros), element(Scheme::kCtInt));
}

// Levels of floats are packed as they are, so only levels and scales come back.
RC_GTEST_PROP(ElementDecoder, DecodesFloatsThatWerePacked, ()) {
  LeveledWeight weight =
      any_weight({.rows = 4, .columns = 64, .bits = 8, .group_size = 32}, Zeros::kNone);
  for (std::int16_t& level : weight.levels) {
    level = std::clamp<std::int16_t>(level, -123, 123);  // of E5M2
  }
  WeightSpec like = element(Scheme::kCtFloat);
  const Dtype dtype = *rc::gen::element(Dtype::kF8E4M3, Dtype::kF8E5M2, Dtype::kF8E4M3Fnuz);
  like[Companion::kCodes] = StoredTensor{.dtype = dtype};
  const RowBlock block = decoded(packed(weight, like));
  RC_ASSERT(block.levels == weight.levels);
  RC_ASSERT(block.scales == weight.scales);
}

}  // namespace
}  // namespace gridscope::quant
