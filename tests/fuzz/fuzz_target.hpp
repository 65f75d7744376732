#pragma once

// What every fuzz target has: the entry point that libFuzzer and the replay call, and properties
// that abort when they do not hold.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "gridscope/core/result.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace gridscope::test {

inline std::span<const std::byte> fuzz_bytes(const std::uint8_t* data, std::size_t size) {
  return std::as_bytes(std::span(data, size));
}

inline std::string_view fuzz_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

inline void require(bool holds) {
  if (!holds) std::abort();
}

// An error says something, on one line, and nothing in it can move a terminal's cursor.
inline void require_fit_to_show(const Error& error) {
  require(!error.message.empty());
  for (const char c : describe(error)) require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
}

}  // namespace gridscope::test
