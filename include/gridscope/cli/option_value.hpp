#pragma once

// Strict reading of option values: the whole text or nothing, no exponent, no blanks, and no sign
// but the minus of a real number.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gridscope/cli/verbs.hpp"
#include "gridscope/core/result.hpp"

namespace gridscope::cli {

[[nodiscard]] std::optional<std::uint64_t> parse_count(std::string_view text);

// "1500", "500MB" (10^6), "2GiB" (2^30); units B, KB, MB, GB, TB, KiB, MiB, GiB, TiB.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

// "30", "0.25": at most three decimals. In milliseconds.
[[nodiscard]] std::optional<std::uint64_t> parse_seconds(std::string_view text);

// "0.25", "30", "-3": digits with at most one point, a minus sign before them.
[[nodiscard]] std::optional<double> parse_real(std::string_view text);

// The number behind a value of that option; 0 for kinds that are no number.
// Errors: kInvalidArgument, "expected ..., found ..." without the option's name.
[[nodiscard]] Result<std::uint64_t> check_value(const OptionSpec& option, std::string_view text);

}  // namespace gridscope::cli
