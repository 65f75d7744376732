#pragma once

// A POSIX file descriptor with an owner, whole reads and writes on it, and errno as an Error.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "gridscope/core/result.hpp"

namespace gridscope::io {

// Closes what it owns. Movable, not copyable.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// "what: No such file or directory" under the code that fits `number`, a value of errno:
// kNotFound, kPermission, kInvalidArgument, else kUnavailable.
[[nodiscard]] Error system_error(int number, std::string_view what);

// Reads until `into` is full or the file ends; returns the bytes read. Interrupted calls are
// repeated.
[[nodiscard]] Result<std::size_t> read_up_to(const Descriptor& file, std::uint64_t offset,
                                             std::span<std::byte> into);

// Writes all of `bytes` at the current position.
[[nodiscard]] Status write_all(const Descriptor& file, std::span<const std::byte> bytes);

}  // namespace gridscope::io
