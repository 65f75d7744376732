#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "quant/any_weight.hpp"
#include "quant/cross_vector.hpp"
#include "quant/int4_tiles.hpp"
#include "quant/tiles.hpp"

namespace gridscope::quant {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

WeightSpec mlx() {
  return {.name = "q_proj", .scheme = Scheme::kMlxAffine};
}

template <typename Edit>
void expect_refused(std::string_view message, Edit edit) {
  WeightSpec spec = packed(cross_weight(), mlx());
  edit(spec);
  EXPECT_THAT(make_decoder(spec), test::Fails(ErrorCode::kCorrupt, HasSubstr(message)));
}

TEST(MlxDecoder, ReadsTheVector) {
  const WeightSpec spec = packed(cross_weight(), mlx());
  const RowBlock block = decoded(spec);
  EXPECT_EQ(block.values, weights_of(cross_weight()));
  EXPECT_EQ(block.levels, cross_weight().levels);
  EXPECT_EQ(block.scales, cross_weight().scales);
  EXPECT_THAT(block.zeros, Each(0));
  expect_any_rows_agree(spec);
  expect_int4_agrees(spec);
  expect_whole_is_contiguous(spec);
}

// Scale 0.1, offset -0.8, codes 0, 8, 15: the double nearest to each product and sum.
TEST(MlxDecoder, ReadsTheWorkedExample) {
  WeightSpec spec = mlx();
  spec.bits = 4;
  spec[Companion::kCodes] = tensor_of<std::uint32_t>(Dtype::kU32, {1, 4}, {0x00000F80, 0, 0, 0});
  spec[Companion::kScale] = floats_of(Dtype::kF32, {1, 1}, {0.1});
  spec[Companion::kOffset] = floats_of(Dtype::kF32, {1, 1}, {-0.8});
  const RowBlock block = decoded(spec);
  EXPECT_FLOAT_EQ(static_cast<float>(block.values[0]), -0.8F);
  EXPECT_EQ(static_cast<float>(block.values[1]), 0.0F);
  EXPECT_FLOAT_EQ(static_cast<float>(block.values[2]), 0.7F);
}

// Offsets are rounded to the type of the weight: kernels cannot take them for a zero point then.
TEST(MlxDecoder, OffersKernelsOnlyExactGrids) {
  WeightSpec spec = packed(cross_weight(), mlx());
  std::vector<double> offsets;
  for (const double scale : cross_weight().scales) offsets.push_back(-8 * scale);
  spec[Companion::kOffset] = floats_of(Dtype::kBF16, {8, 1}, offsets);
  EXPECT_TRUE(offers_int4(spec));
  offsets[0] = std::nextafter(static_cast<float>(offsets[0]), 0.0F);
  spec[Companion::kOffset] = floats_of(Dtype::kF32, {8, 1}, offsets);
  EXPECT_FALSE(offers_int4(spec));
  const RowBlock block = decoded(spec);
  EXPECT_THAT(block.zeros, Each(0));
  EXPECT_EQ(block.values[0],
            cross_weight().scales[0] * (cross_weight().levels[0] + 8) + offsets[0]);
}

// A scale of 2^-70 under an offset near 1: the sum needs more bits than a double has.
TEST(MlxDecoder, LosesNothingThatRoundingWouldSee) {
  WeightSpec spec = mlx();
  spec.bits = 4;
  spec[Companion::kCodes] = tensor_of<std::uint32_t>(Dtype::kU32, {1, 4}, {1, 0, 0, 0});
  spec[Companion::kScale] = floats_of(Dtype::kF32, {1, 1}, {0x1p-70});
  spec[Companion::kOffset] = floats_of(Dtype::kF32, {1, 1}, {1.0 + 0x1p-8});
  const RowBlock block = decoded(spec);
  EXPECT_EQ(bf16_value(to_bf16(block.values[0])), 1.0 + 0x1p-7) << "just above the midpoint";
  EXPECT_EQ(bf16_value(to_bf16(block.values[1])), 1.0) << "the midpoint, to even";
}

TEST(MlxDecoder, ReadsStacksOfMatrices) {
  WeightSpec spec = packed(cross_weight(), mlx());
  spec[Companion::kCodes]->shape = {2, 4, 4};
  spec[Companion::kScale]->shape = {2, 4, 1};
  spec[Companion::kOffset]->shape = {2, 4, 1};
  EXPECT_EQ(decoded(spec).values, weights_of(cross_weight()));
  EXPECT_EQ(decoder_of(spec)->layout().rows, 8);
}

TEST(MlxDecoder, FindsTheBitsThatTheGroupSizeLeaves) {
  WeightSpec spec = packed(cross_weight(), mlx());
  spec.bits = 0;
  EXPECT_EQ(decoded(spec).values, weights_of(cross_weight()));
  spec.bits = 4;
  spec.group_size = 0;
  EXPECT_EQ(decoded(spec).values, weights_of(cross_weight()));
  expect_refused("neither its bits nor its group size are known", [](WeightSpec& edited) {
    edited.bits = 0;
    edited.group_size = 0;
  });
}

TEST(MlxDecoder, RefusesIncompleteWeights) {
  expect_refused("its codes is missing", [](WeightSpec& spec) { spec[Companion::kCodes].reset(); });
  expect_refused("its scale is missing", [](WeightSpec& spec) { spec[Companion::kScale].reset(); });
  expect_refused("its offset is missing",
                 [](WeightSpec& spec) { spec[Companion::kOffset].reset(); });
}

TEST(MlxDecoder, RefusesTypesAndShapesThatContradictEachOther) {
  expect_refused("its codes is I32 [8, 4], expected U32",
                 [](WeightSpec& spec) { spec[Companion::kCodes]->dtype = Dtype::kI32; });
  expect_refused("its offset is U8 [8, 1], expected F16 or BF16 or F32",
                 [](WeightSpec& spec) { spec[Companion::kOffset]->dtype = Dtype::kU8; });
  expect_refused("its scale BF16 [7, 1] does not fit its codes U32 [8, 4]",
                 [](WeightSpec& spec) { spec[Companion::kScale]->shape = {7, 1}; });
  expect_refused("its offset BF16 [8, 2] does not fit its scale BF16 [8, 1]",
                 [](WeightSpec& spec) { spec[Companion::kOffset]->shape = {8, 2}; });
  expect_refused("its rows of 32 weights have 1 groups of size 16",
                 [](WeightSpec& spec) { spec.group_size = 16; });
  expect_refused("its rows of 4 words hold no 1 groups of 42 codes of 3 bits",
                 [](WeightSpec& spec) {
                   spec.bits = 3;
                   spec.group_size = 0;
                 });
  expect_refused("it holds no weights", [](WeightSpec& spec) {
    spec[Companion::kCodes]->shape = {0, 4};
    spec[Companion::kScale]->shape = {0, 1};
    spec[Companion::kOffset]->shape = {0, 1};
  });
}

TEST(MlxDecoder, RefusesOtherWidths) {
  for (const std::uint32_t bits : {1U, 7U, 9U}) {
    WeightSpec spec = packed(cross_weight(), mlx());
    spec.bits = bits;
    EXPECT_THAT(make_decoder(spec),
                test::Fails(ErrorCode::kUnsupported, HasSubstr("expected 2, 3, 4, 5, 6 or 8")));
  }
}

TEST(MlxDecoder, RefusesOffsetsThatAreNoNumbers) {
  WeightSpec spec = packed(cross_weight(), mlx());
  StoredTensor& offset = *spec[Companion::kOffset];
  store_numbers(Dtype::kBF16, std::vector{std::numeric_limits<double>::quiet_NaN()}, offset.data);
  EXPECT_THAT(decode_all(spec),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("its offset of row 0, group 0 is nan")));
}

RC_GTEST_PROP(MlxDecoder, DecodesWhatWasPacked, ()) {
  const LeveledWeight weight =
      any_weight({.rows = *rc::gen::inRange<std::uint64_t>(1, 6),
                  .columns = 128 * *rc::gen::inRange<std::uint64_t>(1, 3),
                  .bits = *rc::gen::element<std::uint32_t>(2, 3, 4, 5, 6, 8),
                  .group_size = *rc::gen::element<std::uint64_t>(32, 64, 128)},
                 Zeros::kAny);
  WeightSpec like = mlx();
  like[Companion::kScale] = StoredTensor{.dtype = Dtype::kF32};
  const RowBlock block = decoded(packed(weight, like));
  RC_ASSERT(block.values == weights_of(weight));
  RC_ASSERT(block.levels == weight.levels);
  for (std::size_t i = 0; i < weight.zeros.size(); ++i) {
    RC_ASSERT(weight.scales[i] == 0.0 || block.zeros[i] == weight.zeros[i]);
  }
}

}  // namespace
}  // namespace gridscope::quant
