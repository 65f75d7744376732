#pragma once

// GoogleTest matchers for Result and Status, and what tests do with bytes all the time.

#include <gmock/gmock.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/core/result.hpp"

namespace gridscope::test {

// EXPECT_THAT(result, IsOk())
MATCHER(IsOk, negation ? "fails" : "succeeds") {
  if (!arg) *result_listener << describe(arg.error());
  return arg.has_value();
}

// EXPECT_THAT(result, Fails(ErrorCode::kCorrupt, HasSubstr("byte 8")))
MATCHER_P2(Fails, code, message, "fails with that code and message") {
  if (arg) {
    *result_listener << "which succeeded";
    return false;
  }
  *result_listener << error_code_name(arg.error().code) << ": " << describe(arg.error());
  return arg.error().code == code &&
         ::testing::Matches(::testing::Matcher<std::string>(message))(describe(arg.error()));
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline std::vector<std::byte> to_bytes(std::string_view text) {
  const auto bytes = bytes_of(text);
  return {bytes.begin(), bytes.end()};
}

inline std::string to_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace gridscope::test
