#include <fmt/format.h>

#include <algorithm>

#include "gridscope/core/text.hpp"
#include "gridscope/report/inspection_report.hpp"
#include "gridscope/report/inspection_view.hpp"
#include "gridscope/report/text_table.hpp"

namespace gridscope::report {
namespace {

std::string tensors_markdown(const Finding& finding) {
  const std::size_t named = std::min(finding.tensors.size(), kTensorsNamed);
  std::string text;
  for (std::size_t i = 0; i < named; ++i) {
    text += (i == 0 ? "" : ", ") + markdown_code(finding.tensors[i]);
  }
  if (finding.tensor_count <= named) return text;
  return text + fmt::format(" and {} more", with_thousands(finding.tensor_count - named));
}

std::string finding_markdown(const Finding& finding) {
  std::string text = fmt::format("- **{}** {}: {}\n", severity_name(finding.severity),
                                 markdown_code(finding.code), markdown_text(finding.message));
  if (!finding.remedy.empty()) {
    text += fmt::format("  - remedy: {}\n", markdown_text(finding.remedy));
  }
  if (!finding.tensors.empty()) text += fmt::format("  - tensors: {}\n", tensors_markdown(finding));
  return text;
}

}  // namespace

// Every line opens with a word of this report, never with a foreign one: what stands first on a
// line decides what Markdown makes of it.
std::string inspection_markdown(const analysis::Inspection& inspection) {
  std::string text = fmt::format("# Inspection of {}\n\n", markdown_text(model_title(inspection)));
  text += fmt::format("Stored as {}.\n\n", markdown_text(storage_summary(inspection)));
  text += render_markdown(row_table(inspection)) + '\n';
  if (!inspection.tensors.empty()) {
    text += "## Tensors\n\n" + render_markdown(tensor_table(inspection)) + '\n';
  }
  text += fmt::format("## {}\n\n", findings_summary(inspection.findings));
  for (const Finding& finding : inspection.findings) text += finding_markdown(finding);
  if (!inspection.findings.empty()) text += '\n';
  return text + fmt::format("Read: {}.\n", reads_summary(inspection));
}

}  // namespace gridscope::report
