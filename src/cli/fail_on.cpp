#include "gridscope/cli/fail_on.hpp"

#include <optional>

namespace gridscope::cli {

bool reaches(std::span<const Finding> findings, std::string_view fail_on) {
  const std::optional<Severity> worst = worst_severity(findings);
  if (!worst || fail_on == "never") return false;
  return *worst >= (fail_on == "warning" ? Severity::kWarning : Severity::kError);
}

}  // namespace gridscope::cli
