#include "gridscope/quant/error_sums.hpp"

#include <algorithm>
#include <vector>

#include "gridscope/quant/codec.hpp"
#include "group_sums.hpp"

// The reference: every number in full, one after the other. Kernels have to give the same bits.

namespace gridscope::quant {
namespace {

// One row of both sides, its weights in the order of their groups.
struct RowPair {
  std::vector<double> stored;  // the source by column
  std::vector<double> source;
  std::vector<double> build;
};

void load_row(const GroupLayout& groups, const RowBlock& block, std::uint64_t row,
              const SourceRows& source, RowPair& pair) {
  const std::size_t row_bytes = source.bytes.size() / block.rows;
  load_numbers(source.dtype, source.bytes.subspan(row * row_bytes, row_bytes), pair.stored);
  const auto values = block.row_values(row);
  const auto order = groups.order();
  for (std::size_t position = 0; position < values.size(); ++position) {
    const std::size_t column = order.empty() ? position : order[position];
    pair.source[position] = pair.stored[column];
    pair.build[position] = rounded_to(source.dtype, values[column]);
  }
}

void add_groups(const GroupLayout& groups, const RowBlock& block, std::uint64_t row,
                const RowPair& pair, ErrorSums& sums) {
  const std::uint64_t number = block.first_row + row;
  for (std::uint64_t g = 0; g < groups.groups(number); ++g) {
    const RowRange range = groups.positions(number, g);
    GroupPair group{.build = std::span(pair.build).subspan(range.first, range.count),
                    .source = std::span(pair.source).subspan(range.first, range.count),
                    .row = number,
                    .first_column = range.first};
    if (!block.scales.empty()) group.scale = block.scales[row * block.stride + g];
    if (groups.is_mapped()) group.columns = groups.order().subspan(range.first, range.count);
    add_group(group, sums);
    const bool uses_zero = !block.zeros.empty() && block.zeros[row * block.stride + g] != 0;
    if (uses_zero && range.count > 0) ++sums.zero_points_used;
  }
}

void count_saturated(const WeightLayout& layout, std::span<const std::int16_t> levels,
                     ErrorSums& sums) {
  if (layout.lowest_level == layout.highest_level) return;
  sums.saturated_low += static_cast<std::uint64_t>(std::ranges::count(levels, layout.lowest_level));
  sums.saturated_high +=
      static_cast<std::uint64_t>(std::ranges::count(levels, layout.highest_level));
}

}  // namespace

void ErrorSums::add(const ErrorSums& later) {
  weights += later.weights;
  groups += later.groups;
  groups_identical += later.groups_identical;
  values_identical += later.values_identical;
  moved += later.moved;
  saturated_low += later.saturated_low;
  saturated_high += later.saturated_high;
  dead_groups += later.dead_groups;
  dead_in_both += later.dead_in_both;
  source_dead_groups += later.source_dead_groups;
  zero_points_used += later.zero_points_used;
  build_non_finite += later.build_non_finite;
  source_non_finite += later.source_non_finite;
  abs_error += later.abs_error;
  squared_error += later.squared_error;
  squared_source += later.squared_source;
  squared_build += later.squared_build;
  product += later.product;
  if (later.worst.error > worst.error) worst = later.worst;
}

ErrorSums compare_rows(const WeightLayout& layout, const RowBlock& block,
                       const SourceRows& source) {
  ErrorSums tile;
  RowPair pair{.stored = std::vector<double>(block.columns),
               .source = std::vector<double>(block.columns),
               .build = std::vector<double>(block.columns)};
  for (std::uint64_t row = 0; row < block.rows; ++row) {
    load_row(layout.groups, block, row, source, pair);
    ErrorSums sums;
    add_groups(layout.groups, block, row, pair, sums);
    tile.add(sums);
  }
  count_saturated(layout, block.levels, tile);
  return tile;
}

}  // namespace gridscope::quant
