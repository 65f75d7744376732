#include "gridscope/io/coalesce.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace gridscope::io {
namespace {

// Requests with memory of their own.
class Requests {
 public:
  explicit Requests(const std::vector<ByteRange>& ranges) {
    for (const ByteRange& range : ranges) {
      memory_.emplace_back(range.length);
      requests_.push_back({range.offset, memory_.back()});
    }
  }
  [[nodiscard]] std::span<const ReadRequest> get() const { return requests_; }

 private:
  std::vector<std::vector<std::byte>> memory_;
  std::vector<ReadRequest> requests_;
};

std::vector<ByteRange> ranges_of(const std::vector<CoalescedRange>& coalesced) {
  std::vector<ByteRange> ranges;
  for (const CoalescedRange& one : coalesced) ranges.push_back(one.range);
  return ranges;
}

std::vector<ByteRange> merged(const std::vector<ByteRange>& wanted,
                              const CoalesceOptions& options) {
  const Requests requests(wanted);
  return ranges_of(coalesce(requests.get(), options));
}

using Ranges = std::vector<ByteRange>;

TEST(Coalesce, MakesNothingOfNothing) {
  EXPECT_EQ(merged({}, {}), Ranges());
  EXPECT_EQ(merged({{5, 0}, {9, 0}}, {}), Ranges());
}

TEST(Coalesce, MergesAcrossGapsUpToTheLimit) {
  const CoalesceOptions options = {.max_gap = 10, .max_length = 1000};
  EXPECT_EQ(merged({{0, 10}, {20, 10}}, options), (Ranges{{0, 30}}));
  EXPECT_EQ(merged({{0, 10}, {21, 10}}, options), (Ranges{{0, 10}, {21, 10}}));
}

TEST(Coalesce, TakesRequestsInAnyOrderAndOverlapping) {
  const CoalesceOptions options = {.max_gap = 0, .max_length = 1000};
  EXPECT_EQ(merged({{40, 10}, {0, 20}, {10, 20}, {12, 2}}, options), (Ranges{{0, 30}, {40, 10}}));
}

TEST(Coalesce, CutsWhatIsTooLong) {
  const CoalesceOptions options = {.max_gap = 0, .max_length = 10};
  EXPECT_EQ(merged({{5, 25}}, options), (Ranges{{5, 10}, {15, 10}, {25, 5}}));
}

TEST(Coalesce, StartsANewRangeRatherThanExceedTheLength) {
  const CoalesceOptions options = {.max_gap = 100, .max_length = 20};
  EXPECT_EQ(merged({{0, 12}, {12, 12}, {24, 4}}, options), (Ranges{{0, 12}, {12, 16}}));
  EXPECT_EQ(merged({{0, 15}, {10, 15}}, options), (Ranges{{0, 15}, {15, 10}}));
}

TEST(Coalesce, ReachesTheEndOfTheNumbers) {
  const CoalesceOptions options = {.max_gap = UINT64_MAX, .max_length = UINT64_MAX};
  EXPECT_EQ(merged({{UINT64_MAX - 4, 4}, {0, 4}}, options), (Ranges{{0, UINT64_MAX}}));
}

TEST(Coalesce, SaysWhichRequestsTakeFromWhichRange) {
  const Requests requests({{0, 30}, {25, 2}, {100, 1}, {50, 0}});
  const auto ranges = coalesce(requests.get(), {.max_gap = 0, .max_length = 20});
  ASSERT_EQ(ranges.size(), 3);
  EXPECT_EQ(ranges[0].requests, (std::vector<std::size_t>{0}));
  EXPECT_EQ(ranges[1].requests, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(ranges[2].requests, (std::vector<std::size_t>{2}));
}

std::byte content_at(std::uint64_t position) {
  return static_cast<std::byte>(position * 131 + (position >> 8));
}

std::vector<std::byte> content_of(const ByteRange& range) {
  std::vector<std::byte> bytes;
  for (std::uint64_t p = range.offset; p < range.end(); ++p) bytes.push_back(content_at(p));
  return bytes;
}

struct Case {
  std::vector<ByteRange> wanted;
  CoalesceOptions options;
};

Case any_case() {
  const auto below = [](std::uint64_t limit) { return *rc::gen::inRange<std::uint64_t>(0, limit); };
  Case made;
  for (auto n = below(40); n > 0; --n) made.wanted.push_back({below(4000), below(300)});
  made.options = {.max_gap = below(200), .max_length = 1 + below(600)};
  return made;
}

bool overlap(const ByteRange& a, const ByteRange& b) {
  return a.length > 0 && b.length > 0 && a.offset < b.end() && b.offset < a.end();
}

RC_GTEST_PROP(Coalesce, RangesRiseKeepApartAndKeepTheLength, ()) {
  const Case given = any_case();
  const Requests requests(given.wanted);
  std::uint64_t last_end = 0;
  for (const CoalescedRange& one : coalesce(requests.get(), given.options)) {
    RC_ASSERT(one.range.offset >= last_end);
    RC_ASSERT(one.range.length > 0);
    RC_ASSERT(one.range.length <= given.options.max_length);
    last_end = one.range.end();
  }
}

RC_GTEST_PROP(Coalesce, RequestsAreThoseThatOverlapTheRange, ()) {
  const Case given = any_case();
  const Requests requests(given.wanted);
  for (CoalescedRange& one : coalesce(requests.get(), given.options)) {
    std::vector<std::size_t> expected;
    for (std::size_t i = 0; i < given.wanted.size(); ++i) {
      if (overlap(given.wanted[i], one.range)) expected.push_back(i);
    }
    std::ranges::sort(one.requests);
    RC_ASSERT(one.requests == expected);
    RC_ASSERT(!expected.empty());
    if (expected.size() == 1) {
      const ByteRange& only = given.wanted[expected.front()];
      RC_ASSERT(one.range.offset >= only.offset && one.range.end() <= only.end());
    }
  }
}

RC_GTEST_PROP(Coalesce, ReadsNoLongerStretchForNothingThanTheGap, ()) {
  const Case given = any_case();
  const Requests requests(given.wanted);
  for (const CoalescedRange& one : coalesce(requests.get(), given.options)) {
    std::uint64_t unused = 0;
    for (std::uint64_t p = one.range.offset; p < one.range.end(); ++p) {
      const bool used = std::ranges::any_of(
          given.wanted, [&](const ByteRange& range) { return overlap(range, {p, 1}); });
      unused = used ? 0 : unused + 1;
      RC_ASSERT(unused <= given.options.max_gap);
    }
    RC_ASSERT(unused == 0);
  }
}

RC_GTEST_PROP(Coalesce, ScatterRestoresEveryRequest, ()) {
  const Case given = any_case();
  const Requests requests(given.wanted);
  for (const CoalescedRange& one : coalesce(requests.get(), given.options)) {
    scatter(one, content_of(one.range), requests.get());
  }
  for (std::size_t i = 0; i < given.wanted.size(); ++i) {
    const auto filled = requests.get()[i].into;
    RC_ASSERT(std::ranges::equal(filled, content_of(given.wanted[i])));
  }
}

}  // namespace
}  // namespace gridscope::io
