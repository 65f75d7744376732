#include "ct_groups.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gridscope/core/checked.hpp"
#include "spec_checks.hpp"
#include "stored_numbers.hpp"

namespace gridscope::quant {
namespace {

constexpr double kNotFilledIn = -1.0;

Result<std::vector<std::uint32_t>> group_of_column(const WeightSpec& spec,
                                                   std::span<const double> numbers,
                                                   std::uint64_t groups) {
  std::vector<std::uint32_t> index;
  index.reserve(numbers.size());
  for (const double number : numbers) {
    if (number < 0 || number >= static_cast<double>(groups)) {
      return corrupt(spec, fmt::format("its group index of column {} is {}, expected below {}",
                                       index.size(), number, groups));
    }
    index.push_back(static_cast<std::uint32_t>(number));
  }
  return index;
}

bool are_neighbours(std::span<const std::uint32_t> index, std::uint64_t group_size) {
  for (std::size_t column = 0; column < index.size(); ++column) {
    if (index[column] != column / group_size) return false;
  }
  return true;
}

// The writer sorts columns by group and cuts them into equal parts, so equal they must be.
bool are_of_one_size(const GroupLayout& layout, std::uint64_t group_size) {
  for (std::uint64_t g = 0; g < layout.stride(); ++g) {
    if (layout.positions(0, g).count != group_size) return false;
  }
  return true;
}

}  // namespace

Result<CtGroups> solve_ct_groups(const WeightSpec& spec, std::uint64_t columns,
                                 std::uint64_t group_size) {
  CtGroups regular = {.layout = GroupLayout::regular(columns, group_size)};
  if (spec.find(Companion::kGroupIndex) == nullptr) return regular;
  GRIDSCOPE_TRY(const std::vector<double> numbers,
                whole_numbers(spec, Companion::kGroupIndex, {Dtype::kI32, Dtype::kI64}));
  if (numbers.size() != columns) {
    return corrupt(spec, fmt::format("its group index has {} numbers for {} columns",
                                     numbers.size(), columns));
  }
  if (std::ranges::find(numbers, kNotFilledIn) != numbers.end()) {
    regular.remarks.emplace_back("its group index was never filled in");
    return regular;
  }
  GRIDSCOPE_TRY(const std::vector<std::uint32_t> index,
                group_of_column(spec, numbers, ceil_div(columns, group_size)));
  if (are_neighbours(index, group_size)) return regular;
  CtGroups mapped = {.layout = GroupLayout::mapped(index, ceil_div(columns, group_size))};
  if (!are_of_one_size(mapped.layout, group_size)) {
    mapped.remarks.push_back(
        fmt::format("its group index gives groups other than {} columns", group_size));
  }
  return mapped;
}

Status check_ct_zeros(const WeightSpec& spec, const WeightLayout& layout, RowRange rows,
                      std::span<const std::int16_t> zeros) {
  const bool symmetric = spec.symmetric == true;
  const int lowest = symmetric ? 0 : layout.lowest_level;
  const int highest = symmetric ? 0 : layout.highest_level;
  const auto odd =
      std::ranges::find_if(zeros, [&](int zero) { return zero < lowest || zero > highest; });
  if (odd == zeros.end()) return {};
  const auto index = static_cast<std::uint64_t>(odd - zeros.begin());
  const std::uint64_t stride = layout.groups.stride();
  return corrupt(spec, fmt::format("its zero point of row {}, group {} is {}, expected {}",
                                   rows.first + index / stride, index % stride, *odd,
                                   symmetric ? "0 in a symmetric weight"
                                             : fmt::format("{} to {}", lowest, highest)));
}

}  // namespace gridscope::quant
