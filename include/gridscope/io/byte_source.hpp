#pragma once

// A file somewhere, read by position. Everything above this interface is the same for a local file,
// an object behind HTTP and a block of memory.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "gridscope/core/result.hpp"

namespace gridscope::io {

struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  [[nodiscard]] std::uint64_t end() const { return offset + length; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// A read that fills `into` from `offset` on. Whose bytes: the caller's, until the call returns.
struct ReadRequest {
  std::uint64_t offset = 0;
  std::span<std::byte> into;
};

// What the bytes are, as far as one can tell without reading them.
struct SourceIdentity {
  std::string name;     // path or URL, fit to be shown: no credentials, no query string
  std::string version;  // ETag, sha256 or commit; empty when the place gives none

  friend bool operator==(const SourceIdentity&, const SourceIdentity&) = default;
};

// Thread-safe: any number of reads at once.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  [[nodiscard]] virtual std::uint64_t size() const = 0;
  [[nodiscard]] virtual const SourceIdentity& identity() const = 0;

  // Fills `into` whole, or fails and leaves it unspecified. An empty read does nothing.
  // Errors: kInvalidArgument when the range does not lie inside the file; kChanged when the file is
  // no longer the one that was opened; those of the place.
  [[nodiscard]] virtual Status read_at(std::uint64_t offset, std::span<std::byte> into) const = 0;

  // Fills every request. A source that pays per round trip merges neighbours and reads in parallel;
  // the plain version reads them one after the other. Requests may come in any order and overlap.
  [[nodiscard]] virtual Status read_many(std::span<const ReadRequest> requests) const;

  // How many bytes are best asked for at once where the reader may choose: many where a read is a
  // round trip, few where they are still in a cache of the CPU when they are looked at.
  [[nodiscard]] virtual std::uint64_t read_size() const { return 8ULL * 1024 * 1024; }

  // The same file past any cache: for bulk data that one run reads once. Lives as long as this.
  [[nodiscard]] virtual const ByteSource& uncached() const { return *this; }
};

// kInvalidArgument unless [offset, offset + length) lies inside `source`.
[[nodiscard]] Status check_range(const ByteSource& source, std::uint64_t offset,
                                 std::uint64_t length);

}  // namespace gridscope::io
