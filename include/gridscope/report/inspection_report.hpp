#pragma once

// An inspection as text, Markdown and JSON. Every form renders the same value.

#include <string>
#include <string_view>

#include "gridscope/analysis/inspection.hpp"
#include "gridscope/core/result.hpp"

namespace gridscope::report {

// For a terminal; ends with a line break.
[[nodiscard]] std::string inspection_text(const analysis::Inspection& inspection);
[[nodiscard]] std::string inspection_markdown(const analysis::Inspection& inspection);

// "gridscope.inspection/1", see reports/schema/inspection-1.schema.json. Pretty-printed, ends with
// a line break.
[[nodiscard]] std::string inspection_json(const analysis::Inspection& inspection);

// The value that inspection_json wrote. Errors: kCorrupt, kUnsupported for another schema.
[[nodiscard]] Result<analysis::Inspection> parse_inspection(std::string_view json);

}  // namespace gridscope::report
