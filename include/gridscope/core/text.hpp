#pragma once

// Text for people: foreign strings made safe for a terminal, figures with units.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gridscope {

// `text` with control bytes, escapes and invalid UTF-8 written as \xNN, so that a name from a file
// can neither move the cursor nor break a line; cut to `max_bytes` with an ellipsis.
[[nodiscard]] std::string printable(std::string_view text, std::size_t max_bytes = 200);

// printable(text) in double quotes.
[[nodiscard]] std::string quote(std::string_view text);

// 1234567 -> "1,234,567".
[[nodiscard]] std::string with_thousands(std::uint64_t n);

// "1 tensor", "2,504 tensors".
[[nodiscard]] std::string count_of(std::uint64_t n, std::string_view singular);

// Bytes / 10^9 with three decimals, no unit: "4.698". And bytes / 2^30: "4.375".
[[nodiscard]] std::string format_gb(std::uint64_t bytes);
[[nodiscard]] std::string format_gib(std::uint64_t bytes);

// A byte count in the largest unit that keeps it above one: "512 B", "128.0 KiB", "4.375 GiB".
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

// Bytes up to the first that is not well-formed UTF-8; all of them when there is none.
[[nodiscard]] std::size_t valid_utf8_prefix(std::string_view text);

[[nodiscard]] inline bool is_valid_utf8(std::string_view text) {
  return valid_utf8_prefix(text) == text.size();
}

}  // namespace gridscope
