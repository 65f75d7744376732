#include "gridscope/io/cache_entry.hpp"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>

#include "gridscope/core/endian.hpp"

namespace gridscope::io {
namespace {

constexpr std::array kMagic = {'G', 'S', 'R', 'A', 'N', 'G', 'E', '\0'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 40;

// Headers are text and shrink well at any level; what is read beside them hardly shrinks at all.
constexpr int kCompressionLevel = 1;

// Multipliers without structure: the fractions of the golden ratio and of the square root of 3.
constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;
constexpr std::uint64_t kStir = 0xBB67AE8584CAA73B;

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

// Each step can be undone, so that two inputs that differ in one word never meet again.
std::uint64_t absorb(std::uint64_t state, std::uint64_t word) {
  return std::rotl(state ^ (word * kSpread), 27) * kStir;
}

void put_header(std::span<std::byte> file, std::string_view key, std::uint64_t offset,
                std::span<const std::byte> bytes) {
  std::memcpy(file.data(), kMagic.data(), kMagic.size());
  store_le<std::uint32_t>(file.subspan(8), kVersion);
  store_le<std::uint32_t>(file.subspan(12), static_cast<std::uint32_t>(key.size()));
  store_le<std::uint64_t>(file.subspan(16), offset);
  store_le<std::uint64_t>(file.subspan(24), bytes.size());
  store_le<std::uint64_t>(file.subspan(32), hash_bytes(bytes));
  std::ranges::copy(std::as_bytes(std::span(key)), file.begin() + kHeaderBytes);
}

tl::unexpected<Error> damaged(std::string_view what) {
  return fail(ErrorCode::kCorrupt, fmt::format("damaged cache entry: {}", what));
}

// The plain bytes of `frame`, which must be one whole frame of `length` bytes.
Result<std::vector<std::byte>> unpack(std::span<const std::byte> frame, std::uint64_t length) {
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != length ||
      ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) {
    return damaged("not one zstd frame of the stated length");
  }
  std::vector<std::byte> bytes(length);
  if (ZSTD_decompress(bytes.data(), bytes.size(), frame.data(), frame.size()) != length) {
    return damaged("the zstd frame does not unpack");
  }
  return bytes;
}

}  // namespace

std::uint64_t cache_entry_bound(std::uint64_t length) {
  return kHeaderBytes + kMaxCacheKeyBytes + ZSTD_compressBound(length);
}

Result<std::vector<std::byte>> encode_cache_entry(std::string_view key, std::uint64_t offset,
                                                  std::span<const std::byte> bytes) {
  if (key.size() > kMaxCacheKeyBytes) {
    return fail(ErrorCode::kLimit, fmt::format("cache key of {} bytes, the limit is {}", key.size(),
                                               kMaxCacheKeyBytes));
  }
  const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  if (!context) return fail(ErrorCode::kInternal, "zstd cannot start");
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kCompressionLevel);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);

  const std::size_t frame_at = kHeaderBytes + key.size();
  std::vector<std::byte> file(frame_at + ZSTD_compressBound(bytes.size()));
  put_header(file, key, offset, bytes);
  const std::size_t packed = ZSTD_compress2(context.get(), file.data() + frame_at,
                                            file.size() - frame_at, bytes.data(), bytes.size());
  if (ZSTD_isError(packed) != 0) return fail(ErrorCode::kInternal, ZSTD_getErrorName(packed));
  file.resize(frame_at + packed);
  return file;
}

Result<CacheEntry> decode_cache_entry(std::span<const std::byte> file, std::uint64_t max_bytes) {
  if (file.size() < kHeaderBytes) return damaged("too short");
  if (std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0) return damaged("not an entry");
  if (load_le<std::uint32_t>(file.subspan(8)) != kVersion) return damaged("another version");
  const auto key_bytes = load_le<std::uint32_t>(file.subspan(12));
  const auto offset = load_le<std::uint64_t>(file.subspan(16));
  const auto length = load_le<std::uint64_t>(file.subspan(24));
  if (key_bytes > file.size() - kHeaderBytes) return damaged("the key goes beyond the end");
  if (length > max_bytes) return damaged("longer than the limit");

  GRIDSCOPE_TRY(std::vector<std::byte> bytes,
                unpack(file.subspan(kHeaderBytes + key_bytes), length));
  if (hash_bytes(bytes) != load_le<std::uint64_t>(file.subspan(32))) {
    return damaged("the bytes do not match their hash");
  }
  const auto key = file.subspan(kHeaderBytes, key_bytes);
  return CacheEntry{.key = {reinterpret_cast<const char*>(key.data()), key.size()},
                    .offset = offset,
                    .bytes = std::move(bytes)};
}

std::uint64_t hash_bytes(std::span<const std::byte> bytes) {
  std::uint64_t state = absorb(kStir, bytes.size());
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    state = absorb(state, load_le<std::uint64_t>(bytes));
  }
  std::array<std::byte, 8> rest{};
  std::ranges::copy(bytes, rest.begin());
  state = absorb(state, load_le<std::uint64_t>(rest));
  state ^= state >> 29;
  return absorb(state, state >> 32);
}

}  // namespace gridscope::io
