#include "gridscope/cli/fail_on.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gridscope::cli {
namespace {

// "1 error", "2 errors"; empty for none.
std::string counted(std::span<const Finding> findings, Severity severity, std::string_view name) {
  const auto count = std::ranges::count(findings, severity, &Finding::severity);
  if (count == 0) return {};
  return fmt::format("{} {}{}", count, name, count == 1 ? "" : "s");
}

}  // namespace

std::string failures(std::span<const Finding> findings, std::string_view fail_on) {
  if (fail_on == "never") return {};
  std::string errors = counted(findings, Severity::kError, "error");
  if (fail_on == "error") return errors;
  const std::string warnings = counted(findings, Severity::kWarning, "warning");
  const bool both = !errors.empty() && !warnings.empty();
  return errors + (both ? " and " : "") + warnings;
}

Answer judged(std::string report, std::span<const Finding> findings, std::string_view fail_on) {
  Answer answer{.text = std::move(report), .failures = failures(findings, fail_on)};
  answer.exit_code = answer.failures.empty() ? 0 : 1;
  return answer;
}

}  // namespace gridscope::cli
