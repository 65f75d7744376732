// make_cached_source, over a real cache in a directory of its own.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "gridscope/io/memory_source.hpp"
#include "gridscope/io/range_cache.hpp"
#include "support/fakes.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::io {
namespace {

using test::Fails;
using test::Fault;
using test::FaultySource;
using test::IsOk;
using test::RecordingSource;
using test::to_text;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Read = test::CollectingObserver::Read;

constexpr std::size_t kSize = 10'000;

std::vector<std::byte> content(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + (i >> 8));
  return bytes;
}

// One object behind a cache, with a record of what was read past the cache.
class CachedSource : public ::testing::Test {
 protected:
  CachedSource() {
    auto cache = RangeCache::open({.directory = directory_ / "cache"}, observer_);
    EXPECT_THAT(cache, IsOk());
    cache_ = *std::move(cache);
    auto recording = std::make_unique<RecordingSource>(
        make_memory_source(bytes_, {.name = "object", .version = "v1"}));
    below_ = recording.get();
    source_ = make_cached_source(std::move(recording), *cache_, "key", observer_);
  }

  std::vector<std::byte> expected(std::uint64_t offset, std::uint64_t length) const {
    const auto part = std::span(bytes_).subspan(offset, length);
    return {part.begin(), part.end()};
  }

  // Reads ranges in one call, checks the bytes, and returns what went past the cache.
  std::vector<ByteRange> read_many(const std::vector<ByteRange>& ranges) {
    std::vector<std::vector<std::byte>> memory;
    std::vector<ReadRequest> requests;
    for (const ByteRange& range : ranges) {
      memory.emplace_back(range.length);
      requests.push_back({range.offset, memory.back()});
    }
    const std::size_t before = below_->batches().size();
    EXPECT_THAT(source_->read_many(requests), IsOk());
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      EXPECT_EQ(memory[i], expected(ranges[i].offset, ranges[i].length));
    }
    const auto batches = below_->batches();
    EXPECT_LE(batches.size(), before + 1);
    return batches.size() == before ? std::vector<ByteRange>() : batches.back();
  }

  const std::vector<std::byte> bytes_ = content(kSize);
  const test::TempDir directory_;
  test::CollectingObserver observer_;
  std::unique_ptr<RangeCache> cache_;
  const RecordingSource* below_ = nullptr;
  std::unique_ptr<ByteSource> source_;
};

TEST_F(CachedSource, BulkReadsGoPastTheCache) {
  std::vector<std::byte> once(100);
  for (int i = 0; i < 2; ++i) {
    ASSERT_THAT(source_->uncached().read_at(50, once), IsOk());
    EXPECT_EQ(once, expected(50, 100));
  }
  EXPECT_EQ(below_->single_reads().size(), 2U);
  EXPECT_EQ(cache_->usage().entries, 0U);
}

TEST_F(CachedSource, IsTheSourceItStandsFor) {
  EXPECT_EQ(source_->size(), kSize);
  EXPECT_EQ(source_->identity(), (SourceIdentity{.name = "object", .version = "v1"}));
}

TEST_F(CachedSource, ReadsARangeOnce) {
  std::vector<std::byte> bytes(100);
  ASSERT_THAT(source_->read_at(50, bytes), IsOk());
  EXPECT_EQ(bytes, expected(50, 100));
  EXPECT_THAT(observer_.reads(), IsEmpty());
  std::vector<std::byte> again(60);
  ASSERT_THAT(source_->read_at(70, again), IsOk());
  EXPECT_EQ(again, expected(70, 60));
  EXPECT_THAT(below_->single_reads(), ElementsAre(ByteRange{50, 100}));
  EXPECT_THAT(observer_.reads(), ElementsAre(Read{"object", 70, 60, Origin::kCache}));
}

TEST_F(CachedSource, PassesOnOnlyWhatIsMissingInOneCall) {
  EXPECT_THAT(read_many({{0, 10}, {100, 10}}), ElementsAre(ByteRange{0, 10}, ByteRange{100, 10}));
  EXPECT_THAT(read_many({{0, 10}, {50, 5}, {100, 10}, {200, 1}}),
              ElementsAre(ByteRange{50, 5}, ByteRange{200, 1}));
  EXPECT_THAT(read_many({{0, 10}, {50, 5}, {100, 10}, {200, 1}}), IsEmpty());
  EXPECT_EQ(below_->batches().size(), 2);
  EXPECT_THAT(below_->single_reads(), IsEmpty());
}

TEST_F(CachedSource, AsksForNothingWhenNothingIsWanted) {
  EXPECT_THAT(read_many({}), IsEmpty());
  EXPECT_THAT(read_many({{5, 0}}), IsEmpty());
  EXPECT_THAT(source_->read_at(kSize, {}), IsOk());
  EXPECT_THAT(below_->single_reads(), IsEmpty());
}

TEST_F(CachedSource, KeepsTouchingRequestsAsOneEntry) {
  EXPECT_THAT(read_many({{10, 10}, {0, 10}, {15, 20}}),
              ElementsAre(ByteRange{0, 10}, ByteRange{10, 10}, ByteRange{15, 20}));
  EXPECT_EQ(cache_->usage().entries, 1);
  EXPECT_THAT(read_many({{10, 10}, {0, 10}, {15, 20}}), IsEmpty());
  EXPECT_THAT(observer_.reads(), ElementsAre(Read{"object", 0, 35, Origin::kCache}));
}

TEST_F(CachedSource, ServesPartOfAGroupWhenTheRestIsMissing) {
  read_many({{0, 10}});
  EXPECT_THAT(read_many({{0, 10}, {10, 10}}), ElementsAre(ByteRange{10, 10}));
}

TEST_F(CachedSource, KeepsLongRunsOneByOne) {
  const std::vector<std::byte> ten_megabytes = content(10'000'000);
  const auto source =
      make_cached_source(make_memory_source(ten_megabytes, {.name = "long", .version = ""}),
                         *cache_, "long", observer_);
  std::vector<std::byte> bytes(ten_megabytes.size());
  const ReadRequest halves[] = {{0, std::span(bytes).first(5'000'000)},
                                {5'000'000, std::span(bytes).subspan(5'000'000)}};
  ASSERT_THAT(source->read_many(halves), IsOk());
  EXPECT_EQ(cache_->usage().entries, 2);
  EXPECT_THAT(observer_.reads(), IsEmpty());
  ASSERT_THAT(source->read_many(halves), IsOk());
  EXPECT_THAT(observer_.reads(), ElementsAre(Read{"long", 0, 5'000'000, Origin::kCache},
                                             Read{"long", 5'000'000, 5'000'000, Origin::kCache}));
  EXPECT_EQ(bytes, ten_megabytes);
}

TEST_F(CachedSource, RefusesRangesBeyondTheEndBeforeItReads) {
  std::vector<std::byte> bytes(2);
  const ReadRequest requests[] = {{0, bytes}, {kSize - 1, bytes}};
  EXPECT_THAT(source_->read_at(kSize - 1, bytes),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("which has")));
  EXPECT_THAT(source_->read_many(requests),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("which has")));
  EXPECT_THAT(below_->batches(), IsEmpty());
}

TEST_F(CachedSource, KeepsNothingOfAFailedRead) {
  const auto failing =
      make_cached_source(std::make_unique<FaultySource>(
                             make_memory_source(bytes_, {.name = "object", .version = "v1"}),
                             test::FaultPlan{.fault = Fault::kShortRead, .fault_at = 5}),
                         *cache_, "other key", observer_);
  std::vector<std::byte> bytes(10);
  const ReadRequest requests[] = {{0, bytes}};
  EXPECT_THAT(failing->read_at(0, bytes), Fails(ErrorCode::kUnavailable, HasSubstr("early")));
  EXPECT_THAT(failing->read_many(requests), Fails(ErrorCode::kUnavailable, HasSubstr("early")));
  EXPECT_EQ(cache_->usage().entries, 0);
}

TEST_F(CachedSource, KeepsObjectsApartByKey) {
  read_many({{0, 10}});
  const auto other = make_cached_source(
      make_memory_source(test::to_bytes("another text"), {.name = "other", .version = "v1"}),
      *cache_, "key of the other", observer_);
  std::vector<std::byte> bytes(10);
  ASSERT_THAT(other->read_at(0, bytes), IsOk());
  EXPECT_EQ(to_text(bytes), "another te");
}

TEST_F(CachedSource, ReadsRightWhateverWasReadBefore) {
  EXPECT_TRUE(rc::check([&] {
    std::vector<ByteRange> ranges;
    for (int n = *rc::gen::inRange(0, 8); n > 0; --n) {
      ranges.push_back(
          {*rc::gen::inRange<std::uint64_t>(0, 2000), *rc::gen::inRange<std::uint64_t>(0, 300)});
    }
    read_many(ranges);
    RC_ASSERT(!HasFailure());
    RC_ASSERT(read_many(ranges).empty());
  }));
}

}  // namespace
}  // namespace gridscope::io
