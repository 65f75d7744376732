#pragma once

// For a source of which the bytes arrive in pieces of its own choice: what read_through() promises.

#include <cstddef>
#include <cstdint>
#include <span>

#include "gridscope/core/result.hpp"
#include "gridscope/io/byte_source.hpp"

namespace gridscope::io {

// Collects the bytes of a range in `memory` and hands them on whenever it is full, and at the end.
class Window {
 public:
  // `length`: of the range. Both references must outlive the window.
  Window(std::span<std::byte> memory, std::uint64_t length, const UseBytes& use)
      : memory_(memory), left_(length), use_(use) {}

  // The next bytes. Errors: those of the user. Requires: no more than are left of the range.
  [[nodiscard]] Status put(std::span<const std::byte> bytes);

 private:
  std::span<std::byte> memory_;
  std::size_t filled_ = 0;
  std::uint64_t left_;
  const UseBytes& use_;
};

}  // namespace gridscope::io
