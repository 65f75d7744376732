#pragma once

// The source's own grid over some rows, and how a build's values stand on it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gridscope/analysis/grid_report.hpp"
#include "gridscope/core/dtype.hpp"
#include "gridscope/quant/error_sums.hpp"
#include "gridscope/quant/grid.hpp"
#include "gridscope/quant/row_block.hpp"
#include "gridscope/quant/settled_grids.hpp"
#include "gridscope/quant/weight_decoder.hpp"

namespace gridscope::analysis {

// Finds the source's group size from several samples of rows, since some rows may be unlike the
// others (rows that were never trained, heads that were cut): the largest of the usual sizes with
// which, in most samples that are not dead, nearly all groups that are not dead lie on a grid.
// Groups run along rows.
class GroupSizeVote {
 public:
  explicit GroupSizeVote(std::uint64_t columns);

  void add(const quant::SourceRows& sample);
  // 0 when there is none.
  [[nodiscard]] std::uint64_t winner() const;

 private:
  std::uint64_t columns_;
  std::vector<std::uint64_t> sizes_;
  std::vector<std::uint64_t> votes_;  // for each size
  std::uint64_t samples_ = 0;         // that are not dead
};

struct SourceLattice {
  std::uint64_t columns = 0;
  std::uint64_t group_size = 0;  // divides columns
  // The groups that a build of the same group size settled, whose fits are not searched for.
  std::optional<quant::SettledGroups> settled = {};
  std::vector<quant::GridFit> fits = {};  // of all groups, row-major, or of those settled->open

  [[nodiscard]] std::uint64_t groups_per_row() const { return columns / group_size; }
  // The fit of a group, or nothing for one that is settled.
  [[nodiscard]] const quant::GridFit* find(std::uint64_t group) const;
  // The grid that a weight lies on. Requires: nothing is settled.
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
// The same into memory that is kept, for the groups that are not settled: columns, group_size and
// settled are given.
void fit_lattice(const quant::SourceRows& source, SourceLattice& lattice);

// Counts the lattice's groups by class. `from`: whether the group size was found in the source, or
// taken from the build for want of one.
enum class GroupSizeFrom : std::uint8_t { kSource, kBuild };
void count_classes(const SourceLattice& lattice, GroupSizeFrom from, SourceGrid& grid);
// The second opinion: the published rule on the groups of the first row.
void count_rule(const SourceLattice& lattice, const quant::SourceRows& source, SourceGrid& grid);

// Level moves and scale ratios of a build's rows against the lattice of the same rows. Requires: of
// the first form that nothing is settled, of the second that nothing is or this build settled it.
void count_moves(const SourceLattice& lattice, const quant::SourceRows& source,
                 const quant::GroupLayout& groups, const quant::RowBlock& build,
                 GridTotals& totals);
void count_moves(const SourceLattice& lattice, const quant::SourceRows& source,
                 const quant::Int4Rows& build, GridTotals& totals);

}  // namespace gridscope::analysis
