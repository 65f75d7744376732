#pragma once

// What the text and the Markdown form of a grid check share: sentences and tables, with foreign
// strings as they are. The form that shows them escapes them.

#include <string>
#include <vector>

#include "gridscope/analysis/grid_report.hpp"
#include "gridscope/report/text_table.hpp"

namespace gridscope::report {

// "360,448 groups of 32: 360,448 on a 4-bit grid, 0 ambiguous, 0 dead, 0 off the grid, 0 not
// finite".
[[nodiscard]] std::string source_grid_summary(const analysis::SourceGrid& grid);

// A line for each build: verdict, weights, groups and values identical, moved, largest and mean
// error, SQNR; and a second one for what smoothing leaves.
[[nodiscard]] TextTable build_table(const analysis::GridReport& report);

// The ten tensors that are worst: by verdict, then by moved share, then by SQNR. None that are
// exact.
inline constexpr std::size_t kWorstTensors = 10;
[[nodiscard]] TextTable worst_table(const analysis::GridBuild& build);

// One sentence each: how it is stored, level moves, smoothing, coverage.
[[nodiscard]] std::vector<std::string> build_notes(const analysis::GridBuild& build);

// "12,345,678 bytes (11.8 MiB) of weights in 34 reads".
[[nodiscard]] std::string grid_reads_summary(const analysis::GridReport& report);

}  // namespace gridscope::report
