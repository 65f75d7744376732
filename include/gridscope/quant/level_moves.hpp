#pragma once

// How many levels of the source's own grid each weight of a build has moved: the move of a weight
// with level q on a lattice of step s, whose dequantized value is exactly D, is the integer nearest
// to (D - q * s) / s. A value exactly halfway counts for the smaller move.

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

#include "gridscope/quant/error_sums.hpp"
#include "gridscope/quant/grid.hpp"

namespace gridscope::quant {

struct LevelMoves {
  static constexpr int kFarthest = 16;

  std::array<std::uint64_t, 2 * kFarthest + 1> counts = {};  // of moves from -kFarthest on
  std::uint64_t beyond = 0;                                  // moved farther, or not finite
  std::uint64_t ties = 0;                                    // halfway; counted above as well

  [[nodiscard]] std::uint64_t of(int move) const {
    return *std::next(counts.begin(), kFarthest + move);
  }
  [[nodiscard]] std::uint64_t weights() const;
  void add(const LevelMoves& other);

  friend bool operator==(const LevelMoves&, const LevelMoves&) = default;
};

// The grids of some rows of the source.
struct SourceGrid {
  std::uint64_t group_size = 0;   // divides the columns
  std::span<const GridFit> fits;  // rows x (columns / group_size)
};

// Counts the weights of groups that are on a grid (kOnGrid); others are left out.
// Requires: source as in compare_rows(); fits of its groups.
[[nodiscard]] LevelMoves count_level_moves(const RowBlock& build, const SourceRows& source,
                                           const SourceGrid& grid);

// The same counts for 4-bit codes against BF16. Requires: as compare_int4_bf16().
[[nodiscard]] LevelMoves count_level_moves(const Int4Rows& build, const SourceRows& source,
                                           const SourceGrid& grid);
// The same counts of some of the build's groups, which are those of the grid as well. Requires:
// grid.fits are those of `groups`; grid.group_size == build.group_size.
[[nodiscard]] LevelMoves count_level_moves(const Int4Rows& build, const SourceRows& source,
                                           const SourceGrid& grid,
                                           std::span<const std::uint32_t> groups);

}  // namespace gridscope::quant
