#pragma once

// What a grid check's report and its journal write alike.

#include "gridscope/analysis/grid_report.hpp"
#include "json_parts.hpp"

namespace gridscope::report {

[[nodiscard]] Json grid_tensor_json(const analysis::GridTensor& tensor);
[[nodiscard]] analysis::GridTensor read_grid_tensor(const Members& members);

[[nodiscard]] Json plain_tensor_json(const analysis::PlainTensor& tensor);
[[nodiscard]] analysis::PlainTensor read_plain_tensor(const Members& members);

// Members that can be derived from others (mean, RMSE, SQNR) are written for the reader's sake and
// not read back.
[[nodiscard]] Json grid_totals_json(const analysis::GridTotals& totals);
[[nodiscard]] analysis::GridTotals read_grid_totals(const Members& members);

[[nodiscard]] Json source_grid_json(const analysis::SourceGrid& grid);
[[nodiscard]] analysis::SourceGrid read_source_grid(const Members& members);

[[nodiscard]] Json verdict_json(analysis::Verdict verdict);
[[nodiscard]] analysis::Verdict read_verdict(const Members& members);

}  // namespace gridscope::report
