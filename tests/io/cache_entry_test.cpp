#include "gridscope/io/cache_entry.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "support/matchers.hpp"

namespace gridscope::io {
namespace {

using test::bytes_of;
using test::Fails;
using test::IsOk;
using test::to_bytes;
using ::testing::HasSubstr;

constexpr std::uint64_t kLimit = 1'000'000;

std::vector<std::byte> encoded(std::string_view key, std::uint64_t offset, std::string_view text) {
  auto file = encode_cache_entry(key, offset, bytes_of(text));
  EXPECT_THAT(file, IsOk());
  return *std::move(file);
}

RC_GTEST_PROP(CacheEntry, ComesBackAsItWas,
              (const std::string& key, std::uint64_t offset, const std::string& text)) {
  const auto file = encode_cache_entry(key, offset, bytes_of(text));
  RC_ASSERT(file.has_value());
  RC_ASSERT(file->size() <= cache_entry_bound(text.size()));
  const auto entry = decode_cache_entry(*file, kLimit);
  RC_ASSERT(entry.has_value());
  RC_ASSERT(*entry == (CacheEntry{.key = key, .offset = offset, .bytes = to_bytes(text)}));
}

TEST(CacheEntry, ShrinksText) {
  EXPECT_LT(encoded("k", 0, std::string(100'000, 'x')).size(), 1000);
}

// A flipped bit may hit a place where zstd has nothing to say; then the bytes are still right.
TEST(CacheEntry, NeverGivesOtherBytesForAFlippedBit) {
  const auto file = encoded("commit/file", 4096, "the quick brown fox, the quick brown fox");
  const CacheEntry original{.key = "commit/file",
                            .offset = 4096,
                            .bytes = to_bytes("the quick brown fox, the quick brown fox")};
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    auto damaged = file;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto entry = decode_cache_entry(damaged, kLimit);
    if (!entry) continue;
    EXPECT_EQ(entry->bytes, original.bytes) << "bit " << bit;
    // Key and place are what the reader compares with what it looked for.
    const bool in_key_or_place = bit / 8 >= 16 && bit / 8 < 40 + original.key.size();
    EXPECT_TRUE(in_key_or_place || *entry == original) << "bit " << bit;
  }
}

TEST(CacheEntry, RefusesEveryOtherLength) {
  auto file = encoded("key", 7, "some bytes that are kept");
  for (std::size_t length = 0; length < file.size(); ++length) {
    EXPECT_THAT(decode_cache_entry(std::span(file).first(length), kLimit),
                Fails(ErrorCode::kCorrupt, HasSubstr("damaged cache entry")))
        << length;
  }
  file.push_back(std::byte{0});
  EXPECT_THAT(decode_cache_entry(file, kLimit),
              Fails(ErrorCode::kCorrupt, HasSubstr("zstd frame")));
}

TEST(CacheEntry, RefusesOtherFilesAndVersions) {
  auto file = encoded("key", 0, "text");
  EXPECT_THAT(decode_cache_entry(to_bytes(std::string(64, 'x')), kLimit),
              Fails(ErrorCode::kCorrupt, HasSubstr("not an entry")));
  file[8] = std::byte{2};
  EXPECT_THAT(decode_cache_entry(file, kLimit), Fails(ErrorCode::kCorrupt, HasSubstr("version")));
}

TEST(CacheEntry, ChecksLengthsBeforeItTakesMemory) {
  auto file = encoded("key", 0, "text");
  for (std::size_t i = 24; i < 32; ++i) file[i] = std::byte{0x7F};
  EXPECT_THAT(decode_cache_entry(file, kLimit), Fails(ErrorCode::kCorrupt, HasSubstr("limit")));
  EXPECT_THAT(decode_cache_entry(file, UINT64_MAX),
              Fails(ErrorCode::kCorrupt, HasSubstr("stated length")));
  file = encoded("key", 0, "text");
  file[15] = std::byte{0x7F};
  EXPECT_THAT(decode_cache_entry(file, kLimit), Fails(ErrorCode::kCorrupt, HasSubstr("key")));
}

TEST(CacheEntry, RefusesKeysWithoutMeasure) {
  EXPECT_THAT(encode_cache_entry(std::string(kMaxCacheKeyBytes, 'k'), 0, {}), IsOk());
  EXPECT_THAT(encode_cache_entry(std::string(kMaxCacheKeyBytes + 1, 'k'), 0, {}),
              Fails(ErrorCode::kLimit, HasSubstr("cache key of 16385 bytes")));
}

TEST(HashBytes, DependsOnEveryBitAndOnTheLength) {
  std::set<std::uint64_t> hashes;
  for (std::size_t length = 0; length < 40; ++length) {
    const std::vector<std::byte> zeros(length);
    EXPECT_TRUE(hashes.insert(hash_bytes(zeros)).second) << length;
    for (std::size_t bit = 0; bit < length * 8; ++bit) {
      auto one = zeros;
      one[bit / 8] = std::byte{1} << (bit % 8);
      EXPECT_TRUE(hashes.insert(hash_bytes(one)).second) << length << " bytes, bit " << bit;
    }
  }
}

// The first digits choose a directory: keys that differ in one letter must not crowd.
TEST(HashBytes, SpreadsSimilarKeys) {
  std::vector<int> counts(256);
  for (int i = 0; i < 25'600; ++i) {
    const std::string key = "model-" + std::to_string(i) + ".safetensors";
    ++counts[hash_bytes(bytes_of(key)) >> 56];
  }
  for (const int count : counts) {
    EXPECT_GT(count, 40);
    EXPECT_LT(count, 180);
  }
}

}  // namespace
}  // namespace gridscope::io
