#pragma once

// The source's own grid over some rows, and how a build's values stand on it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gridscope/analysis/grid_report.hpp"
#include "gridscope/core/dtype.hpp"
#include "gridscope/quant/error_sums.hpp"
#include "gridscope/quant/grid.hpp"
#include "gridscope/quant/row_block.hpp"
#include "gridscope/quant/weight_decoder.hpp"

namespace gridscope::analysis {

// The largest of the usual group sizes with which nearly all groups that are not dead lie on a
// grid; 0 when there is none. Groups run along rows.
[[nodiscard]] std::uint64_t find_group_size(const quant::SourceRows& source, std::uint64_t columns);

struct SourceLattice {
  std::uint64_t columns = 0;
  std::uint64_t group_size = 0;           // divides columns
  std::vector<quant::GridFit> fits = {};  // row-major; unspecified for groups that are settled
  // Of the same groups, by quant::settle_grids(); or empty. And the steps of those that are.
  std::vector<std::int8_t> settled = {};
  std::vector<float> steps = {};

  [[nodiscard]] std::uint64_t groups_per_row() const { return columns / group_size; }
  [[nodiscard]] bool is_settled(std::size_t group) const {
    return !settled.empty() && settled[group] != 0;
  }
  // The grid that a weight lies on. Requires: its group is not settled.
  [[nodiscard]] const quant::GridFit& at(std::uint64_t row, std::uint64_t column) const {
    return fits[row * groups_per_row() + column / group_size];
  }
  // Whether these columns of a row, at least one, lie in one group.
  [[nodiscard]] bool is_one_group(quant::RowRange range) const {
    return range.count > 0 && range.first / group_size == (range.end() - 1) / group_size;
  }
};

// Requires: group_size divides columns.
[[nodiscard]] SourceLattice fit_lattice(const quant::SourceRows& source, std::uint64_t columns,
                                        std::uint64_t group_size);
// The same into memory that is kept, for the groups that are not settled.
void fit_lattice(const quant::SourceRows& source, SourceLattice& lattice);

// Counts the lattice's groups by class. `is_found`: whether the group size was found there, and not
// taken from the build for want of one.
enum class GroupSizeFrom : std::uint8_t { kSource, kBuild };
void count_classes(const SourceLattice& lattice, GroupSizeFrom from, SourceGrid& grid);
// The second opinion: the published rule on the groups of the first row.
void count_rule(const SourceLattice& lattice, const quant::SourceRows& source, SourceGrid& grid);

// Level moves and scale ratios of a build's rows against the lattice of the same rows. Settled
// groups are understood where the build's groups are those of the lattice.
void count_moves(const SourceLattice& lattice, const quant::SourceRows& source,
                 const quant::GroupLayout& groups, const quant::RowBlock& build,
                 GridTotals& totals);
void count_moves(const SourceLattice& lattice, const quant::SourceRows& source,
                 const quant::Int4Rows& build, GridTotals& totals);

}  // namespace gridscope::analysis
