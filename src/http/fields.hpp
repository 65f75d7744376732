#pragma once

// Small readers of header field values, for the sources of this room.

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gridscope::http {

// Not std::tolower, which asks the locale.
[[nodiscard]] constexpr char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

[[nodiscard]] constexpr std::string_view trim_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

// Digits alone: no sign, no blank, nothing after them. Empty beyond 64 bits.
[[nodiscard]] inline std::optional<std::uint64_t> parse_digits(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace gridscope::http
