#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <optional>
#include <string>

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

constexpr auto kMinusOne = WeightSpec::GptqZeros::kMinusOne;
constexpr auto kAsStored = WeightSpec::GptqZeros::kAsStored;

WeightSpec gptq(WeightSpec::GptqZeros zeros = kMinusOne) {
  return {.name = "q_proj", .scheme = Scheme::kGptq, .gptq_zeros = zeros};
}

// Packed into words of that type; the shape of an example is not looked at.
WeightSpec gptq_in(Dtype words, WeightSpec::GptqZeros zeros = kMinusOne) {
  WeightSpec like = gptq(zeros);
  like[Companion::kCodes] = StoredTensor{.dtype = words};
  return like;
}

WeightSpec packed_vector(WeightSpec::GptqZeros zeros = kMinusOne) {
  return packed(cross_weight(), gptq(zeros));
}

// A spec that decodes is edited, and has to be refused with this message.
template <typename Edit>
void expect_refused(std::string_view message, Edit edit) {
  WeightSpec spec = packed_vector();
  edit(spec);
  EXPECT_THAT(make_decoder(spec), test::Fails(ErrorCode::kCorrupt, HasSubstr(message)));
}

TEST(GptqDecoder, ReadsBothVersionsAndAutoRoundAlike) {
  const std::vector<double> expected = weights_of(cross_weight());
  for (const auto zeros : {kMinusOne, kAsStored}) {
    for (const bool indexed : {true, false}) {
      WeightSpec spec = packed_vector(zeros);
      if (!indexed) spec[Companion::kGroupIndex].reset();  // as AutoRound writes it
      const RowBlock block = decoded(spec);
      EXPECT_EQ(block.values, expected);
      EXPECT_EQ(block.levels, cross_weight().levels);
      EXPECT_EQ(block.scales, cross_weight().scales);
      EXPECT_THAT(block.zeros, Each(0));
      expect_any_rows_agree(spec);
      expect_int4_agrees(spec);
      expect_whole_is_contiguous(spec);
    }
  }
}

TEST(GptqDecoder, SubtractsTheZeroPointOfEachGroup) {
  for (const auto zeros : {kMinusOne, kAsStored}) {
    const WeightSpec spec = packed(asymmetric_cross_weight(), gptq(zeros));
    const RowBlock block = decoded(spec);
    EXPECT_EQ(block.values, weights_of(asymmetric_cross_weight()));
    EXPECT_THAT(block.zeros, ElementsAre(-5, -4, -3, -2, -1, 0, 1, 2));
    expect_any_rows_agree(spec);
    expect_int4_agrees(spec);
  }
}

// Nibbles 0 to 7 down the first column, zero point 7 in version 1, scale 0.5.
TEST(GptqDecoder, ReadsTheWorkedExample) {
  WeightSpec spec = gptq();
  spec.bits = 4;
  spec[Companion::kCodes] = tensor_of<std::uint32_t>(Dtype::kI32, {1, 1}, {0x76543210});
  spec[Companion::kZeroPoint] = tensor_of<std::uint32_t>(Dtype::kI32, {1, 1}, {0x7});
  spec[Companion::kScale] = floats_of(Dtype::kF16, {1, 1}, {0.5});
  EXPECT_THAT(decoded(spec).values, ElementsAre(-4, -3.5, -3, -2.5, -2, -1.5, -1, -0.5));
}

// The same codes in words of 64 bits, which no writer that could be run takes: the lowest bits hold
// the first input, and of the zero points the first output.
TEST(GptqDecoder, ReadsTheWorkedExampleInWordsOf64Bits) {
  WeightSpec spec = gptq();
  spec.bits = 4;
  spec[Companion::kCodes] =
      tensor_of<std::uint64_t>(Dtype::kI64, {1, 2}, {0xfedcba9876543210, 0x0123456789abcdef});
  spec[Companion::kZeroPoint] = tensor_of<std::uint64_t>(Dtype::kI64, {1, 1}, {0x37});
  spec[Companion::kScale] = floats_of(Dtype::kF16, {1, 2}, {1.0, 0.5});
  const RowBlock block = decoded(spec);
  ASSERT_EQ(block.values.size(), 32);
  for (std::size_t k = 0; k < 16; ++k) {
    EXPECT_EQ(block.values[k], static_cast<double>(k) - 8);
    EXPECT_EQ(block.values[16 + k], (15 - static_cast<double>(k) - 4) / 2);
  }
}

TEST(GptqDecoder, ReadsWordsOfAnyType) {
  for (const Dtype words : {Dtype::kI8, Dtype::kI16, Dtype::kI64, Dtype::kU32}) {
    for (const auto zeros : {kMinusOne, kAsStored}) {
      WeightSpec spec = packed(asymmetric_cross_weight(), gptq_in(words, zeros));
      EXPECT_EQ(decoded(spec).values, weights_of(asymmetric_cross_weight()));
      expect_any_rows_agree(spec);
      expect_int4_agrees(spec);
      expect_whole_is_contiguous(spec);
      spec.bits = 0;
      EXPECT_EQ(decoded(spec).values, weights_of(asymmetric_cross_weight())) << dtype_name(words);
    }
  }
}

TEST(GptqDecoder, RefusesCodesThatWouldRunOverWordsOfOtherTypes) {
  for (const std::uint32_t bits : {3U, 5U, 6U, 7U}) {
    WeightSpec spec = packed(cross_weight(), gptq_in(Dtype::kI16));
    spec.bits = bits;
    EXPECT_THAT(
        make_decoder(spec),
        test::Fails(ErrorCode::kUnsupported, HasSubstr("bits in words of type I16, expected I32")));
  }
}

// Three bits, codes i mod 8: the words of the reference packer.
TEST(GptqDecoder, ReadsThreeBitsAcrossWords) {
  WeightSpec spec = gptq(kAsStored);
  spec.bits = 3;
  spec[Companion::kCodes] =
      tensor_of<std::uint32_t>(Dtype::kI32, {3, 1}, {0x88FAC688, 0xC688FAC6, 0xFAC688FA});
  spec[Companion::kZeroPoint] = tensor_of<std::uint32_t>(Dtype::kI32, {1, 1}, {4});
  spec[Companion::kScale] = floats_of(Dtype::kF16, {1, 1}, {1.0});
  const RowBlock block = decoded(spec);
  ASSERT_EQ(block.levels.size(), 32);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(block.levels[static_cast<std::size_t>(i)], i % 8 - 4);
}

// A zero point of 0 wraps in version 1: what is stored is the largest code.
TEST(GptqDecoder, ReadsAWrappedZeroPoint) {
  LeveledWeight weight = cross_weight();
  weight.zeros.assign(8, -8);
  const WeightSpec spec = packed(weight, gptq());
  EXPECT_EQ(words_of(*spec.find(Companion::kZeroPoint)), std::vector<std::uint32_t>{0xffffffff});
  EXPECT_EQ(decoded(spec).values, weights_of(weight));
}

// The words say which version it is when there is only one zero point.
TEST(GptqDecoder, TrustsTheConstantOfSymmetricWeightsOverTheLabel) {
  for (const auto written : {kMinusOne, kAsStored}) {
    for (const auto label : {kMinusOne, kAsStored}) {
      WeightSpec spec = packed_vector(written);
      spec.gptq_zeros = label;
      spec.symmetric = true;
      EXPECT_EQ(decoded(spec).values, weights_of(cross_weight()));
    }
  }
  WeightSpec spec = packed_vector(kMinusOne);
  spec.gptq_zeros = kAsStored;
  EXPECT_THAT(decoded(spec).zeros, Each(-1)) << "nothing is said about symmetry";
}

// Engines that trust the label read something else.
TEST(GptqDecoder, RemarksOnALabelThatTheConstantContradicts) {
  const auto remark = [](WeightSpec::GptqZeros written, WeightSpec::GptqZeros label,
                         std::optional<bool> symmetric) {
    WeightSpec spec = packed_vector(written);
    spec.gptq_zeros = label;
    spec.symmetric = symmetric;
    const auto decoder = decoder_of(spec);
    return decoder->remark_on(cut_tile(*decoder, spec, {.first = 3, .count = 5}).tile);
  };
  EXPECT_EQ(remark(kMinusOne, kMinusOne, true), "");
  EXPECT_EQ(remark(kAsStored, kAsStored, true), "");
  EXPECT_THAT(remark(kMinusOne, kAsStored, true),
              HasSubstr("those of version 1, but its label says version 2"));
  EXPECT_THAT(remark(kAsStored, kMinusOne, true),
              HasSubstr("those of version 2, but its label says version 1"));
  EXPECT_EQ(remark(kMinusOne, kAsStored, std::nullopt), "");
}

// Only where writers differ: codes that fill words, stored less one, and within the rows asked for.
TEST(GptqDecoder, RemarksOnAWrappedZeroPoint) {
  const auto remark = [](std::uint32_t bits, WeightSpec::GptqZeros zeros, std::uint64_t first_row) {
    LeveledWeight weight = cross_weight();
    weight.bits = bits;
    const auto lowest = static_cast<std::int16_t>(-(1 << (bits - 1)));
    weight.levels.assign(weight.levels.size(), lowest);
    weight.zeros.assign(8, 0);
    weight.zeros[2] = lowest;
    const WeightSpec spec = packed(weight, gptq(zeros));
    const auto decoder = decoder_of(spec);
    return decoder->remark_on(cut_tile(*decoder, spec, {.first = first_row, .count = 5}).tile);
  };
  for (const std::uint32_t bits : {2U, 4U, 8U}) {
    EXPECT_THAT(remark(bits, kMinusOne, 2), HasSubstr("some of its zero points are 0")) << bits;
    EXPECT_EQ(remark(bits, kMinusOne, 3), "") << bits;
    EXPECT_EQ(remark(bits, kAsStored, 2), "") << bits;
  }
  EXPECT_EQ(remark(3, kMinusOne, 2), "");
}

// There the word of a zero point is its own, and nothing is taken from its neighbour.
TEST(GptqDecoder, HasNoRemarkOnWrappingWhereZeroPointsFillTheirWords) {
  LeveledWeight weight = cross_weight();
  weight.zeros.assign(8, -128);
  weight.bits = 8;
  weight.levels.assign(weight.levels.size(), -128);
  const auto remark = [&](Dtype words) {
    const WeightSpec spec = packed(weight, gptq_in(words));
    const auto decoder = decoder_of(spec);
    return decoder->remark_on(cut_tile(*decoder, spec, {.first = 0, .count = 8}).tile);
  };
  EXPECT_EQ(remark(Dtype::kI8), "");
  EXPECT_THAT(remark(Dtype::kI16), HasSubstr("some of its zero points are 0"));
}

TEST(GptqDecoder, RefusesZeroPointsThatContradictSymmetry) {
  WeightSpec spec = packed_vector();
  spec.symmetric = true;
  spec[Companion::kZeroPoint] = tensor_of<std::uint32_t>(Dtype::kI32, {1, 1}, {0x77767777});
  EXPECT_THAT(decode_all(spec),
              test::Fails(ErrorCode::kCorrupt,
                          HasSubstr("its zero point of row 4, group 0 is stored as 6, but it is "
                                    "symmetric: expected 7 everywhere, or 8")));
  spec[Companion::kZeroPoint] = tensor_of<std::uint32_t>(Dtype::kI32, {1, 1}, {0x77877777});
  EXPECT_THAT(decode_all(spec), test::Fails(ErrorCode::kCorrupt, HasSubstr("row 5, group 0")));
}

TEST(GptqDecoder, NeedsNoZeroPointsWhenSymmetric) {
  WeightSpec spec = packed_vector();
  spec[Companion::kZeroPoint].reset();
  EXPECT_THAT(make_decoder(spec),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("its zero point is missing")));
  spec.symmetric = true;
  const RowBlock block = decoded(spec);
  EXPECT_EQ(block.values, weights_of(cross_weight()));
  EXPECT_THAT(block.zeros, IsEmpty());
  expect_int4_agrees(spec);
}

TEST(GptqDecoder, FollowsTheGroupIndex) {
  LeveledWeight weight = {.rows = 2, .columns = 32, .bits = 4, .group_size = 16};
  for (int i = 0; i < 64; ++i) weight.levels.push_back(static_cast<std::int16_t>(i % 16 - 8));
  weight.scales = {1, 2, 4, 8};
  for (std::uint32_t k = 0; k < 32; ++k) weight.group_of_column.push_back((k + 1) % 2);
  WeightSpec spec = packed(weight, gptq());
  EXPECT_EQ(decoded(spec).values, weights_of(weight));
  expect_any_rows_agree(spec);
  EXPECT_FALSE(offers_int4(spec));
  auto layout = decoder_of(spec)->layout();
  EXPECT_TRUE(layout.groups.is_mapped());
  EXPECT_THAT(layout.remarks, IsEmpty());
  spec.act_order = false;
  EXPECT_THAT(decoder_of(spec)->layout().remarks,
              ElementsAre(HasSubstr("although desc_act is false")));
}

TEST(GptqDecoder, CountsNegativeGroupsFromTheEnd) {
  LeveledWeight weight = {.rows = 1, .columns = 8, .bits = 4, .group_size = 4};
  weight.levels = {1, 1, 1, 1, 1, 1, 1, 1};
  weight.scales = {1, 2};
  WeightSpec spec = packed(weight, gptq());
  spec[Companion::kGroupIndex] =
      tensor_of<std::int32_t>(Dtype::kI32, {8}, {0, -1, 1, 0, 0, -2, 0, 1});
  EXPECT_THAT(decoded(spec).values, ElementsAre(1, 2, 2, 1, 1, 1, 1, 2));
}

TEST(GptqDecoder, RefusesGroupsThatAreNotThere) {
  for (const std::int32_t group : {1, -2, 1000000}) {
    std::vector<std::int32_t> index(32, 0);
    index[9] = group;
    expect_refused("its group index of column 9 is " + std::to_string(group) + ", expected below 1",
                   [&](WeightSpec& spec) {
                     spec[Companion::kGroupIndex] =
                         tensor_of<std::int32_t>(Dtype::kI32, {32}, index);
                   });
  }
}

TEST(GptqDecoder, RefusesIncompleteWeights) {
  expect_refused("its scale is missing", [](WeightSpec& spec) { spec[Companion::kScale].reset(); });
  expect_refused("its codes is missing", [](WeightSpec& spec) { spec[Companion::kCodes].reset(); });
  expect_refused("its zero point is missing", [](WeightSpec& spec) {
    spec.symmetric = false;
    spec[Companion::kZeroPoint].reset();
  });
}

TEST(GptqDecoder, RefusesTypesThatTheFormatDoesNotHave) {
  expect_refused(
      "its codes is F32 [4, 8], expected I32 or U32 or I8 or U8 or I16 or U16 or I64 or U64",
      [](WeightSpec& spec) { spec[Companion::kCodes]->dtype = Dtype::kF32; });
  expect_refused("its zero point is I16 [1, 1], expected I32",
                 [](WeightSpec& spec) { spec[Companion::kZeroPoint]->dtype = Dtype::kI16; });
  expect_refused("its group index is F32 [32], expected I32 or I64",
                 [](WeightSpec& spec) { spec[Companion::kGroupIndex]->dtype = Dtype::kF32; });
  expect_refused("its scale is I16 [1, 8], expected F16 or BF16 or F32",
                 [](WeightSpec& spec) { spec[Companion::kScale]->dtype = Dtype::kI16; });
}

TEST(GptqDecoder, RefusesShapesThatContradictEachOther) {
  expect_refused("its codes I32 [4, 8] do not fit its scales BF16 [1, 7]",
                 [](WeightSpec& spec) { spec[Companion::kScale]->shape = {1, 7}; });
  expect_refused("31 inputs of 4 bits take 4 words, found 5", [](WeightSpec& spec) {
    spec[Companion::kCodes]->shape = {5, 8};
    spec[Companion::kGroupIndex] = tensor_of(Dtype::kI32, {31}, std::vector<std::int32_t>(31));
  });
  expect_refused("32 inputs of 3 bits take 3 words, found 4",
                 [](WeightSpec& spec) { spec.bits = 3; });
  expect_refused("its zero point is I32 [2, 1], expected [1, 1]",
                 [](WeightSpec& spec) { spec[Companion::kZeroPoint]->shape = {2, 1}; });
  expect_refused("its rows of 32 weights have 1 groups of size 16",
                 [](WeightSpec& spec) { spec.group_size = 16; });
  expect_refused("its group size is -3", [](WeightSpec& spec) { spec.group_size = -3; });
  expect_refused("it holds no weights",
                 [](WeightSpec& spec) { spec[Companion::kCodes]->shape = {0, 8}; });
  expect_refused("do not fit its scales",
                 [](WeightSpec& spec) { spec[Companion::kCodes]->shape = {2, 2, 8}; });
}

TEST(GptqDecoder, RefusesOtherWidths) {
  for (const std::uint32_t bits : {1U, 9U, 4000000000U}) {
    WeightSpec spec = packed_vector();
    spec.bits = bits;
    EXPECT_THAT(make_decoder(spec),
                test::Fails(ErrorCode::kUnsupported, HasSubstr("bits, expected 2 to 8")));
  }
}

TEST(GptqDecoder, FindsTheBitsThatNobodyClaims) {
  WeightSpec spec = packed_vector();
  spec.bits = 0;
  spec.group_size = 0;
  EXPECT_EQ(decoded(spec).values, weights_of(cross_weight()));
  WeightSpec unindexed = spec;
  unindexed[Companion::kGroupIndex].reset();
  EXPECT_EQ(decoded(unindexed).values, weights_of(cross_weight()));
  spec.symmetric = true;
  spec[Companion::kZeroPoint].reset();
  EXPECT_EQ(decoded(spec).values, weights_of(cross_weight()));
  spec[Companion::kGroupIndex].reset();
  EXPECT_THAT(make_decoder(spec),
              test::Fails(ErrorCode::kCorrupt,
                          HasSubstr("neither its configuration nor its shapes tell its bits")));
}

TEST(GptqDecoder, RefusesPlanesOfBrokenBlocks) {
  WeightSpec spec = packed_vector();
  spec.gptq_packing = WeightSpec::GptqPacking::kPlanar;
  EXPECT_THAT(make_decoder(spec),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("planes need multiples of 32, found 32 "
                                                         "inputs and 8 outputs")));
}

TEST(GptqDecoder, RefusesScalesThatAreNoNumbers) {
  WeightSpec spec = packed_vector();
  std::vector<double> scales = cross_weight().scales;
  scales[3] = std::numeric_limits<double>::infinity();
  spec[Companion::kScale] = floats_of(Dtype::kBF16, {1, 8}, scales);
  EXPECT_THAT(decode_all(spec),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("its scale of row 3, group 0 is inf")));
}

RC_GTEST_PROP(GptqDecoder, DecodesWhatWasPacked, ()) {
  const auto bits = *rc::gen::element<std::uint32_t>(2, 3, 4, 8);
  const WeightShape shape = {.rows = *rc::gen::inRange<std::uint64_t>(1, 40),
                             .columns = 32 * *rc::gen::inRange<std::uint64_t>(1, 4),
                             .bits = bits,
                             .group_size = *rc::gen::element<std::uint64_t>(8, 16, 32)};
  const bool mapped = *rc::gen::arbitrary<bool>();
  const LeveledWeight weight =
      mapped ? any_mapped_weight(shape, Zeros::kAny) : any_weight(shape, Zeros::kAny);
  const WeightSpec spec = packed(weight, gptq(*rc::gen::element(kMinusOne, kAsStored)));
  const RowBlock block = decoded(spec);
  RC_ASSERT(block.values == weights_of(weight));
  RC_ASSERT(block.levels == weight.levels);
  RC_ASSERT(block.scales == weight.scales);
  RC_ASSERT(block.zeros == weight.zeros);
}

RC_GTEST_PROP(GptqDecoder, DecodesWordsOfAnyType, ()) {
  const WeightShape shape = {.rows = *rc::gen::inRange<std::uint64_t>(1, 70),
                             .columns = 32 * *rc::gen::inRange<std::uint64_t>(1, 4),
                             .bits = *rc::gen::element<std::uint32_t>(2, 4, 8),
                             .group_size = *rc::gen::element<std::uint64_t>(16, 32)};
  const LeveledWeight weight = any_weight(shape, Zeros::kAny);
  const Dtype words = *rc::gen::element(Dtype::kI8, Dtype::kI16, Dtype::kI32, Dtype::kI64);
  const WeightSpec spec = packed(weight, gptq_in(words, *rc::gen::element(kMinusOne, kAsStored)));
  RC_ASSERT(spec.find(Companion::kCodes)->dtype == words);
  const RowBlock block = decoded(spec);
  RC_ASSERT(block.values == weights_of(weight));
  RC_ASSERT(block.zeros == weight.zeros);
  expect_any_rows_agree(spec);
}

RC_GTEST_PROP(GptqDecoder, DecodesPlanesOfAnyWidth, ()) {
  const WeightShape shape = {.rows = 32 * *rc::gen::inRange<std::uint64_t>(1, 3),
                             .columns = 64,
                             .bits = *rc::gen::inRange<std::uint32_t>(2, 9),
                             .group_size = 32};
  WeightSpec like = gptq(kAsStored);
  like.gptq_packing = WeightSpec::GptqPacking::kPlanar;
  const LeveledWeight weight = any_weight(shape, Zeros::kAny);
  const RowBlock block = decoded(packed(weight, like));
  RC_ASSERT(block.values == weights_of(weight));
  RC_ASSERT(block.zeros == weight.zeros);
}

TEST(GptqDecoder, DecodesAnyRowsOfOddWidths) {
  LeveledWeight weight = {.rows = 37, .columns = 32, .bits = 3, .group_size = 16};
  for (int i = 0; i < 37 * 32; ++i)
    weight.levels.push_back(static_cast<std::int16_t>(i * 5 % 8 - 4));
  for (int i = 0; i < 74; ++i) {
    weight.scales.push_back(i + 1);
    weight.zeros.push_back(static_cast<std::int16_t>(i % 7 - 4));
  }
  expect_any_rows_agree(packed(weight, gptq()));
}

}  // namespace
}  // namespace gridscope::quant
