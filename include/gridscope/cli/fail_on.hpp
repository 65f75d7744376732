#pragma once

// What --fail-on makes of findings.

#include <span>
#include <string>
#include <string_view>

#include "gridscope/cli/verbs.hpp"
#include "gridscope/core/finding.hpp"

namespace gridscope::cli {

// "2 errors and 1 warning": the findings that are as severe as `fail_on` says, which is "error",
// "warning" or "never". Empty when there are none.
[[nodiscard]] std::string failures(std::span<const Finding> findings, std::string_view fail_on);

// The report with the exit code that its findings give it.
[[nodiscard]] Answer judged(std::string report, std::span<const Finding> findings,
                            std::string_view fail_on);

}  // namespace gridscope::cli
