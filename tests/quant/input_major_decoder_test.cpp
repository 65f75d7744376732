#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "quant/cross_vector.hpp"
#include "quant/tiles.hpp"

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kRows = 6;
constexpr std::uint64_t kColumns = 64;

// A matrix of whole elements, its dimensions exchanged.
void turn(StoredTensor& tensor) {
  const std::uint64_t rows = tensor.shape.at(0);
  const std::uint64_t columns = tensor.shape.at(1);
  const std::size_t bytes = tensor.data.size() / (rows * columns);
  const std::vector<std::byte> stored = tensor.data;
  for (std::uint64_t i = 0; i < rows * columns; ++i) {
    const std::uint64_t to = i % columns * rows + i / columns;
    std::memcpy(&tensor.data[to * bytes], &stored[i * bytes], bytes);
  }
  tensor.shape = {columns, rows};
}

WeightSpec turned(WeightSpec spec) {
  spec.order = WeightSpec::Order::kInputMajor;
  turn(spec[Companion::kCodes].value());
  auto& scale = spec[Companion::kScale].value();
  if (scale.shape.size() == 2) turn(scale);
  return spec;
}

WeightSpec nvfp4() {
  constexpr std::array<std::int16_t, 11> kLevels = {0, 1, 2, 3, 4, 6, -1, -2, -3, -4, -6};
  LeveledWeight weight = {.rows = kRows, .columns = kColumns, .bits = 4, .group_size = 16};
  for (std::size_t i = 0; i < kRows * kColumns; ++i) weight.levels.push_back(kLevels[i * 7 % 11]);
  for (std::size_t i = 0; i < kRows * kColumns / 16; ++i) {
    weight.scales.push_back(std::ldexp(1.0, static_cast<int>(i % 9) - 5));
  }
  WeightSpec spec = packed(weight, {.name = "down_proj", .scheme = Scheme::kModelOptNvfp4});
  spec[Companion::kGlobalScale] = floats_of(Dtype::kF32, {}, {0.375});
  return spec;
}

WeightSpec fp8(StoredTensor scale) {
  WeightSpec spec = {.name = "down_proj", .scheme = Scheme::kModelOptFp8};
  std::vector<std::uint8_t> codes;
  for (std::size_t i = 0; i < kRows * kColumns; ++i) {
    codes.push_back(static_cast<std::uint8_t>(i * 5 % 120));
  }
  spec[Companion::kCodes] = tensor_of(Dtype::kF8E4M3, {kRows, kColumns}, codes);
  spec[Companion::kScale] = std::move(scale);
  return spec;
}

void expect_same(const WeightSpec& spec) {
  const RowBlock by_rows = decoded(spec);
  const RowBlock by_columns = decoded(turned(spec));
  EXPECT_EQ(by_columns.values, by_rows.values);
  EXPECT_EQ(by_columns.levels, by_rows.levels);
  EXPECT_EQ(by_columns.scales, by_rows.scales);
  expect_any_rows_agree(turned(spec));
  expect_whole_is_contiguous(turned(spec));
}

TEST(InputMajorDecoder, ReadsNvfp4AsItWasBeforeItWasTurned) {
  expect_same(nvfp4());
}

TEST(InputMajorDecoder, ReadsFp8AsItWasBeforeItWasTurned) {
  const std::vector<double> by_row = {0.5, 1, 2, 4, 8, 16};
  expect_same(fp8(floats_of(Dtype::kF32, {}, {0.25})));
  expect_same(fp8(floats_of(Dtype::kF32, {kRows}, by_row)));
  expect_same(fp8(floats_of(Dtype::kF32, {kRows, 1}, by_row)));
}

// Two inputs share a byte, the first of them the low nibble: codes 1 and 2 (0.5 and 1) for the
// first output, 3 and 4 (1.5 and 2) for the second.
TEST(InputMajorDecoder, PacksAlongTheInputs) {
  WeightSpec spec = {.name = "down_proj",
                     .scheme = Scheme::kModelOptNvfp4,
                     .order = WeightSpec::Order::kInputMajor};
  std::vector<std::uint8_t> codes(16, 0);
  codes[0] = 0x21;
  codes[1] = 0x43;
  spec[Companion::kCodes] = tensor_of(Dtype::kU8, {8, 2}, codes);
  spec[Companion::kScale] = tensor_of<std::uint8_t>(Dtype::kF8E4M3, {1, 2}, {0x38, 0x40});
  spec[Companion::kGlobalScale] = floats_of(Dtype::kF32, {}, {1.0});
  const RowBlock block = decoded(spec);
  EXPECT_EQ(block.rows, 2U);
  EXPECT_EQ(block.columns, 16U);
  EXPECT_THAT(block.row_values(0).first(2), ElementsAre(0.5, 1));
  EXPECT_THAT(block.row_values(1).first(2), ElementsAre(3, 4));
}

TEST(InputMajorDecoder, NeedsAStripOfEveryStoredRow) {
  const WeightSpec spec = turned(nvfp4());
  const auto decoder = decoder_of(spec);
  ASSERT_NE(decoder, nullptr);
  const TileNeeds needs = decoder->needs({.first = 2, .count = 3});
  EXPECT_EQ(needs[static_cast<std::size_t>(Companion::kCodes)],
            (Strips{.offset = 2, .length = 3, .stride = kRows, .count = kColumns / 2}));
  EXPECT_EQ(needs[static_cast<std::size_t>(Companion::kScale)],
            (Strips{.offset = 2, .length = 3, .stride = kRows, .count = kColumns / 16}));
}

TEST(InputMajorDecoder, RefusesScalesThatMayBeForEither) {
  WeightSpec square = fp8(floats_of(Dtype::kF32, {8}, std::vector<double>(8, 1.0)));
  square[Companion::kCodes] =
      tensor_of(Dtype::kF8E4M3, {8, 8}, std::vector<std::uint8_t>(64, 0x38));
  EXPECT_THAT(decode_all(square), test::IsOk());
  square.order = WeightSpec::Order::kInputMajor;
  EXPECT_THAT(make_decoder(square),
              test::Fails(ErrorCode::kUnsupported, HasSubstr("F32 [8] may be for either")));
  const std::vector<double> by_column(kColumns, 1.0);
  EXPECT_THAT(make_decoder(turned(fp8(floats_of(Dtype::kF32, {kColumns}, by_column)))),
              test::Fails(ErrorCode::kUnsupported, HasSubstr("F32 [64] may be for either")));
}

TEST(InputMajorDecoder, RefusesWhatIsNoMatrixOfWholeElements) {
  WeightSpec spec = turned(nvfp4());
  spec[Companion::kCodes]->shape = {2, 16, 6};
  EXPECT_THAT(make_decoder(spec), test::Fails(ErrorCode::kUnsupported, HasSubstr("U8 [2, 16, 6]")));
  spec[Companion::kCodes].reset();
  EXPECT_THAT(make_decoder(spec),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("its codes is missing")));
}

}  // namespace
}  // namespace gridscope::quant
