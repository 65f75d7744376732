#pragma once

// What was read over the network, kept on disk, so that a second run reads nothing again. Entries
// are ranges of bytes, each a file of its own: written aside and renamed, compressed with zstd,
// carrying the full key and a checksum. An entry that does not check out is removed and read again,
// never served.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gridscope/core/observer.hpp"
#include "gridscope/io/byte_source.hpp"

namespace gridscope::io {

struct RangeCacheOptions {
  std::filesystem::path directory;                      // made when it is missing
  std::uint64_t max_bytes = 2ULL * 1024 * 1024 * 1024;  // of entry files; the oldest used go first
  std::uint64_t max_entry_bytes = 64ULL * 1024 * 1024;  // longer ranges are not kept
};

struct RangeCacheUsage {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;  // of entry files
};

// Thread-safe, and safe beside other processes on the same directory. A cache that cannot be
// written (full disk, read-only) reports one warning and goes on without keeping; it never fails a
// read.
class RangeCache {
 public:
  // Errors: kInvalidArgument when the directory exists as something else.
  [[nodiscard]] static Result<std::unique_ptr<RangeCache>> open(RangeCacheOptions options,
                                                                Observer& observer);
  virtual ~RangeCache() = default;

  // The bytes of `range` of the object `key`, when one kept entry covers it. `key` names the
  // content for good: commit and path, or URL and ETag.
  [[nodiscard]] virtual bool get(const std::string& key, std::uint64_t offset,
                                 std::span<std::byte> into) = 0;
  // Keeps a range, then removes the least recently used entries beyond the size limit.
  virtual void put(const std::string& key, std::uint64_t offset,
                   std::span<const std::byte> bytes) = 0;

  // Whole documents of a size not known beforehand (a listing, a commit).
  [[nodiscard]] virtual std::optional<std::vector<std::byte>> get_document(
      const std::string& key) = 0;
  virtual void put_document(const std::string& key, std::span<const std::byte> bytes) = 0;

  [[nodiscard]] virtual RangeCacheUsage usage() const = 0;
  // Removes every entry; returns what was there. Errors: kPermission, kUnavailable.
  [[nodiscard]] virtual Result<RangeCacheUsage> clear() = 0;
};

// `source` with its reads served from and kept in `cache` under `key`. read_many passes the ranges
// that are missing on in one call. Both cache and observer must outlive the result.
[[nodiscard]] std::unique_ptr<ByteSource> make_cached_source(std::unique_ptr<ByteSource> source,
                                                             RangeCache& cache, std::string key,
                                                             Observer& observer);

// $XDG_CACHE_HOME/gridscope, else $HOME/.cache/gridscope. Errors: kNotFound when neither is set.
[[nodiscard]] Result<std::filesystem::path> default_cache_directory();

}  // namespace gridscope::io
