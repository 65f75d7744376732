#pragma once

// Arithmetic on numbers that strangers wrote: empty on overflow, never wrapped.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace gridscope {

[[nodiscard]] constexpr std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  if (a > std::numeric_limits<std::uint64_t>::max() - b) return std::nullopt;
  return a + b;
}

[[nodiscard]] constexpr std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b) return std::nullopt;
  return a * b;
}

// ceil(a / b). Requires: b > 0.
[[nodiscard]] constexpr std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

// The one place where a file size or offset becomes a size in memory. Empty when it does not fit.
[[nodiscard]] constexpr std::optional<std::size_t> to_size(std::uint64_t n) {
  if (!std::in_range<std::size_t>(n)) return std::nullopt;
  return n;
}

}  // namespace gridscope
