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

WeightSpec sparse(const std::string& format = "sparse-bitmask") {
  WeightSpec spec = {.name = "q_proj", .scheme = Scheme::kCtSparse, .format = format};
  spec[Companion::kCodes] = StoredTensor{.dtype = Dtype::kF32};
  return spec;
}

// [0, 1, 0, 2, 0, 0, 0, 0, 3], [4, 0, ..], [0, ..].
WeightSpec small() {
  WeightSpec spec = sparse();
  spec[Companion::kShape] = tensor_of<std::int64_t>(Dtype::kI64, {2}, {3, 9});
  spec[Companion::kCodes] = floats_of(Dtype::kBF16, {4}, {1, 2, 3, 4});
  spec[Companion::kBitmask] =
      tensor_of<std::uint8_t>(Dtype::kU8, {3, 2}, {0b00001010, 1, 0b1, 0, 0, 0});
  spec[Companion::kRowOffsets] = tensor_of<std::int64_t>(Dtype::kI64, {3}, {0, 3, 4});
  return spec;
}

template <typename Edit>
void expect_refused(const std::string& message, Edit edit) {
  WeightSpec spec = small();
  edit(spec);
  EXPECT_THAT(decode_all(spec), test::Fails(ErrorCode::kCorrupt, HasSubstr(message)));
}

TEST(SparseDecoder, PutsValuesBackIntoTheirPlaces) {
  const RowBlock block = decoded(small());
  EXPECT_THAT(block.row_values(0), ElementsAre(0, 1, 0, 2, 0, 0, 0, 0, 3));
  EXPECT_THAT(block.row_values(1), ElementsAre(4, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(block.row_values(2), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0));
  expect_any_rows_agree(small());
  expect_whole_is_contiguous(small());
}

TEST(SparseDecoder, ReadsTwoOfFour) {
  WeightSpec spec = sparse("sparse-24-bitmask");
  spec[Companion::kShape] = tensor_of<std::int64_t>(Dtype::kI64, {2, 1}, {2, 4});
  spec[Companion::kCodes] = floats_of(Dtype::kF16, {2, 2}, {1, 2, 3, 4});
  spec[Companion::kBitmask] = tensor_of<std::uint8_t>(Dtype::kU8, {2, 1}, {0b1001, 0b0110});
  EXPECT_THAT(decoded(spec).values, ElementsAre(1, 0, 0, 2, 0, 3, 4, 0));
  expect_any_rows_agree(spec);
  expect_whole_is_contiguous(spec);
}

TEST(SparseDecoder, ReadsSparseCodesWithScales) {
  WeightSpec spec = small();
  spec[Companion::kCodes] = tensor_of<std::uint8_t>(Dtype::kF8E4M3, {4}, {0x38, 0x40, 0xB8, 0x30});
  spec[Companion::kScale] = floats_of(Dtype::kF32, {3, 1}, {2, 4, 8});
  const RowBlock block = decoded(spec);
  EXPECT_THAT(block.row_values(0), ElementsAre(0, 2, 0, 4, 0, 0, 0, 0, -2));
  EXPECT_THAT(block.row_values(1), ElementsAre(2, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(block.scales, ElementsAre(2, 4, 8));
  expect_any_rows_agree(spec);
  expect_whole_is_contiguous(spec);

  spec[Companion::kCodes] = tensor_of<std::int8_t>(Dtype::kI8, {4}, {1, -2, 3, -4});
  EXPECT_THAT(decoded(spec).row_values(1), ElementsAre(-16, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST(SparseDecoder, RefusesAMaskThatMarksMoreOrLess) {
  expect_refused("its bitmask marks 2 of 9 values in row 1, expected 1",
                 [](auto& spec) { spec[Companion::kBitmask].value().data[2] = std::byte{0b11}; });
  expect_refused("its bitmask marks 3 of 9 values in row 0, expected 3", [](auto& spec) {
    spec[Companion::kBitmask].value().data[1] = std::byte{0b10};  // a column that is not there
  });
}

TEST(SparseDecoder, RefusesShapesThatContradictEachOther) {
  expect_refused("its bitmask U8 [3, 2] does not belong to a weight of shape [3, 17]",
                 [](auto& spec) {
                   spec[Companion::kShape] = tensor_of<std::int64_t>(Dtype::kI64, {2}, {3, 17});
                 });
  expect_refused("its bitmask U8 [3, 2] does not belong to a weight of shape [4, 9]",
                 [](auto& spec) {
                   spec[Companion::kShape] = tensor_of<std::int64_t>(Dtype::kI64, {2}, {4, 9});
                 });
  expect_refused("it has 2 row offsets for 3 rows", [](auto& spec) {
    spec[Companion::kRowOffsets] = tensor_of<std::int64_t>(Dtype::kI64, {2}, {0, 3});
  });
  expect_refused("its row offset of row 2 is 2, expected 3 to 4", [](auto& spec) {
    spec[Companion::kRowOffsets] = tensor_of<std::int64_t>(Dtype::kI64, {3}, {0, 3, 2});
  });
  expect_refused("its row offset of row 1 is 5, expected 0 to 4", [](auto& spec) {
    spec[Companion::kRowOffsets] = tensor_of<std::int64_t>(Dtype::kI64, {3}, {0, 5, 5});
  });
  expect_refused("its row offset of row 0 is 1, expected 0 to 0", [](auto& spec) {
    spec[Companion::kRowOffsets] = tensor_of<std::int64_t>(Dtype::kI64, {3}, {1, 3, 4});
  });
}

TEST(SparseDecoder, RefusesIncompleteWeights) {
  expect_refused("its codes is missing", [](auto& spec) { spec[Companion::kCodes].reset(); });
  expect_refused("its bitmask is missing", [](auto& spec) { spec[Companion::kBitmask].reset(); });
  expect_refused("its shape is missing", [](auto& spec) { spec[Companion::kShape].reset(); });
  expect_refused("its row offsets is missing",
                 [](auto& spec) { spec[Companion::kRowOffsets].reset(); });
}

RC_GTEST_PROP(SparseDecoder, DecodesWhatWasPacked, ()) {
  LeveledWeight weight = any_weight({.rows = *rc::gen::inRange<std::uint64_t>(1, 8),
                                     .columns = *rc::gen::inRange<std::uint64_t>(1, 40),
                                     .bits = 4,
                                     .group_size = 1},
                                    Zeros::kNone);
  for (std::int16_t& level : weight.levels) {
    if (*rc::gen::arbitrary<bool>()) level = 0;
  }
  const WeightSpec spec = packed(weight, sparse());
  RC_ASSERT(decoded(spec).values == weights_of(weight));
  expect_any_rows_agree(spec);
}

RC_GTEST_PROP(SparseDecoder, DecodesTwoOfFourThatWerePacked, ()) {
  LeveledWeight weight =
      any_weight({.rows = 3, .columns = 24, .bits = 4, .group_size = 24}, Zeros::kNone);
  for (std::size_t quad = 0; quad < weight.levels.size(); quad += 4) {
    for (int zero = 0; zero < 3; ++zero) {
      weight.levels[quad + *rc::gen::inRange<std::size_t>(0, 4)] = 0;
    }
    const auto kept = std::count_if(weight.levels.begin() + static_cast<long>(quad),
                                    weight.levels.begin() + static_cast<long>(quad) + 4,
                                    [](int level) { return level != 0; });
    if (kept == 3) weight.levels[quad] = weight.levels[quad + 1] = 0;
  }
  RC_ASSERT(decoded(packed(weight, sparse("sparse-24-bitmask"))).values == weights_of(weight));
}

}  // namespace
}  // namespace gridscope::quant
