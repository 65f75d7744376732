#include <gmock/gmock.h>

#include "quant/cross_vector.hpp"

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

WeightSpec awq(Scheme scheme) {
  return {.name = "q_proj", .scheme = scheme};
}

TEST(PackAwq, WritesTheWordsOfTheReferencePacker) {
  const WeightSpec spec = packed(cross_weight(), awq(Scheme::kAwqGemm));
  const StoredTensor& codes = *spec.find(Companion::kCodes);
  EXPECT_EQ(codes.dtype, Dtype::kI32);
  EXPECT_THAT(codes.shape, ElementsAre(32, 1));
  EXPECT_EQ(words_of(codes)[0], 0x39F5E4A0);
  EXPECT_EQ(words_of(codes)[1], 0x6C2817D3);
  EXPECT_THAT(words_of(*spec.find(Companion::kZeroPoint)), ElementsAre(0x88888888));
  EXPECT_THAT(spec.find(Companion::kScale)->shape, ElementsAre(1, 8));
  const WeightSpec asymmetric = packed(asymmetric_cross_weight(), awq(Scheme::kAwqGemm));
  EXPECT_THAT(words_of(*asymmetric.find(Companion::kZeroPoint)), ElementsAre(0xA8649753));
}

// Natural order; scales and zero points padded to four words for small groups.
TEST(PackAwq, PadsTheGroupsOfGemv) {
  const WeightSpec spec = packed(asymmetric_cross_weight(), awq(Scheme::kAwqGemv));
  EXPECT_THAT(spec.find(Companion::kCodes)->shape, ElementsAre(8, 4));
  EXPECT_EQ(words_of(*spec.find(Companion::kCodes))[0], 0x52FC9630);
  EXPECT_THAT(spec.find(Companion::kScale)->shape, ElementsAre(8, 32));
  EXPECT_THAT(spec.find(Companion::kZeroPoint)->shape, ElementsAre(8, 4));
  const auto zeros = words_of(*spec.find(Companion::kZeroPoint));
  EXPECT_EQ(zeros[0], 3);
  EXPECT_EQ(zeros[1], 0);
  EXPECT_EQ(zeros[4], 4);
}

TEST(PackAwq, WeavesFourRowsOfGemvFast) {
  LeveledWeight weight = {.rows = 4, .columns = 128, .bits = 4, .group_size = 64};
  weight.levels.assign(4 * 128, -8);
  weight.levels[0] = 7;        // row 0, column 0
  weight.levels[128 + 1] = 6;  // row 1, column 1
  weight.scales.assign(8, 0.5);
  const WeightSpec spec = packed(weight, awq(Scheme::kAwqGemvFast));
  const StoredTensor& codes = *spec.find(Companion::kCodes);
  EXPECT_EQ(codes.dtype, Dtype::kI16);
  EXPECT_THAT(codes.shape, ElementsAre(1, 128));
  EXPECT_EQ(load_le<std::uint16_t>(std::span(codes.data)), 0x000f);
  // Row 1 starts after 64 codes, 16 words; column 1 comes to place 4 there: the next word.
  EXPECT_EQ(load_le<std::uint16_t>(std::span(codes.data).subspan(2 * std::size_t{17})), 0x000e);
  EXPECT_THAT(spec.find(Companion::kScale)->shape, ElementsAre(16, 4));
  std::vector<double> offsets(16 * 4);
  load_numbers(Dtype::kBF16, spec.find(Companion::kZeroPoint)->data, offsets);
  EXPECT_EQ(offsets[0], -4);
  EXPECT_EQ(offsets[8], 0) << "padding";
}

TEST(PackAwq, RefusesWhatTheFormatCannotHold) {
  LeveledWeight weight = cross_weight();
  weight.bits = 8;
  EXPECT_THAT(pack(weight, awq(Scheme::kAwqGemm)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("8 bits")));
  weight = cross_weight();
  weight.group_of_column.assign(32, 0);
  EXPECT_THAT(pack(weight, awq(Scheme::kAwqGemm)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("columns out of order")));
  LeveledWeight narrow = {.rows = 7, .columns = 4, .bits = 4, .group_size = 4};
  narrow.levels.assign(28, 0);
  narrow.scales.assign(7, 1.0);
  EXPECT_THAT(pack(narrow, awq(Scheme::kAwqGemm)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("7 rows, no multiple of 8")));
  EXPECT_THAT(pack(narrow, awq(Scheme::kAwqGemv)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("4 columns, no multiple of 8")));
  EXPECT_THAT(pack(narrow, awq(Scheme::kAwqGemvFast)),
              test::Fails(ErrorCode::kInvalidArgument,
                          HasSubstr("7 x 4 weights, no multiples of 4 and 64")));
  WeightSpec like = awq(Scheme::kAwqGemm);
  like.symmetric = true;
  EXPECT_THAT(
      pack(asymmetric_cross_weight(), like),
      test::Fails(ErrorCode::kInvalidArgument, HasSubstr("zero points, but it is symmetric")));
}

}  // namespace
}  // namespace gridscope::quant
