#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

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
using ::testing::IsEmpty;

WeightSpec awq(Scheme scheme) {
  return {.name = "q_proj", .scheme = scheme};
}

// The vector of 32 columns is too narrow for GEMV_FAST: twice side by side.
LeveledWeight wide(const LeveledWeight& weight) {
  LeveledWeight twice = weight;
  twice.columns = 64;
  twice.group_size = 64;
  twice.levels.clear();
  for (std::size_t row = 0; row < 8; ++row) {
    for (std::size_t k = 0; k < 64; ++k) twice.levels.push_back(weight.levels[row * 32 + k % 32]);
  }
  return twice;
}

template <typename Edit>
void expect_refused(Scheme scheme, std::string_view message, Edit edit) {
  const bool fast = scheme == Scheme::kAwqGemvFast;
  WeightSpec spec = packed(fast ? wide(cross_weight()) : cross_weight(), awq(scheme));
  edit(spec);
  EXPECT_THAT(make_decoder(spec), test::Fails(ErrorCode::kCorrupt, HasSubstr(message)));
}

TEST(AwqDecoder, ReadsTheVectorInEveryLayout) {
  for (const Scheme scheme : {Scheme::kAwqGemm, Scheme::kAwqGemv}) {
    for (const LeveledWeight& weight : {cross_weight(), asymmetric_cross_weight()}) {
      const WeightSpec spec = packed(weight, awq(scheme));
      const RowBlock block = decoded(spec);
      EXPECT_EQ(block.values, weights_of(weight));
      EXPECT_EQ(block.levels, weight.levels);
      EXPECT_EQ(block.scales, weight.scales);
      const std::vector<std::int16_t> middle(8, 0);
      EXPECT_EQ(block.zeros, weight.zeros.empty() ? middle : weight.zeros);
      expect_any_rows_agree(spec);
      expect_int4_agrees(spec);
      expect_whole_is_contiguous(spec);
    }
  }
}

// Offsets of the asymmetric vector are no numbers of 16 bits: F32 holds them.
TEST(AwqDecoder, ReadsTheVectorFromGemvFast) {
  for (const LeveledWeight& weight : {wide(cross_weight()), wide(asymmetric_cross_weight())}) {
    WeightSpec like = awq(Scheme::kAwqGemvFast);
    like[Companion::kScale] = StoredTensor{.dtype = Dtype::kF32};
    const WeightSpec spec = packed(weight, like);
    const RowBlock block = decoded(spec);
    EXPECT_EQ(block.values, weights_of(weight));
    EXPECT_EQ(block.levels, weight.levels);
    EXPECT_EQ(block.zeros, weight.zeros.empty() ? std::vector<std::int16_t>(8, 0) : weight.zeros);
    expect_any_rows_agree(spec);
    expect_int4_agrees(spec);
    const TileNeeds needs = decoder_of(spec)->needs({.first = 0, .count = 8});
    const auto& scales = needs.at(static_cast<std::size_t>(Companion::kScale));
    ASSERT_TRUE(scales.has_value());
    EXPECT_EQ(scales->length, scales->stride);
  }
}

// Outputs 0 to 7 of one input are 0 to 7 in that order.
TEST(AwqDecoder, ReadsTheWorkedExample) {
  WeightSpec spec = awq(Scheme::kAwqGemm);
  spec[Companion::kCodes] = tensor_of<std::uint32_t>(Dtype::kI32, {1, 1}, {0x75316420});
  spec[Companion::kZeroPoint] = tensor_of<std::uint32_t>(Dtype::kI32, {1, 1}, {0});
  spec[Companion::kScale] = floats_of(Dtype::kF16, {1, 8}, std::vector<double>(8, 1.0));
  EXPECT_THAT(decoded(spec).values, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(AwqDecoder, TakesTheMiddleForZeroPointsThatAreNotThere) {
  for (const Scheme scheme : {Scheme::kAwqGemm, Scheme::kAwqGemv}) {
    WeightSpec spec = packed(cross_weight(), awq(scheme));
    spec[Companion::kZeroPoint].reset();
    const RowBlock block = decoded(spec);
    EXPECT_EQ(block.values, weights_of(cross_weight()));
    EXPECT_THAT(block.zeros, IsEmpty());
    expect_int4_agrees(spec);
    spec.symmetric = false;
    EXPECT_THAT(make_decoder(spec),
                test::Fails(ErrorCode::kCorrupt, HasSubstr("its zero point is missing")));
  }
}

TEST(AwqDecoder, RefusesZeroPointsThatContradictSymmetry) {
  for (const Scheme scheme : {Scheme::kAwqGemm, Scheme::kAwqGemv}) {
    WeightSpec spec = packed(cross_weight(), awq(scheme));
    spec.symmetric = true;
    EXPECT_THAT(decode_all(spec), test::IsOk());
    spec[Companion::kZeroPoint] =
        packed(asymmetric_cross_weight(), awq(scheme))[Companion::kZeroPoint];
    EXPECT_THAT(decode_all(spec),
                test::Fails(ErrorCode::kCorrupt,
                            HasSubstr("its zero point of row 0, group 0 is 3, but it is symmetric: "
                                      "expected 8")));
  }
}

// What is stored need not be -scale * zero exactly: the sum is what counts.
TEST(AwqDecoder, AddsRoundedOffsetsOfGemvFast) {
  WeightSpec like = awq(Scheme::kAwqGemvFast);
  like[Companion::kScale] = StoredTensor{.dtype = Dtype::kF16};
  LeveledWeight weight = wide(cross_weight());
  weight.scales.assign(8, 0.5);
  WeightSpec spec = packed(weight, like);
  std::vector<double> offsets(8 * 16, 0.0);
  for (std::size_t row = 0; row < 8; ++row) offsets[row] = -3.75;
  spec[Companion::kZeroPoint] = floats_of(Dtype::kF16, {16, 8}, offsets);
  const RowBlock block = decoded(spec);
  EXPECT_EQ(block.values[0], 0.5 * (weight.levels[0] + 8) - 3.75);
  EXPECT_THAT(block.zeros, Each(0));  // 7.5 codes is nearest to 8
  EXPECT_FALSE(offers_int4(spec));
}

TEST(AwqDecoder, FindsTheGroupSizeThatPaddingAllows) {
  for (const std::uint64_t size : {32U, 64U, 128U}) {
    LeveledWeight weight = {.rows = 4, .columns = 256, .bits = 4, .group_size = size};
    weight.levels.assign(4 * 256, 3);
    for (std::uint64_t i = 0; i < 4 * 256 / size; ++i)
      weight.scales.push_back(static_cast<double>(i));
    for (const Scheme scheme : {Scheme::kAwqGemv, Scheme::kAwqGemvFast}) {
      WeightSpec spec = packed(weight, awq(scheme));
      spec.group_size = 0;
      EXPECT_EQ(decoder_of(spec)->layout().groups.size(), size);
      EXPECT_EQ(decoded(spec).values, weights_of(weight));
    }
  }
}

TEST(AwqDecoder, RefusesIncompleteWeights) {
  for (const Scheme scheme : {Scheme::kAwqGemm, Scheme::kAwqGemv, Scheme::kAwqGemvFast}) {
    expect_refused(scheme, "its codes is missing",
                   [](WeightSpec& spec) { spec[Companion::kCodes].reset(); });
    expect_refused(scheme, "its scale is missing",
                   [](WeightSpec& spec) { spec[Companion::kScale].reset(); });
    expect_refused(scheme, "its scale is U8",
                   [](WeightSpec& spec) { spec[Companion::kScale]->dtype = Dtype::kU8; });
    expect_refused(scheme, "its codes is F64",
                   [](WeightSpec& spec) { spec[Companion::kCodes]->dtype = Dtype::kF64; });
    expect_refused(scheme, "its zero point is",
                   [](WeightSpec& spec) { spec[Companion::kZeroPoint]->shape = {3, 3}; });
  }
  expect_refused(Scheme::kAwqGemvFast, "its zero point is missing",
                 [](WeightSpec& spec) { spec[Companion::kZeroPoint].reset(); });
}

TEST(AwqDecoder, RefusesShapesThatContradictEachOther) {
  expect_refused(Scheme::kAwqGemm, "its codes I32 [32, 1] do not fit its scales BF16 [1, 16]",
                 [](WeightSpec& spec) { spec[Companion::kScale]->shape = {1, 16}; });
  expect_refused(Scheme::kAwqGemm, "its rows of 32 weights have 3 groups of size 16",
                 [](WeightSpec& spec) {
                   spec[Companion::kScale]->shape = {3, 8};
                   spec.group_size = 16;
                 });
  expect_refused(Scheme::kAwqGemm, "its rows of 32 weights are no multiple of the group size 12",
                 [](WeightSpec& spec) {
                   spec[Companion::kScale]->shape = {3, 8};
                   spec.group_size = 12;
                 });
  expect_refused(Scheme::kAwqGemm, "its codes is I32 [32], expected two dimensions",
                 [](WeightSpec& spec) { spec[Companion::kCodes]->shape = {32}; });
  expect_refused(Scheme::kAwqGemv, "its scale is BF16 [7, 32], expected [8, 32]",
                 [](WeightSpec& spec) { spec[Companion::kScale]->shape = {7, 32}; });
  expect_refused(Scheme::kAwqGemv,
                 "its rows of 32 weights have 32 scales: no group size explains that",
                 [](WeightSpec& spec) { spec.group_size = 5; });
  expect_refused(Scheme::kAwqGemv, "its group size is -7",
                 [](WeightSpec& spec) { spec.group_size = -7; });
  expect_refused(Scheme::kAwqGemvFast, "its rows of 32 weights are no multiple of 64",
                 [](WeightSpec& spec) { spec[Companion::kCodes]->shape = {2, 32}; });
}

TEST(AwqDecoder, RefusesOtherWidths) {
  for (const Scheme scheme : {Scheme::kAwqGemm, Scheme::kAwqGemv, Scheme::kAwqGemvFast}) {
    WeightSpec spec = awq(scheme);
    spec.bits = 3;
    EXPECT_THAT(make_decoder(spec),
                test::Fails(ErrorCode::kUnsupported, HasSubstr("it has 3 bits, expected 4")));
  }
}

TEST(AwqDecoder, RefusesScalesThatAreNoNumbers) {
  for (const Scheme scheme : {Scheme::kAwqGemm, Scheme::kAwqGemv}) {
    WeightSpec spec = packed(cross_weight(), awq(scheme));
    StoredTensor& scale = *spec[Companion::kScale];
    store_numbers(Dtype::kBF16, std::vector{std::numeric_limits<double>::quiet_NaN()}, scale.data);
    EXPECT_THAT(decode_all(spec),
                test::Fails(ErrorCode::kCorrupt, HasSubstr("its scale of row 0, group 0 is nan")));
  }
}

RC_GTEST_PROP(AwqDecoder, DecodesWhatWasPacked, ()) {
  const Scheme scheme = *rc::gen::element(Scheme::kAwqGemm, Scheme::kAwqGemv, Scheme::kAwqGemvFast);
  const auto size = *rc::gen::element<std::uint64_t>(32, 64, 128);
  const LeveledWeight weight = any_weight({.rows = 8 * *rc::gen::inRange<std::uint64_t>(1, 5),
                                           .columns = 128 * *rc::gen::inRange<std::uint64_t>(1, 3),
                                           .bits = 4,
                                           .group_size = size},
                                          Zeros::kAny);
  WeightSpec like = awq(scheme);
  like[Companion::kScale] = StoredTensor{.dtype = Dtype::kF16};
  const RowBlock block = decoded(packed(weight, like));
  RC_ASSERT(block.values == weights_of(weight));
  RC_ASSERT(block.levels == weight.levels);
  RC_ASSERT(block.scales == weight.scales);
  RC_ASSERT(scheme == Scheme::kAwqGemvFast || block.zeros == weight.zeros);
}

}  // namespace
}  // namespace gridscope::quant
