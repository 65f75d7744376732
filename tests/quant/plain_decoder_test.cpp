#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "quant/cross_vector.hpp"
#include "quant/tiles.hpp"

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kInputMajor = WeightSpec::Order::kInputMajor;

WeightSpec plain(StoredTensor codes, WeightSpec::Order order = WeightSpec::Order::kOutputMajor) {
  WeightSpec spec = {.name = "q_proj", .order = order};
  spec[Companion::kCodes] = std::move(codes);
  return spec;
}

std::vector<double> counting(std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<double>(i);
  return values;
}

TEST(PlainDecoder, ReadsEveryFloatType) {
  for (const Dtype dtype : {Dtype::kF64, Dtype::kF32, Dtype::kF16, Dtype::kBF16}) {
    const WeightSpec spec = plain(floats_of(dtype, {4, 6}, counting(24)));
    const RowBlock block = decoded(spec);
    EXPECT_EQ(block.values, counting(24)) << dtype_name(dtype);
    EXPECT_EQ(block.stride, 1);
    EXPECT_THAT(block.levels, IsEmpty());
    EXPECT_THAT(block.scales, IsEmpty());
    expect_any_rows_agree(spec);
    expect_whole_is_contiguous(spec);
  }
}

TEST(PlainDecoder, HasOneGroupInARow) {
  const auto decoder = decoder_of(plain(floats_of(Dtype::kBF16, {4, 6}, counting(24))));
  ASSERT_NE(decoder, nullptr);
  EXPECT_EQ(decoder->layout().groups.size(), 6);
  EXPECT_EQ(decoder->layout().lowest_level, decoder->layout().highest_level);
  EXPECT_FALSE(decoder->layout().scale_dtype.has_value());
}

TEST(PlainDecoder, TurnsInputsBeforeOutputsAround) {
  const WeightSpec spec = plain(floats_of(Dtype::kBF16, {3, 4}, counting(12)), kInputMajor);
  EXPECT_THAT(decoded(spec).values, ElementsAre(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11));
  expect_any_rows_agree(spec);
  expect_whole_is_contiguous(spec);
}

TEST(PlainDecoder, NeedsAStripOfEveryStoredRow) {
  const auto decoder =
      decoder_of(plain(floats_of(Dtype::kBF16, {2, 3, 4}, counting(24)), kInputMajor));
  ASSERT_NE(decoder, nullptr);
  const auto codes = [&](RowRange rows) { return decoder->needs(rows)[0].value_or(Strips{}); };
  EXPECT_EQ(codes({.first = 5, .count = 2}),
            (Strips{.offset = 26, .length = 4, .stride = 8, .count = 3}));
  EXPECT_EQ(codes({.first = 3, .count = 2}),
            (Strips{.offset = 0, .length = 48, .stride = 48, .count = 1}))
      << "both matrices";
}

TEST(PlainDecoder, TurnsStackedMatricesAroundOneByOne) {
  const WeightSpec spec = plain(floats_of(Dtype::kF32, {3, 2, 4}, counting(24)), kInputMajor);
  const RowBlock block = decoded(spec);
  EXPECT_EQ(block.rows, 12);
  EXPECT_THAT(block.row_values(0), ElementsAre(0, 4));
  EXPECT_THAT(block.row_values(7), ElementsAre(11, 15));
  EXPECT_THAT(block.row_values(8), ElementsAre(16, 20));
  expect_any_rows_agree(spec);
  expect_whole_is_contiguous(spec);
}

TEST(PlainDecoder, TakesAVectorForOneRow) {
  const RowBlock block = decoded(plain(floats_of(Dtype::kBF16, {5}, counting(5))));
  EXPECT_EQ(block.rows, 1);
  EXPECT_EQ(block.values, counting(5));
}

TEST(PlainDecoder, RefusesOtherTypes) {
  EXPECT_THAT(
      make_decoder(plain({.dtype = Dtype::kI32, .shape = {8, 4}})),
      test::Fails(ErrorCode::kCorrupt,
                  HasSubstr("its codes is I32 [8, 4], expected BF16 or F16 or F32 or F64")));
  EXPECT_THAT(make_decoder(plain({.dtype = Dtype::kF8E4M3, .shape = {8, 4}})),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("its scale is missing")));
  EXPECT_THAT(make_decoder(plain({.dtype = Dtype::kBF16, .shape = {8, 0}})),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("it holds no weights")));
  EXPECT_THAT(make_decoder({.name = "q_proj"}),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("its codes is missing")));
}

RC_GTEST_PROP(PlainDecoder, BothOrdersGiveTheSameWeights, ()) {
  const auto rows = *rc::gen::inRange<std::uint64_t>(1, 20);
  const auto columns = *rc::gen::inRange<std::uint64_t>(1, 20);
  const auto values = *rc::gen::container<std::vector<double>>(
      rows * columns, rc::gen::cast<double>(rc::gen::inRange(-256, 257)));
  std::vector<double> turned(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    turned[i % columns * rows + i / columns] = values[i];
  }
  RC_ASSERT(decoded(plain(floats_of(Dtype::kBF16, {rows, columns}, values))).values == values);
  RC_ASSERT(decoded(plain(floats_of(Dtype::kBF16, {columns, rows}, turned), kInputMajor)).values ==
            values);
}

}  // namespace
}  // namespace gridscope::quant
