#pragma once

// Reports of grid checks, made by hand.

#include "gridscope/analysis/grid_report.hpp"

namespace gridscope::test {

// Every member set, every optional part present: two builds, one of them smoothed and damaged.
[[nodiscard]] analysis::GridReport full_grid_report();

// The published check of one tensor: 360,448 groups of 32, a repack and an AWQ build.
[[nodiscard]] analysis::GridReport published_grid_report();

}  // namespace gridscope::test
