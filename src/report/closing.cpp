#include "gridscope/report/closing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "gridscope/core/text.hpp"
#include "gridscope/report/text_table.hpp"

namespace gridscope::report {
namespace {

// Of one line: messages are composed of names that were cut to fit before.
constexpr std::size_t kMaxLineBytes = 4000;

std::string tensors_text(const Finding& finding) {
  const std::size_t named = std::min(finding.tensors.size(), kTensorsNamed);
  std::string text;
  for (std::size_t i = 0; i < named; ++i)
    text += (i == 0 ? "" : ", ") + one_line(finding.tensors[i]);
  if (finding.tensor_count <= named) return text;
  return text + fmt::format(" and {} more", with_thousands(finding.tensor_count - named));
}

std::string finding_text(const Finding& finding) {
  std::string text = fmt::format("{} {}: {}\n", severity_name(finding.severity),
                                 one_line(finding.code), one_line(finding.message));
  if (!finding.remedy.empty()) text += fmt::format("  remedy: {}\n", one_line(finding.remedy));
  if (!finding.tensors.empty()) text += fmt::format("  tensors: {}\n", tensors_text(finding));
  return text;
}

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

std::string findings_summary(std::span<const Finding> findings) {
  std::vector<std::string> counts;
  for (const Severity severity : {Severity::kError, Severity::kWarning, Severity::kNote}) {
    const auto n = std::ranges::count(findings, severity, &Finding::severity);
    if (n == 0) continue;
    counts.push_back(count_of(static_cast<std::uint64_t>(n), severity_name(severity)));
  }
  if (counts.empty()) return "No findings";
  return fmt::format("Findings: {}", fmt::join(counts, ", "));
}

std::string findings_text(std::span<const Finding> findings) {
  std::string text = findings_summary(findings) + '\n';
  for (const Finding& finding : findings) text += finding_text(finding);
  return text;
}

std::string findings_markdown(std::span<const Finding> findings) {
  std::string text = fmt::format("## {}\n\n", findings_summary(findings));
  for (const Finding& finding : findings) text += finding_markdown(finding);
  if (!findings.empty()) text += '\n';
  return text;
}

std::string reads_summary(const ReadTotals& reads, double seconds) {
  return fmt::format("{}, {} ({}), {:.3f} seconds, {}", count_of(reads.requests, "request"),
                     count_of(reads.bytes, "byte"), format_bytes(reads.bytes), seconds,
                     count_of(reads.cache_hits, "cache hit"));
}

std::string one_line(std::string_view text) {
  return printable(text, kMaxLineBytes);
}

}  // namespace gridscope::report
