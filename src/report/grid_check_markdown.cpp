#include <fmt/format.h>

#include <string>

#include "gridscope/report/closing.hpp"
#include "gridscope/report/grid_check_report.hpp"
#include "gridscope/report/grid_check_view.hpp"
#include "gridscope/report/text_table.hpp"

namespace gridscope::report {
namespace {

std::string build_markdown(const analysis::GridBuild& build) {
  std::string text = fmt::format("## Build {}\n\n", markdown_text(build.model));
  for (const std::string& note : build_notes(build)) text += "- " + markdown_text(note) + '\n';
  const TextTable worst = worst_table(build);
  return text + '\n' + (worst.rows.empty() ? "" : render_markdown(worst) + '\n');
}

}  // namespace

std::string grid_check_markdown(const analysis::GridReport& report) {
  std::string text = fmt::format("# Grid check against {}\n\n", markdown_text(report.source));
  text += fmt::format("Source: {}.\n\n", source_grid_summary(report.source_grid));
  if (!report.selection.empty()) {
    text += fmt::format("Only part of it was compared: {}.\n\n", markdown_text(report.selection));
  }
  text += render_markdown(build_table(report)) + '\n';
  for (const analysis::GridBuild& build : report.builds) text += build_markdown(build);
  text += findings_markdown(report.findings);
  return text + fmt::format("Read: {}.\n", grid_reads_summary(report));
}

}  // namespace gridscope::report
