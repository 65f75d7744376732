#pragma once

// What a release asks of a build.

#include <optional>

#include "gridscope/analysis/grid_report.hpp"

namespace gridscope::analysis {

struct Requirements {
  std::optional<Verdict> verdict = {};   // this one or a better one
  std::optional<double> max_moved = {};  // share of weights, 0 to 1
  std::optional<double> min_sqnr_db = {};
};

// Adds an error for each build and each requirement that it misses: VERDICT_MISSED, MOVED_TOO_MANY,
// SQNR_TOO_LOW. Where smoothing was found, shares and SQNR are those with it undone.
void add_requirement_findings(const Requirements& requirements, GridReport& report);

}  // namespace gridscope::analysis
