#pragma once

// The Content-Range header (RFC 9110, 14.4).

#include <cstdint>
#include <optional>
#include <string_view>

#include "gridscope/core/result.hpp"

namespace gridscope::http {

struct ContentRange {
  // The range sent, both ends included; empty for "bytes */N", which comes with 416.
  struct Span {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    friend bool operator==(const Span&, const Span&) = default;
  };
  std::optional<Span> span;
  std::optional<std::uint64_t> total;  // empty for "*"

  friend bool operator==(const ContentRange&, const ContentRange&) = default;
};

// Errors: kCorrupt for anything but "bytes a-b/n", "bytes a-b/*" and "bytes */n" with a <= b < n.
[[nodiscard]] Result<ContentRange> parse_content_range(std::string_view value);

}  // namespace gridscope::http
