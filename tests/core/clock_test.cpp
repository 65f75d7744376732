#include "gridscope/core/clock.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "support/matchers.hpp"

namespace gridscope {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::Fails;
using test::IsOk;

TEST(SystemClock, SleepsAtLeastAsLongAsAsked) {
  SystemClock clock;
  const auto start = clock.now();
  EXPECT_THAT(clock.sleep_for(milliseconds(20), {}), IsOk());
  EXPECT_GE(clock.now() - start, milliseconds(20));
}

TEST(SystemClock, WallTimeIsTheSystems) {
  const SystemClock clock;
  const auto before = std::chrono::system_clock::now();
  const auto told = clock.wall_now();
  EXPECT_GE(told, before);
  EXPECT_LE(told, std::chrono::system_clock::now());
}

TEST(SystemClock, DoesNotSleepOnceStopped) {
  SystemClock clock;
  std::stop_source source;
  source.request_stop();
  const auto start = steady_clock::now();
  EXPECT_THAT(clock.sleep_for(std::chrono::hours(1), source.get_token()),
              Fails(ErrorCode::kCancelled, "cancelled while waiting"));
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(SystemClock, WakesUpWhenStopped) {
  SystemClock clock;
  std::stop_source source;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(milliseconds(20));
    source.request_stop();
  });
  const auto start = steady_clock::now();
  EXPECT_THAT(clock.sleep_for(std::chrono::hours(1), source.get_token()),
              Fails(ErrorCode::kCancelled, "cancelled while waiting"));
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(10));
}

}  // namespace
}  // namespace gridscope
