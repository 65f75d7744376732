#pragma once

// Every code that a report or a line on standard error can carry, for people who meet one.

#include <span>

#include "gridscope/cli/verbs.hpp"

namespace gridscope::cli {

// Codes of findings, in order of their names, each with its severity and what it means.
[[nodiscard]] std::span<const Term> finding_codes();

// Codes of warnings on standard error, which are about reading and not about the checkpoint.
[[nodiscard]] std::span<const Term> warning_codes();

}  // namespace gridscope::cli
