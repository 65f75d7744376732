#include "gridscope/core/observer.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace gridscope {
namespace {

class EventCount final : public Observer {
 public:
  void on_event(const Event& /*event*/) override { ++count; }
  std::atomic<int> count = 0;
};

void expect_totals(const ReadCounter& counter, const ReadTotals& expected) {
  const ReadTotals totals = counter.totals();
  EXPECT_EQ(totals.requests, expected.requests);
  EXPECT_EQ(totals.bytes, expected.bytes);
  EXPECT_EQ(totals.cache_hits, expected.cache_hits);
}

TEST(ReadCounter, CountsReadsOfFilesAsRequests) {
  EventCount next;
  ReadCounter counter(next);
  counter.on_event(RangeRead{.source = "a", .offset = 0, .bytes = 8, .origin = Origin::kDisk});
  counter.on_event(RangeRead{.source = "a", .offset = 8, .bytes = 100, .origin = Origin::kDisk});
  expect_totals(counter, {.requests = 2, .bytes = 108, .cache_hits = 0});
}

TEST(ReadCounter, CountsRequestsOverTheNetworkWhenTheyAreSent) {
  EventCount next;
  ReadCounter counter(next);
  counter.on_event(RequestSent{.method = "GET", .url = "https://a/b"});
  counter.on_event(RequestSent{.method = "GET", .url = "https://c/d"});
  counter.on_event(RangeRead{.source = "b", .offset = 0, .bytes = 50, .origin = Origin::kNetwork});
  expect_totals(counter, {.requests = 2, .bytes = 50, .cache_hits = 0});
}

TEST(ReadCounter, CountsWhatTheCacheServedApart) {
  EventCount next;
  ReadCounter counter(next);
  counter.on_event(RangeRead{.source = "b", .offset = 0, .bytes = 50, .origin = Origin::kCache});
  expect_totals(counter, {.requests = 0, .bytes = 0, .cache_hits = 1});
}

TEST(ReadCounter, PassesEverythingOn) {
  EventCount next;
  ReadCounter counter(next);
  counter.on_event(RangeRead{});
  counter.on_event(RequestSent{});
  counter.on_event(RetryScheduled{});
  counter.on_event(Warning{});
  counter.on_event(Detail{});
  counter.on_event(Progress{});
  EXPECT_EQ(next.count, 6);
}

TEST(ReadCounter, CountsFromManyThreads) {
  NullObserver nobody;
  ReadCounter counter(nobody);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) counter.on_event(RangeRead{.source = "a", .bytes = 3});
      });
    }
  }
  expect_totals(counter, {.requests = 4000, .bytes = 12000, .cache_hits = 0});
}

}  // namespace
}  // namespace gridscope
