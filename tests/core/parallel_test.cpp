#include "gridscope/core/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "support/matchers.hpp"

namespace gridscope {
namespace {

using test::Fails;
using test::IsOk;

class ParallelChunks : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ParallelChunks, CallsEveryIndexOnce) {
  std::vector<std::atomic<int>> calls(1000);
  EXPECT_THAT(parallel_chunks(calls.size(), GetParam(),
                              [&](std::size_t i) -> Status {
                                ++calls[i];
                                return {};
                              }),
              IsOk());
  for (const auto& count : calls) EXPECT_EQ(count, 1);
}

TEST_P(ParallelChunks, DoesNothingForNoIndices) {
  const auto body = [](std::size_t) { return Status(fail(ErrorCode::kInternal, "was called")); };
  EXPECT_THAT(parallel_chunks(0, GetParam(), body), IsOk());
}

TEST_P(ParallelChunks, StartsNothingOnceStopped) {
  std::stop_source source;
  source.request_stop();
  std::atomic<int> calls = 0;
  const auto body = [&](std::size_t) -> Status {
    ++calls;
    return {};
  };
  EXPECT_THAT(parallel_chunks(100, GetParam(), body, source.get_token()),
              Fails(ErrorCode::kCancelled, "cancelled"));
  EXPECT_EQ(calls, 0);
}

TEST_P(ParallelChunks, StopsInTheMiddle) {
  std::stop_source source;
  std::atomic<std::size_t> calls = 0;
  const auto body = [&](std::size_t) -> Status {
    if (++calls == 10) source.request_stop();
    return {};
  };
  EXPECT_THAT(parallel_chunks(100000, GetParam(), body, source.get_token()),
              Fails(ErrorCode::kCancelled, "cancelled"));
  EXPECT_LT(calls, 100000);
}

TEST_P(ParallelChunks, StartsNoNewIndexAfterAFailure) {
  std::atomic<std::size_t> calls = 0;
  const auto body = [&](std::size_t) -> Status {
    ++calls;
    return fail(ErrorCode::kCorrupt, "bad");
  };
  EXPECT_THAT(parallel_chunks(100000, GetParam(), body), Fails(ErrorCode::kCorrupt, "bad"));
  EXPECT_LE(calls, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Threads, ParallelChunks, ::testing::Values(1, 2, 3, 8, 64));

TEST(ParallelChunksTogether, RunAsManyAtOnceAsThreads) {
  std::latch all_here(4);
  const auto body = [&](std::size_t) -> Status {
    all_here.arrive_and_wait();
    return {};
  };
  EXPECT_THAT(parallel_chunks(4, 4, body), IsOk());
}

TEST(ParallelChunksTogether, TakeNoMoreThreadsThanIndices) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  const auto body = [&](std::size_t) -> Status {
    const std::scoped_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
    return {};
  };
  EXPECT_THAT(parallel_chunks(2, 64, body), IsOk());
  EXPECT_LE(threads.size(), 2);
}

// All four fail, the higher ones before the lower ones.
TEST(ParallelChunksTogether, ReportTheFailureOfTheLowestIndex) {
  std::latch all_here(4);
  std::atomic<std::size_t> next = 3;
  const auto body = [&](std::size_t i) -> Status {
    all_here.arrive_and_wait();
    while (next != i) std::this_thread::yield();
    // Index i is recorded after this returns; a moment later the next lower one follows.
    if (i > 0) --next;
    return fail(ErrorCode::kCorrupt, "chunk " + std::to_string(i));
  };
  EXPECT_THAT(parallel_chunks(4, 4, body), Fails(ErrorCode::kCorrupt, "chunk 0"));
}

TEST(ParallelChunksTogether, PreferAFailureToACancellation) {
  std::stop_source source;
  const auto body = [&](std::size_t) -> Status {
    source.request_stop();
    return fail(ErrorCode::kTimeout, "too late");
  };
  EXPECT_THAT(parallel_chunks(10, 1, body, source.get_token()),
              Fails(ErrorCode::kTimeout, "too late"));
}

TEST(ParallelChunksTogether, AStopAfterTheLastIndexChangesNothing) {
  std::stop_source source;
  const auto body = [&](std::size_t i) -> Status {
    if (i == 9) source.request_stop();
    return {};
  };
  EXPECT_THAT(parallel_chunks(10, 1, body, source.get_token()), IsOk());
}

}  // namespace
}  // namespace gridscope
