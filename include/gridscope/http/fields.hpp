#pragma once

// What the values of header fields are made of (RFC 9110, 5.6). Nothing here asks the locale.

#include <cstdint>
#include <optional>
#include <string_view>

namespace gridscope::http {

// "A" to "Z" become "a" to "z"; every other byte stays.
[[nodiscard]] constexpr char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Equal but for the case of ASCII letters, as header names and tokens compare.
[[nodiscard]] bool equals_ignoring_case(std::string_view a, std::string_view b);

// Without the blanks, tabs and line ends at both ends.
[[nodiscard]] std::string_view trim_blanks(std::string_view text);

// Decimal digits alone: no sign, no blank, nothing after them. Empty for anything else, and beyond
// 64 bits.
[[nodiscard]] std::optional<std::uint64_t> parse_digits(std::string_view text);

// An ETag without its quotes and its mark of weakness, which servers add and drop at will.
[[nodiscard]] std::string_view bare_etag(std::string_view etag);

}  // namespace gridscope::http
