#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "quant/any_weight.hpp"
#include "quant/cross_vector.hpp"
#include "quant/int4_tiles.hpp"
#include "quant/tiles.hpp"
#include "spec_checks.hpp"

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using CtPacking = WeightSpec::CtPacking;

WeightSpec ct(CtPacking packing = CtPacking::kDense) {
  return {.name = "q_proj", .scheme = Scheme::kCtPackQuantized, .ct_packing = packing};
}

WeightSpec packed_vector() {
  return packed(cross_weight(), ct());
}

StoredTensor shape_of(const std::vector<std::int64_t>& shape) {
  return tensor_of<std::int64_t>(Dtype::kI64, {shape.size()}, shape);
}

// A spec that decodes is edited, and has to be refused with this message.
template <typename Edit>
void expect_refused(const std::string& message, Edit edit) {
  WeightSpec spec = packed(asymmetric_cross_weight(), ct());
  edit(spec);
  EXPECT_THAT(decode_all(spec),
              test::Fails(ErrorCode::kCorrupt,
                          HasSubstr("weight \"q_proj\" (ct_pack_quantized): " + message)));
}

TEST(CtPackedDecoder, ReadsTheCrossFormatVector) {
  const WeightSpec spec = packed_vector();
  const std::vector<std::uint32_t> words = words_of(*spec.find(Companion::kCodes));
  EXPECT_THAT(std::vector(words.begin(), words.begin() + 8),
              ElementsAre(0x52FC9630, 0xDA741EB8, 0x52FC9630, 0xDA741EB8, 0xA741EB85, 0x2FC9630D,
                          0xA741EB85, 0x2FC9630D));
  const RowBlock block = decoded(spec);
  EXPECT_EQ(block.values, weights_of(cross_weight()));
  EXPECT_EQ(block.levels, cross_weight().levels);
  EXPECT_EQ(block.scales, cross_weight().scales);
  EXPECT_THAT(block.zeros, IsEmpty());
  expect_any_rows_agree(spec);
  expect_int4_agrees(spec);
  expect_whole_is_contiguous(spec);
}

TEST(CtPackedDecoder, ReadsZeroPointsDownTheRows) {
  LeveledWeight weight = cross_weight();
  weight.zeros = {-4, -3, -2, -1, 0, 1, 2, 3};  // codes 4 to 11
  const WeightSpec spec = packed(weight, ct());
  EXPECT_THAT(words_of(*spec.find(Companion::kZeroPoint)), ElementsAre(0xBA987654));
  const RowBlock block = decoded(spec);
  EXPECT_EQ(block.values, weights_of(weight));
  EXPECT_EQ(block.zeros, weight.zeros);
  expect_any_rows_agree(spec);
  expect_int4_agrees(spec);
  expect_whole_is_contiguous(spec);
}

TEST(CtPackedDecoder, ReadsUnpackedZeroPoints) {
  WeightSpec like = ct();
  like[Companion::kZeroPoint] = StoredTensor{.dtype = Dtype::kI8};
  const WeightSpec spec = packed(asymmetric_cross_weight(), like);
  EXPECT_EQ(spec.find(Companion::kZeroPoint)->shape, (std::vector<std::uint64_t>{8, 1}));
  EXPECT_EQ(decoded(spec).values, weights_of(asymmetric_cross_weight()));
  expect_any_rows_agree(spec);
  expect_int4_agrees(spec);
}

// q = -8, -7, -1, 0, 1, 2, 6, 7 and a scale of 0x3C4D: rounded to BF16, as upstream has it.
TEST(CtPackedDecoder, ReadsTheWorkedExample) {
  WeightSpec spec = ct();
  spec.bits = 4;
  spec[Companion::kCodes] = tensor_of<std::uint32_t>(Dtype::kI32, {1, 1}, {0xFEA98710});
  spec[Companion::kShape] = shape_of({1, 8});
  spec[Companion::kScale] = tensor_of<std::uint16_t>(Dtype::kBF16, {1, 1}, {0x3C4D});
  const RowBlock block = decoded(spec);
  EXPECT_THAT(block.levels, ElementsAre(-8, -7, -1, 0, 1, 2, 6, 7));
  EXPECT_EQ(block.values[1], -0.08758544921875);
  EXPECT_EQ(rounded_to(Dtype::kBF16, block.values[0]), -0.10009765625);
  EXPECT_EQ(rounded_to(Dtype::kBF16, block.values[1]), -0.08740234375);
  EXPECT_EQ(rounded_to(Dtype::kBF16, block.values[7]), 0.08740234375);
}

TEST(CtPackedDecoder, OffersAViewOfTheCodes) {
  const WeightSpec spec = packed_vector();
  const auto decoder = decoder_of(spec);
  ASSERT_NE(decoder, nullptr);
  const OwnedTile owned = cut_tile(*decoder, spec, {.first = 2, .count = 6});
  Int4Rows rows;
  const auto offered = decoder->decode_int4(owned.tile, {.first = 3, .count = 4}, rows);
  ASSERT_TRUE(offered && *offered);
  EXPECT_EQ(rows.codes.data(), owned.tile.bytes[0].data() + 16);
  EXPECT_EQ(rows.row_bytes, 16);
  EXPECT_THAT(rows.own, IsEmpty());
}

TEST(CtPackedDecoder, OffersNothingWhereKernelsCannotFollow) {
  EXPECT_TRUE(offers_int4(packed_vector()));
  WeightSpec other_width = packed({.rows = 1,
                                   .columns = 16,
                                   .bits = 3,
                                   .group_size = 16,
                                   .levels = std::vector<std::int16_t>(16),
                                   .scales = {1.0},
                                   .zeros = {}},
                                  ct());
  EXPECT_FALSE(offers_int4(other_width));
  WeightSpec ragged = packed_vector();
  ragged[Companion::kShape] = shape_of({8, 28});
  ragged.group_size = 16;
  ragged[Companion::kScale] = floats_of(Dtype::kBF16, {8, 2}, std::vector<double>(16, 0.5));
  EXPECT_FALSE(offers_int4(ragged));
}

TEST(CtPackedDecoder, ReadsOneScaleForARowOrForAll) {
  for (const std::vector<std::uint64_t>& shape :
       {std::vector<std::uint64_t>{}, {1}, {8}, {8, 1}, {1, 2}, {2, 2}}) {
    WeightSpec spec = packed_vector();
    spec.group_size = 0;
    std::vector<double> scales(elements_of({.shape = shape}), 0.5);
    spec[Companion::kScale] = floats_of(Dtype::kF32, shape, scales);
    const RowBlock block = decoded(spec);
    for (std::size_t i = 0; i < block.values.size(); ++i) {
      ASSERT_EQ(block.values[i], cross_weight().levels[i] * 0.5);
    }
    expect_any_rows_agree(spec);
  }
}

TEST(CtPackedDecoder, ReadsARaggedLastGroupAndSaysSo) {
  WeightSpec spec = packed_vector();
  spec.group_size = 20;
  std::vector<double> scales;
  for (int i = 0; i < 16; ++i) scales.push_back(i + 1);
  spec[Companion::kScale] = floats_of(Dtype::kBF16, {8, 2}, scales);
  const auto decoder = decoder_of(spec);
  ASSERT_NE(decoder, nullptr);
  EXPECT_THAT(decoder->layout().remarks, ElementsAre("its last groups have 12 weights of 20"));
  const RowBlock block = decoded(spec);
  EXPECT_EQ(block.values[32 + 19], cross_weight().levels[32 + 19] * 3.0);
  EXPECT_EQ(block.values[32 + 20], cross_weight().levels[32 + 20] * 4.0);
  expect_any_rows_agree(spec);
}

// Columns that are no multiple of eight: the rest of the last word says nothing.
TEST(CtPackedDecoder, IgnoresThePaddingOfAWord) {
  WeightSpec spec = packed_vector();
  spec[Companion::kShape] = shape_of({8, 30});
  spec.group_size = -1;
  const RowBlock block = decoded(spec);
  EXPECT_EQ(block.columns, 30);
  EXPECT_EQ(block.levels[30], cross_weight().levels[32]);
}

TEST(CtPackedDecoder, ReadsStackedExperts) {
  WeightSpec spec = packed_vector();
  spec[Companion::kCodes].value().shape = {2, 4, 4};
  spec[Companion::kScale].value().shape = {2, 4, 1};
  spec[Companion::kShape] = shape_of({2, 4, 32});
  EXPECT_EQ(decoded(spec).values, weights_of(cross_weight()));
  expect_any_rows_agree(spec);
  expect_whole_is_contiguous(spec);
}

// Zero points of each matrix start in words of their own.
TEST(CtPackedDecoder, ReadsZeroPointsOfStackedExperts) {
  WeightSpec spec = packed_vector();
  spec.symmetric = false;
  spec[Companion::kCodes].value().shape = {2, 4, 4};
  spec[Companion::kScale].value().shape = {2, 4, 1};
  spec[Companion::kShape] = shape_of({2, 4, 32});
  spec[Companion::kZeroPoint] = tensor_of<std::uint32_t>(Dtype::kI32, {2, 1, 1}, {0x7654, 0xBA98});
  LeveledWeight expected = cross_weight();
  expected.zeros = {-4, -3, -2, -1, 0, 1, 2, 3};
  EXPECT_EQ(decoded(spec).values, weights_of(expected));
  expect_any_rows_agree(spec);
  expect_whole_is_contiguous(spec);
}

TEST(CtPackedDecoder, FindsTheBitsThatNobodyClaims) {
  WeightSpec spec = packed_vector();
  spec.bits = 0;
  EXPECT_EQ(decoded(spec).levels, cross_weight().levels);
  spec[Companion::kShape] = shape_of({8, 20});
  spec.group_size = 0;
  EXPECT_THAT(
      make_decoder(spec),
      test::Fails(ErrorCode::kCorrupt,
                  HasSubstr("neither its configuration nor 4 words for 20 columns tell its bits")));
}

TEST(CtPackedDecoder, RefusesIncompleteWeights) {
  expect_refused("its codes is missing", [](auto& spec) { spec[Companion::kCodes].reset(); });
  expect_refused("its scale is missing", [](auto& spec) { spec[Companion::kScale].reset(); });
  expect_refused("its shape is missing", [](auto& spec) { spec[Companion::kShape].reset(); });
  expect_refused("its zero point is missing",
                 [](auto& spec) { spec[Companion::kZeroPoint].reset(); });
}

TEST(CtPackedDecoder, RefusesOtherTypes) {
  expect_refused("its codes is U8 [8, 4], expected I32",
                 [](auto& spec) { spec[Companion::kCodes].value().dtype = Dtype::kU8; });
  expect_refused("its scale is I32 [8, 1], expected F16 or BF16 or F32",
                 [](auto& spec) { spec[Companion::kScale].value().dtype = Dtype::kI32; });
  expect_refused("its zero point is F16 [1, 1], expected I32 or I8",
                 [](auto& spec) { spec[Companion::kZeroPoint].value().dtype = Dtype::kF16; });
}

TEST(CtPackedDecoder, RefusesShapesThatContradictEachOther) {
  expect_refused("its codes I32 [8, 4] do not hold a weight of shape [9, 32]",
                 [](auto& spec) { spec[Companion::kShape] = shape_of({9, 32}); });
  expect_refused("its codes I32 [8, 4] do not hold a weight of shape [8, 32, 1]",
                 [](auto& spec) { spec[Companion::kShape] = shape_of({8, 32, 1}); });
  expect_refused("its codes I32 [8, 4] do not hold a weight of shape [8, -32]",
                 [](auto& spec) { spec[Companion::kShape] = shape_of({8, -32}); });
  expect_refused("its codes has 4 words for 40 of 4 bits, expected 5", [](auto& spec) {
    spec[Companion::kShape] = shape_of({8, 40});
    spec.group_size = 0;
  });
  expect_refused("its zero point I32 [1, 2] does not fit 1 groups in a row",
                 [](auto& spec) { spec[Companion::kZeroPoint].value().shape = {1, 2}; });
  expect_refused("its zero point has 2 words for 8 of 4 bits, expected 1",
                 [](auto& spec) { spec[Companion::kZeroPoint].value().shape = {2, 1}; });
  expect_refused("its rows of 32 weights have 1 groups of size 16",
                 [](auto& spec) { spec.group_size = 16; });
  expect_refused("its group size is -2", [](auto& spec) { spec.group_size = -2; });
  expect_refused("its group index has 3 numbers for 32 columns", [](auto& spec) {
    spec[Companion::kGroupIndex] = tensor_of<std::int32_t>(Dtype::kI32, {3}, {0, 0, 0});
  });
}

TEST(CtPackedDecoder, RefusesOtherWidths) {
  WeightSpec spec = packed_vector();
  spec.bits = 9;
  EXPECT_THAT(make_decoder(spec),
              test::Fails(ErrorCode::kUnsupported, HasSubstr("it has 9 bits, expected 1 to 8")));
}

TEST(CtPackedDecoder, RefusesNumbersThatMeanNothing) {
  expect_refused("its scale of row 0, group 0 is nan", [](auto& spec) {
    store_le<std::uint16_t>(spec[Companion::kScale].value().data, 0x7FC0);
  });
  expect_refused("its zero point of row 0, group 0 is -5, expected 0 in a symmetric weight",
                 [](auto& spec) { spec.symmetric = true; });
  expect_refused("its zero point of row 1, group 0 is 9, expected -8 to 7", [](auto& spec) {
    spec[Companion::kZeroPoint] =
        tensor_of<std::int8_t>(Dtype::kI8, {8, 1}, {0, 9, 0, 0, 0, 0, 0, 0});
  });
}

RC_GTEST_PROP(CtPackedDecoder, DecodesWhatWasPacked, ()) {
  const WeightShape shape = {.rows = *rc::gen::inRange<std::uint64_t>(1, 12),
                             .columns = 160 * *rc::gen::inRange<std::uint64_t>(1, 3),
                             .bits = *rc::gen::inRange<std::uint32_t>(1, 9),
                             .group_size = *rc::gen::element<std::uint64_t>(5, 16, 32, 160)};
  const auto zeros = *rc::gen::element(Zeros::kNone, Zeros::kAny);
  const bool mapped = *rc::gen::arbitrary<bool>();
  const LeveledWeight weight = mapped ? any_mapped_weight(shape, zeros) : any_weight(shape, zeros);
  WeightSpec like = ct(*rc::gen::element(CtPacking::kDense, CtPacking::kWholeCodes));
  if (*rc::gen::arbitrary<bool>()) like[Companion::kZeroPoint] = StoredTensor{.dtype = Dtype::kI8};
  const WeightSpec spec = packed(weight, like);
  const RowBlock block = decoded(spec);
  RC_ASSERT(block.levels == weight.levels);
  RC_ASSERT(block.scales == weight.scales);
  RC_ASSERT(block.zeros == weight.zeros);
  RC_ASSERT(block.values == weights_of(weight));
  expect_any_rows_agree(spec);
  if (offers_int4(spec)) expect_int4_agrees(spec);
}

}  // namespace
}  // namespace gridscope::quant
