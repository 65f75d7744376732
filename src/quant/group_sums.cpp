#include "group_sums.hpp"

#include <algorithm>
#include <cmath>

namespace gridscope::quant {
namespace {

bool all_zero(std::span<const double> values) {
  return std::ranges::all_of(values, [](double value) { return value == 0.0; });
}

void note_worst(const WorstError& found, WorstError& worst) {
  const bool earlier = found.row == worst.row && found.column < worst.column;
  if (found.error > worst.error || (found.error == worst.error && earlier)) worst = found;
}

// Adds what needs both numbers to be finite.
void add_finite(const GroupPair& group, std::size_t i, GroupLanes& lanes, ErrorSums& row) {
  const double build = group.build[i];
  const double source = group.source[i];
  // In float, so that its square is exact in double.
  const auto error = static_cast<double>(std::fabs(static_cast<float>(build - source)));
  const std::size_t lane = i % kLanes;
  lanes.abs_error[lane] += error;
  lanes.squared_error[lane] += error * error;
  lanes.squared_source[lane] += source * source;
  lanes.squared_build[lane] += build * build;
  lanes.product[lane] += source * build;
  if (group.scale && 2 * error > std::fabs(*group.scale)) ++row.moved;
  const std::uint64_t column = group.columns.empty() ? group.first_column + i : group.columns[i];
  note_worst({.error = error, .row = group.row, .column = column}, row.worst);
}

}  // namespace

void add_group(const GroupPair& group, ErrorSums& row) {
  const std::size_t size = group.build.size();
  if (size == 0) return;
  std::uint64_t identical = 0;
  GroupLanes lanes;
  for (std::size_t i = 0; i < size; ++i) {
    if (group.build[i] == group.source[i]) ++identical;
    const bool build_is_finite = std::isfinite(group.build[i]);
    const bool source_is_finite = std::isfinite(group.source[i]);
    if (!build_is_finite) ++row.build_non_finite;
    if (!source_is_finite) ++row.source_non_finite;
    if (build_is_finite && source_is_finite) add_finite(group, i, lanes, row);
  }
  lanes.add_to(row);
  row.weights += size;
  ++row.groups;
  row.values_identical += identical;
  if (identical == size) ++row.groups_identical;
  const bool build_is_dead = all_zero(group.build);
  const bool source_is_dead = all_zero(group.source);
  if (build_is_dead) ++row.dead_groups;
  if (source_is_dead) ++row.source_dead_groups;
  if (build_is_dead && source_is_dead) ++row.dead_in_both;
}

}  // namespace gridscope::quant
