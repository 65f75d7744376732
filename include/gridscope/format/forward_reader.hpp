#pragma once

// Reads a source from front to back, for headers whose length shows only at their end.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gridscope/core/endian.hpp"
#include "gridscope/core/result.hpp"
#include "gridscope/io/byte_source.hpp"

namespace gridscope::format {

// A remote file pays per read, a local one per byte: the first piece holds a small model's header,
// and pieces double up to what a token list of megabytes needs.
inline constexpr std::uint64_t kFirstPiece = 256 * 1024;
inline constexpr std::uint64_t kLargestPiece = 8 * 1024 * 1024;

// Errors of every read: kCorrupt when the file ends before, kLimit when the header would pass
// `header_limit`, both naming `what` and the position; those of the source. The source must outlive
// the reader.
class ForwardReader {
 public:
  ForwardReader(const io::ByteSource& source, std::uint64_t header_limit)
      : source_(source), limit_(header_limit) {}

  // In the file.
  [[nodiscard]] std::uint64_t position() const { return start_ + at_; }
  [[nodiscard]] std::uint64_t remaining() const { return source_.size() - position(); }

  // What is in memory already behind the position. Valid until the next read.
  [[nodiscard]] std::span<const std::byte> buffered() const {
    return std::span(buffer_).subspan(at_);
  }

  // Brings `count` bytes into memory without moving on.
  [[nodiscard]] Status need(std::uint64_t count, std::string_view what);

  // The next `count` bytes. Valid until the next read.
  [[nodiscard]] Result<std::span<const std::byte>> bytes(std::uint64_t count,
                                                         std::string_view what);

  // Passes `count` bytes; what is not in memory is not read.
  [[nodiscard]] Status skip(std::uint64_t count, std::string_view what);

  // A little-endian number.
  template <std::integral T>
  [[nodiscard]] Result<T> number(std::string_view what) {
    GRIDSCOPE_TRY(const std::span<const std::byte> raw, bytes(sizeof(T), what));
    return load_le<T>(raw);
  }

 private:
  [[nodiscard]] Status check_room(std::uint64_t count, std::string_view what) const;

  const io::ByteSource& source_;
  const std::uint64_t limit_;
  std::vector<std::byte> buffer_;
  std::uint64_t start_ = 0;  // of the buffer, in the file
  std::size_t at_ = 0;       // in the buffer
  std::uint64_t piece_ = kFirstPiece;
};

}  // namespace gridscope::format
