#pragma once

// One kept range of bytes as the contents of a file. Little-endian:
//
//     0  8  "GSRANGE" and a NUL byte
//     8  4  version of this layout
//    12  4  length of the key
//    16  8  offset of the range in its object
//    24  8  length of the range
//    32  8  hash_bytes of the range
//    40  k  the key
//  40+k     the range as one zstd frame with its content checksum
//
// The hash covers what the frame's own 32-bit checksum may miss; both must agree.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/core/result.hpp"

namespace gridscope::io {

struct CacheEntry {
  std::string key;
  std::uint64_t offset = 0;
  std::vector<std::byte> bytes;

  friend bool operator==(const CacheEntry&, const CacheEntry&) = default;
};

inline constexpr std::size_t kMaxCacheKeyBytes = 16'384;

// The longest file that an entry of `length` bytes can take.
[[nodiscard]] std::uint64_t cache_entry_bound(std::uint64_t length);

// Errors: kLimit for a key above kMaxCacheKeyBytes; kInternal when zstd cannot work.
[[nodiscard]] Result<std::vector<std::byte>> encode_cache_entry(std::string_view key,
                                                                std::uint64_t offset,
                                                                std::span<const std::byte> bytes);

// Errors: kCorrupt, which also stands for another version and for a range above `max_bytes`.
[[nodiscard]] Result<CacheEntry> decode_cache_entry(std::span<const std::byte> file,
                                                    std::uint64_t max_bytes);

// A 64-bit hash to find damage and to spread names. It withstands accidents, not attackers.
[[nodiscard]] std::uint64_t hash_bytes(std::span<const std::byte> bytes);

}  // namespace gridscope::io
