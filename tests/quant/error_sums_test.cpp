#include "gridscope/quant/error_sums.hpp"

#include <gmock/gmock.h>

#include <random>
#include <vector>

#include "gridscope/quant/codec.hpp"
#include "quant/int4_pair.hpp"

namespace gridscope::quant {
namespace {

std::vector<std::byte> stored(Dtype dtype, const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * dtype_info(dtype).block_bits / 8);
  store_numbers(dtype, values, bytes);
  return bytes;
}

TEST(ErrorSums, AddsWhatComesLater) {
  const ErrorSums a{.weights = 1, .moved = 2, .abs_error = 0.5, .worst = {.error = 1.0, .row = 1}};
  ErrorSums sum{.weights = 10, .dead_groups = 3, .product = 2.0, .worst = {.error = 1.0}};
  sum.add(a);
  EXPECT_EQ(sum, (ErrorSums{.weights = 11,
                            .moved = 2,
                            .dead_groups = 3,
                            .abs_error = 0.5,
                            .product = 2.0,
                            .worst = {.error = 1.0}}));
  sum.add({.worst = {.error = 1.5, .row = 4, .column = 2}});
  EXPECT_EQ(sum.worst.row, 4);
}

// 3 * 0.2001953125 needs nine bits: the product is rounded once, to the type of the source.
TEST(ErrorSums, RoundsTheBuildToTheTypeOfTheSource) {
  const double exact = 3 * 0.2001953125;
  const RowBlock block{.rows = 1,
                       .columns = 1,
                       .values = {exact},
                       .levels = {3},
                       .stride = 1,
                       .scales = {0.2001953125}};
  const WeightLayout layout{.rows = 1, .columns = 1, .groups = GroupLayout::regular(1, 1)};
  for (const Dtype dtype : {Dtype::kBF16, Dtype::kF16, Dtype::kF32, Dtype::kF64}) {
    const auto bytes = stored(dtype, {exact});
    EXPECT_EQ(compare_rows(layout, block, {.dtype = dtype, .bytes = bytes}).values_identical, 1);
  }
  EXPECT_NE(rounded_to(Dtype::kBF16, exact), exact);
}

// Two rows, columns 0 and 2 in one group, 1 in another; the third has no column.
TEST(ErrorSums, FollowsMappedGroups) {
  const std::vector<std::uint32_t> group_of_column = {0, 1, 0};
  const WeightLayout layout{.rows = 2,
                            .columns = 3,
                            .groups = GroupLayout::mapped(group_of_column, 3),
                            .bits = 4,
                            .lowest_level = -8,
                            .highest_level = 7};
  const RowBlock block{.first_row = 40,
                       .rows = 2,
                       .columns = 3,
                       .values = {1, 2, 3, -8, 7, 0},
                       .levels = {1, 2, 3, -8, 7, 0},
                       .stride = 3,
                       .scales = {1, 4, 1, 1, 4, 1},
                       .zeros = {0, 1, 1, 0, 0, 1}};
  const auto bytes = stored(Dtype::kBF16, {1, 4, 3, -8, 9.5, 0});
  const ErrorSums sums = compare_rows(layout, block, {.dtype = Dtype::kBF16, .bytes = bytes});
  EXPECT_EQ(sums.weights, 6);
  EXPECT_EQ(sums.groups, 4);
  EXPECT_EQ(sums.groups_identical, 2);
  EXPECT_EQ(sums.moved, 1) << "2 is half of a step of 4, 2.5 is more";
  EXPECT_EQ(sums.saturated_low, 1);
  EXPECT_EQ(sums.saturated_high, 1);
  EXPECT_EQ(sums.zero_points_used, 1);
  EXPECT_EQ(sums.worst, (WorstError{.error = 2.5, .row = 41, .column = 1}));
}

TEST(ErrorSums, ComparesPlainBuilds) {
  const WeightLayout layout{.rows = 1, .columns = 4, .groups = GroupLayout::regular(4, 4)};
  const RowBlock block{.rows = 1, .columns = 4, .values = {1, 2, 3, 4}, .stride = 1};
  const auto bytes = stored(Dtype::kF16, {1, 2, 3, 5});
  const ErrorSums sums = compare_rows(layout, block, {.dtype = Dtype::kF16, .bytes = bytes});
  EXPECT_EQ(sums.values_identical, 3);
  EXPECT_EQ(sums.moved, 0);
  EXPECT_EQ(sums.saturated_low + sums.saturated_high, 0);
  EXPECT_EQ(sums.abs_error, 1.0);
}

// Rows are added in order, so tiles of whole rows give the sums of all rows only when the caller
// adds them likewise; counts never depend on the cut.
TEST(ErrorSums, CountsTheSameInTiles) {
  const auto pair = test::make_pair({.rows = 4, .columns = 128}, 9);
  const auto bytes = pair.source_bytes();
  const RowBlock all = pair.row_block();
  const ErrorSums whole = compare_rows(pair.layout(), all, {.dtype = Dtype::kBF16, .bytes = bytes});
  ErrorSums sum;
  for (std::uint64_t row = 0; row < 4; ++row) {
    RowBlock one{.first_row = all.first_row + row, .rows = 1, .columns = 128, .stride = 4};
    const auto take = [&](const auto& from, auto& to, std::uint64_t width) {
      to.assign(from.begin() + static_cast<std::ptrdiff_t>(row * width),
                from.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
    };
    take(all.values, one.values, 128);
    take(all.levels, one.levels, 128);
    take(all.scales, one.scales, 4);
    sum.add(
        compare_rows(pair.layout(), one,
                     {.dtype = Dtype::kBF16, .bytes = std::span(bytes).subspan(row * 256, 256)}));
  }
  EXPECT_EQ(sum, whole) << "a tile of one row has the sums of its row";
}

}  // namespace
}  // namespace gridscope::quant
