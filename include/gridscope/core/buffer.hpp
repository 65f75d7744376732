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

}  // namespace gridscope
