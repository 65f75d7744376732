#include <fmt/format.h>

#include <string>

#include "gridscope/core/text.hpp"
#include "gridscope/report/closing.hpp"
#include "gridscope/report/grid_check_report.hpp"
#include "gridscope/report/grid_check_view.hpp"
#include "gridscope/report/text_table.hpp"

namespace gridscope::report {
namespace {

std::string build_text(const analysis::GridBuild& build) {
  std::string text = one_line(build.model) + '\n';
  for (const std::string& note : build_notes(build)) text += "  " + one_line(note) + '\n';
  const TextTable worst = worst_table(build);
  return text + '\n' + (worst.rows.empty() ? "" : render_text(worst) + '\n');
}

}  // namespace

std::string grid_check_text(const analysis::GridReport& report) {
  std::string text = fmt::format("source {}: {}\n", one_line(report.source),
                                 source_grid_summary(report.source_grid));
  if (!report.selection.empty()) {
    text += fmt::format("only part of it was compared: {}\n", one_line(report.selection));
  }
  text += '\n' + render_text(build_table(report)) + '\n';
  for (const analysis::GridBuild& build : report.builds) text += build_text(build);
  text += findings_text(report.findings);
  return text + fmt::format("\nRead: {}\n", grid_reads_summary(report));
}

std::string grid_cost_text(const analysis::GridCost& cost) {
  return fmt::format("{} of tensors, {}; {} ({}) in {}\n", count_of(cost.tensors, "pair"),
                     count_of(cost.weights, "weight"), count_of(cost.bytes, "byte"),
                     format_bytes(cost.bytes), count_of(cost.tile_reads, "tile read"));
}

}  // namespace gridscope::report
