#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "quant/any_weight.hpp"
#include "quant/cross_vector.hpp"
#include "quant/int4_tiles.hpp"
#include "quant/tiles.hpp"

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

WeightSpec modelopt() {
  return {.name = "q_proj", .scheme = Scheme::kModelOptInt4Awq};
}

template <typename Edit>
void expect_refused(std::string_view message, Edit edit) {
  WeightSpec spec = packed(cross_weight(), modelopt());
  edit(spec);
  EXPECT_THAT(make_decoder(spec), test::Fails(ErrorCode::kCorrupt, HasSubstr(message)));
}

TEST(ModelOptInt4Decoder, ReadsTheVector) {
  const WeightSpec spec = packed(cross_weight(), modelopt());
  const RowBlock block = decoded(spec);
  EXPECT_EQ(block.values, weights_of(cross_weight()));
  EXPECT_EQ(block.levels, cross_weight().levels);
  EXPECT_EQ(block.scales, cross_weight().scales);
  EXPECT_THAT(block.zeros, IsEmpty());
  expect_any_rows_agree(spec);
  expect_int4_agrees(spec);
  expect_whole_is_contiguous(spec);
}

// Low nibble: the even row, high nibble: the odd one, both signed.
TEST(ModelOptInt4Decoder, ReadsSignedNibblesOfTwoRows) {
  WeightSpec spec = modelopt();
  spec[Companion::kCodes] = tensor_of<std::uint8_t>(Dtype::kU8, {1, 2}, {0x87, 0x1f});
  spec[Companion::kScale] = floats_of(Dtype::kBF16, {2, 1}, {1.0, 0.5});
  EXPECT_THAT(decoded(spec).values, ElementsAre(7, -1, -4, 0.5));
}

TEST(ModelOptInt4Decoder, MultipliesColumnsByThePreQuantizationScale) {
  WeightSpec spec = packed(cross_weight(), modelopt());
  std::vector<double> factors;
  std::vector<double> expected = weights_of(cross_weight());
  for (int k = 0; k < 32; ++k) factors.push_back(1.0 + k / 32.0);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] *= factors[i % 32];
  spec[Companion::kPreQuantScale] = floats_of(Dtype::kBF16, {32}, factors);
  EXPECT_EQ(decoded(spec).values, expected);
  EXPECT_FALSE(offers_int4(spec));
  expect_any_rows_agree(spec);
}

TEST(ModelOptInt4Decoder, ReadsStacksOfMatrices) {
  WeightSpec spec = packed(cross_weight(), modelopt());
  spec[Companion::kCodes]->shape = {2, 2, 32};
  spec[Companion::kScale]->shape = {2, 4, 1};
  EXPECT_EQ(decoded(spec).values, weights_of(cross_weight()));
}

TEST(ModelOptInt4Decoder, RefusesWhatDoesNotFit) {
  expect_refused("its codes is missing", [](WeightSpec& spec) { spec[Companion::kCodes].reset(); });
  expect_refused("its scale is missing", [](WeightSpec& spec) { spec[Companion::kScale].reset(); });
  expect_refused("its codes is I8 [4, 32], expected U8",
                 [](WeightSpec& spec) { spec[Companion::kCodes]->dtype = Dtype::kI8; });
  expect_refused("its scale is I8 [8, 1], expected F16 or BF16 or F32",
                 [](WeightSpec& spec) { spec[Companion::kScale]->dtype = Dtype::kI8; });
  expect_refused("its codes U8 [4, 32] do not fit its scale BF16 [4, 1]",
                 [](WeightSpec& spec) { spec[Companion::kScale]->shape = {4, 1}; });
  expect_refused("do not fit", [](WeightSpec& spec) { spec[Companion::kCodes]->shape = {4, 31}; });
  expect_refused("its rows of 32 weights have 3 groups of size 32",
                 [](WeightSpec& spec) { spec[Companion::kScale]->shape = {8, 3}; });
  expect_refused("its pre-quantization scale has 1 numbers for 32 columns", [](WeightSpec& spec) {
    spec[Companion::kPreQuantScale] = floats_of(Dtype::kF16, {1}, {1.0});
  });
  expect_refused("it holds no weights", [](WeightSpec& spec) {
    spec[Companion::kCodes]->shape = {0, 32};
    spec[Companion::kScale]->shape = {0, 1};
  });
  WeightSpec spec = modelopt();
  spec.bits = 8;
  EXPECT_THAT(make_decoder(spec),
              test::Fails(ErrorCode::kUnsupported, HasSubstr("it has 8 bits, expected 4")));
}

TEST(ModelOptInt4Decoder, RefusesScalesThatAreNoNumbers) {
  WeightSpec spec = packed(cross_weight(), modelopt());
  StoredTensor& scale = *spec[Companion::kScale];
  store_numbers(Dtype::kBF16, std::vector{-std::numeric_limits<double>::infinity()}, scale.data);
  EXPECT_THAT(decode_all(spec),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("its scale of row 0, group 0 is -inf")));
}

RC_GTEST_PROP(ModelOptInt4Decoder, DecodesWhatWasPacked, ()) {
  const LeveledWeight weight = any_weight({.rows = 2 * *rc::gen::inRange<std::uint64_t>(1, 9),
                                           .columns = 128,
                                           .bits = 4,
                                           .group_size = *rc::gen::element<std::uint64_t>(32, 128)},
                                          Zeros::kNone);
  const RowBlock block = decoded(packed(weight, modelopt()));
  RC_ASSERT(block.values == weights_of(weight));
  RC_ASSERT(block.levels == weight.levels);
}

}  // namespace
}  // namespace gridscope::quant
