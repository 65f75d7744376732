#pragma once

// Small readers of header values, for the sources of this room.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gridscope::store {

[[nodiscard]] inline bool equals_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : +c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

[[nodiscard]] inline std::string_view trim_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

// Digits alone; empty beyond 64 bits.
[[nodiscard]] inline std::optional<std::uint64_t> parse_digits(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// An ETag without its mark of weakness and its quotes.
[[nodiscard]] inline std::string_view bare_etag(std::string_view etag) {
  etag = trim_blanks(etag);
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.starts_with('"') && etag.ends_with('"')) {
    etag = etag.substr(1, etag.size() - 2);
  }
  return etag;
}

}  // namespace gridscope::store
