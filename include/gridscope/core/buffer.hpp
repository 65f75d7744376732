#pragma once

// Memory for bytes that are about to be written: not zeroed first, which would cost as much as
// reading them does.

#include <cstddef>
#include <memory>
#include <span>

namespace gridscope {

class Buffer {
 public:
  // At least `size` bytes. What was there is lost when there were fewer. Throws std::bad_alloc.
  [[nodiscard]] std::span<std::byte> get(std::size_t size);

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte, Free> bytes_;
  std::size_t capacity_ = 0;
};

// Copies bytes that are looked at later, when much else will have been read, past the CPU's caches:
// there they would push out what is worked on, and memory would be read first only to be written.
// Requires: room for all of them at `to`, which does not overlap.
void copy_past_caches(std::span<const std::byte> from, std::byte* to);

}  // namespace gridscope
