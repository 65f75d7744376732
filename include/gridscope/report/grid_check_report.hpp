#pragma once

// A grid check as text, Markdown and JSON. Every form renders the same value.

#include <string>
#include <string_view>

#include "gridscope/analysis/grid_plan.hpp"
#include "gridscope/analysis/grid_report.hpp"
#include "gridscope/core/result.hpp"

namespace gridscope::report {

// For a terminal; ends with a line break.
[[nodiscard]] std::string grid_check_text(const analysis::GridReport& report);
[[nodiscard]] std::string grid_check_markdown(const analysis::GridReport& report);

// "gridscope.grid-check/1", see reports/schema/grid-check-1.schema.json. Pretty-printed, ends with
// a line break.
[[nodiscard]] std::string grid_check_json(const analysis::GridReport& report);

// The value that grid_check_json wrote. Errors: kCorrupt, kUnsupported for another schema.
[[nodiscard]] Result<analysis::GridReport> parse_grid_check(std::string_view json);

// What a run would read: "1,204 pairs of weights, ...", or "gridscope.grid-check-plan/1".
[[nodiscard]] std::string grid_cost_text(const analysis::GridCost& cost);
[[nodiscard]] std::string grid_cost_json(const analysis::GridCost& cost);

}  // namespace gridscope::report
