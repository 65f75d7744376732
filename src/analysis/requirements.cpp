#include "gridscope/analysis/requirements.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "gridscope/analysis/inspection.hpp"
#include "gridscope/analysis/verdict.hpp"
#include "gridscope/core/text.hpp"

namespace gridscope::analysis {
namespace {

Finding missed(std::string_view code, std::string message) {
  return {.code = std::string(code),
          .severity = Severity::kError,
          .message = std::move(message),
          .remedy = "see the build's worst tensors, or ask for less"};
}

void check(const Requirements& wanted, const GridBuild& build, std::vector<Finding>& findings) {
  const std::string name = quote(build.model);
  const GridTotals& totals = build.smoothing ? build.smoothing->totals_after : build.totals;
  if (wanted.verdict && !meets(build.verdict, *wanted.verdict)) {
    findings.push_back(missed(
        "VERDICT_MISSED", fmt::format("{}: {} is required, the verdict is {}", name,
                                      verdict_key(*wanted.verdict), verdict_key(build.verdict))));
  }
  if (wanted.max_moved && totals.moved_share() > *wanted.max_moved) {
    findings.push_back(
        missed("MOVED_TOO_MANY",
               fmt::format("{}: a share of {:.6f} of the weights moved, at most {:g} may", name,
                           totals.moved_share(), *wanted.max_moved)));
  }
  const auto sqnr = totals.sqnr_db();
  if (wanted.min_sqnr_db && sqnr && *sqnr < *wanted.min_sqnr_db) {
    findings.push_back(
        missed("SQNR_TOO_LOW", fmt::format("{}: the SQNR is {:.2f} dB, at least {:g} "
                                           "dB is required",
                                           name, *sqnr, *wanted.min_sqnr_db)));
  }
}

}  // namespace

void add_requirement_findings(const Requirements& requirements, GridReport& report) {
  for (const GridBuild& build : report.builds) check(requirements, build, report.findings);
  sort_findings(report.findings);
}

}  // namespace gridscope::analysis
