#pragma once

// What --fail-on makes of findings.

#include <span>
#include <string_view>

#include "gridscope/core/finding.hpp"

namespace gridscope::cli {

// Whether the worst finding is as severe as `fail_on` says: "error", "warning" or "never".
[[nodiscard]] bool reaches(std::span<const Finding> findings, std::string_view fail_on);

}  // namespace gridscope::cli
