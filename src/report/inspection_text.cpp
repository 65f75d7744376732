#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "gridscope/core/text.hpp"
#include "gridscope/report/inspection_report.hpp"
#include "gridscope/report/inspection_view.hpp"
#include "gridscope/report/text_table.hpp"

namespace gridscope::report {
namespace {

// Of one line: messages are composed of names that were cut to fit before.
constexpr std::size_t kMaxLineBytes = 4000;

std::string safe(std::string_view text) {
  return printable(text, kMaxLineBytes);
}

std::string tensors_text(const Finding& finding) {
  const std::size_t named = std::min(finding.tensors.size(), kTensorsNamed);
  std::string text;
  for (std::size_t i = 0; i < named; ++i) text += (i == 0 ? "" : ", ") + safe(finding.tensors[i]);
  if (finding.tensor_count <= named) return text;
  return text + fmt::format(" and {} more", with_thousands(finding.tensor_count - named));
}

std::string finding_text(const Finding& finding) {
  std::string text = fmt::format("{} {}: {}\n", severity_name(finding.severity), safe(finding.code),
                                 safe(finding.message));
  if (!finding.remedy.empty()) text += fmt::format("  remedy: {}\n", safe(finding.remedy));
  if (!finding.tensors.empty()) text += fmt::format("  tensors: {}\n", tensors_text(finding));
  return text;
}

}  // namespace

std::string inspection_text(const analysis::Inspection& inspection) {
  std::string text =
      fmt::format("{}: {}\n\n", safe(model_title(inspection)), safe(storage_summary(inspection)));
  text += render_text(row_table(inspection)) + '\n';
  if (!inspection.tensors.empty()) text += render_text(tensor_table(inspection)) + '\n';
  text += findings_summary(inspection.findings) + '\n';
  for (const Finding& finding : inspection.findings) text += finding_text(finding);
  return text + fmt::format("\nRead: {}\n", reads_summary(inspection));
}

}  // namespace gridscope::report
