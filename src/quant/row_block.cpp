#include "gridscope/quant/row_block.hpp"

#include <algorithm>
#include <numeric>

#include "gridscope/core/checked.hpp"

namespace gridscope::quant {

GroupLayout GroupLayout::regular(std::uint64_t columns, std::uint64_t size,
                                 std::uint64_t phase_step) {
  GroupLayout layout;
  layout.columns_ = columns;
  layout.size_ = size;
  layout.phase_step_ = phase_step % size;
  // Rows start at multiples of the greatest common divisor; the largest of them below `size` cuts
  // the row into the most groups.
  const std::uint64_t largest_phase = size - std::gcd(layout.phase_step_, size);
  layout.stride_ = ceil_div(largest_phase + columns, size);
  return layout;
}

GroupLayout GroupLayout::mapped(std::span<const std::uint32_t> group_of_column,
                                std::uint64_t groups) {
  GroupLayout layout;
  layout.columns_ = group_of_column.size();
  layout.stride_ = groups;
  layout.group_of_.assign(group_of_column.begin(), group_of_column.end());
  layout.starts_.assign(groups + 1, 0);
  for (const std::uint32_t group : group_of_column) ++layout.starts_[group + 1];
  std::partial_sum(layout.starts_.begin(), layout.starts_.end(), layout.starts_.begin());
  layout.order_.resize(group_of_column.size());
  std::vector<std::uint32_t> next(layout.starts_.begin(), layout.starts_.end() - 1);
  for (std::uint32_t column = 0; column < group_of_column.size(); ++column) {
    layout.order_[next[group_of_column[column]]++] = column;
  }
  return layout;
}

std::uint64_t GroupLayout::phase(std::uint64_t row) const {
  return row % size_ * phase_step_ % size_;
}

std::uint64_t GroupLayout::groups(std::uint64_t row) const {
  return is_mapped() ? stride_ : ceil_div(phase(row) + columns_, size_);
}

RowRange GroupLayout::positions(std::uint64_t row, std::uint64_t g) const {
  if (is_mapped()) return {.first = starts_[g], .count = starts_[g + 1] - starts_[g]};
  const std::uint64_t offset = phase(row);
  const std::uint64_t first = g == 0 ? 0 : g * size_ - offset;
  const std::uint64_t end = std::min(columns_, (g + 1) * size_ - offset);
  return {.first = first, .count = end - first};
}

std::uint64_t GroupLayout::group_of(std::uint64_t row, std::uint64_t column) const {
  return is_mapped() ? group_of_[column] : (phase(row) + column) / size_;
}

}  // namespace gridscope::quant
