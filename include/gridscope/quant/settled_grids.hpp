#pragma once

// Groups whose grid needs no search. Where a build kept the levels of the source, its codes are the
// levels of the source's grid, and each weight over its level bounds the step: one look shows
// whether a step gives all weights back. What is left to know is whether other levels could do as
// well, and most sets of levels rule that out, whatever the step.

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "gridscope/quant/error_sums.hpp"
#include "gridscope/quant/weight_decoder.hpp"

namespace gridscope::quant {

// Groups of some rows. Those that are settled are what fit_grids() calls kOnGrid, and none of their
// weights has moved.
struct SettledGroups {
  // How many of the settled ones have their largest weight at level q or -q.
  std::array<std::uint64_t, 9> top_levels = {};
  // How many have a scale of the build that is less, or more, than any feasible step; the others'
  // scales are feasible steps themselves. Magnitudes; at most 4 % less or more.
  std::uint64_t smaller_scales = 0;
  std::uint64_t larger_scales = 0;
  // The groups that only the search can tell about, in order: row-major numbers.
  std::vector<std::uint32_t> open = {};

  [[nodiscard]] std::uint64_t count() const {
    return std::reduce(top_levels.begin(), top_levels.end());
  }
  friend bool operator==(const SettledGroups&, const SettledGroups&) = default;
};

// Settles what groups of the build's size it can.
// `kept`: what compare_int4_bf16() noted of the same rows, which is not looked at again; or
// nothing. Requires: source as in compare_int4_bf16(), every weight finite; build.rows *
// build.groups < 2^32.
void settle_grids(const Int4Rows& build, const SourceRows& source, const KeptLevels& kept,
                  SettledGroups& out);

}  // namespace gridscope::quant
