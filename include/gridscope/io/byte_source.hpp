#pragma once

// A file somewhere, read by position. Everything above this interface is the same for a local file,
// an object behind HTTP and a block of memory.

#include <cstddef>
#include <cstdint>
#include <functional>
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

// Does something with bytes that live until it returns. Its failure ends the reading.
using UseBytes = std::function<Status(std::span<const std::byte>)>;

// What the bytes are, as far as one can tell without reading them.
struct SourceIdentity {
  std::string name;     // path or URL, fit to be shown: no credentials, no query string
  std::string version;  // ETag, sha256 or commit; empty when the place gives none

  friend bool operator==(const SourceIdentity&, const SourceIdentity&) = default;
};

// How long a read waits before its first byte comes, which tells how many at once get more done.
enum class Distance : std::uint8_t {
  kLocal,  // for nobody
  kNear,   // for a server that answers at once
  kFar,    // for a server that takes its time
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

  // Reads `range` through `window`: fills it, or as much of it as is left to read, and hands that
  // to `use`, again and again, in order and on this thread; for bytes that are looked at once,
  // while they are in a cache of the CPU. A source that pays per round trip asks once for all of
  // it. Errors: those of read_at, with which some of the bytes may have been used, and that of
  // `use`. Requires: `window` has room for a byte.
  [[nodiscard]] virtual Status read_through(const ByteRange& range, std::span<std::byte> window,
                                            const UseBytes& use) const;

  [[nodiscard]] virtual Distance distance() const { return Distance::kLocal; }

  // The same file past any cache: for bulk data that one run reads once. Lives as long as this.
  [[nodiscard]] virtual const ByteSource& uncached() const { return *this; }
};

// kInvalidArgument unless [offset, offset + length) lies inside `source`.
[[nodiscard]] Status check_range(const ByteSource& source, std::uint64_t offset,
                                 std::uint64_t length);

}  // namespace gridscope::io
