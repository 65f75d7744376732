#include "gridscope/http/retry.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "support/matchers.hpp"

namespace gridscope::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Fails;
using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;

// 1994-11-06 08:49:37 UTC
constexpr std::chrono::system_clock::time_point kNow{seconds(784'111'777)};

Failure failure_with(const ResponseHead& response) {
  return {.attempt = 1, .response = &response, .now = kNow};
}

TEST(IsTransient, IsOnlyWhatMayPass) {
  for (const int status : {408, 429, 500, 502, 503, 504}) EXPECT_TRUE(is_transient_status(status));
  for (const int status : {200, 206, 302, 400, 401, 403, 404, 416, 451, 501}) {
    EXPECT_FALSE(is_transient_status(status));
  }
  EXPECT_TRUE(is_transient(ErrorCode::kUnavailable));
  EXPECT_TRUE(is_transient(ErrorCode::kTimeout));
  EXPECT_FALSE(is_transient(ErrorCode::kPermission));
  EXPECT_FALSE(is_transient(ErrorCode::kCorrupt));
  EXPECT_FALSE(is_transient(ErrorCode::kCancelled));
}

TEST(Attempts, AreEnoughAtTheMost) {
  Attempts attempts({.max_attempts = 3});
  for (const int made : {1, 2}) {
    attempts.add(HostName::kResolved);
    EXPECT_EQ(attempts.made(), made);
    EXPECT_FALSE(attempts.are_enough());
  }
  attempts.add(HostName::kResolved);
  EXPECT_TRUE(attempts.are_enough());
  attempts.begin_anew();
  EXPECT_FALSE(attempts.are_enough());
}

TEST(Attempts, AreEnoughSoonWhenNoHostIsFound) {
  Attempts attempts({});
  attempts.add(HostName::kUnresolved);
  attempts.add(HostName::kResolved);
  attempts.add(HostName::kUnresolved);
  EXPECT_FALSE(attempts.are_enough());
  attempts.add(HostName::kUnresolved);
  EXPECT_TRUE(attempts.are_enough());
}

TEST(RetryWait, DoublesUpToTheLongest) {
  std::vector<milliseconds> waits;
  for (int attempt = 1; attempt <= 6; ++attempt) {
    waits.push_back(retry_wait({}, {.attempt = attempt, .now = kNow}).value());
  }
  EXPECT_EQ(waits, (std::vector<milliseconds>{seconds(1), seconds(2), seconds(4), seconds(8),
                                              seconds(8), seconds(8)}));
  EXPECT_EQ(retry_wait({}, {.attempt = 1'000'000, .now = kNow}).value(), seconds(8));
}

TEST(RetryWait, AddsJitterAsAShare) {
  EXPECT_EQ(retry_wait({.jitter = 0.5}, {.attempt = 2, .now = kNow, .random = 0.5}).value(),
            milliseconds(2'500));
}

TEST(RetryWait, WaitsForTheRateLimitToReset) {
  const ResponseHead limited{
      .status = 429, .headers = {{"RateLimit", R"("resolvers";r=0;t=172)"}, {"Retry-After", "5"}}};
  EXPECT_EQ(retry_wait({}, failure_with(limited)).value(), seconds(173));
}

TEST(RetryWait, RateLimitCountsOnlyWhenItIsTheCause) {
  const ResponseHead remaining{.status = 429, .headers = {{"RateLimit", R"("api";r=3;t=172)"}}};
  EXPECT_EQ(retry_wait({}, failure_with(remaining)).value(), seconds(1));
  const ResponseHead other{.status = 503, .headers = {{"RateLimit", R"("api";r=0;t=172)"}}};
  EXPECT_EQ(retry_wait({}, failure_with(other)).value(), seconds(1));
}

TEST(RetryWait, HonoursRetryAfterOfAnyTransientStatus) {
  const ResponseHead busy{.status = 503, .headers = {{"Retry-After", "7"}}};
  EXPECT_EQ(retry_wait({}, failure_with(busy)).value(), seconds(8));
  const ResponseHead until{.status = 429,
                           .headers = {{"Retry-After", "Sun, 06 Nov 1994 08:50:07 GMT"}}};
  EXPECT_EQ(retry_wait({}, failure_with(until)).value(), seconds(31));
  const ResponseHead odd{.status = 503, .headers = {{"Retry-After", "soon"}}};
  EXPECT_EQ(retry_wait({}, failure_with(odd)).value(), seconds(1));
}

TEST(RetryWait, RefusesToWaitTooLong) {
  const ResponseHead busy{.status = 429, .headers = {{"Retry-After", "3600"}}};
  EXPECT_THAT(retry_wait({}, failure_with(busy)),
              Fails(ErrorCode::kUnavailable,
                    AllOf(HasSubstr("429"), HasSubstr("3601 s"), HasSubstr("300 s"))));
  const ResponseHead forever{.status = 503, .headers = {{"Retry-After", "18446744073709551615"}}};
  EXPECT_THAT(retry_wait({}, failure_with(forever)), Fails(ErrorCode::kUnavailable, _));
}

TEST(ParseRateLimit, ReadsRemainingAndReset) {
  const auto limit = parse_rate_limit(R"("resolvers";r=2999;t=172)").value();
  EXPECT_EQ(limit.remaining, 2999U);
  EXPECT_EQ(limit.reset, seconds(172));
  EXPECT_EQ(parse_rate_limit("default; t=5 ; r=1")->reset, seconds(5));
}

TEST(ParseRateLimit, TakesTheTightestOfSeveral) {
  const auto limit = parse_rate_limit(R"("api";r=10;t=1, "a;r=7,b";r=0;t=9, "pages";r=3;t=2)");
  ASSERT_TRUE(limit.has_value());
  EXPECT_EQ(limit->remaining, 0U);
  EXPECT_EQ(limit->reset, seconds(9));
}

TEST(ParseRateLimit, IsEmptyForAllElse) {
  for (const char* value : {"", "r", ";", ",", "\"api\"", "\"api\";r=1", "\"api\";t=1",
                            "\"api\";r=-1;t=1", "\"api\";r=1;t=x", "\"api;r=1;t=1", "r=;t="}) {
    EXPECT_EQ(parse_rate_limit(value).has_value(), false) << value;
  }
}

TEST(ParseRetryAfter, ReadsSecondsAndDates) {
  EXPECT_EQ(parse_retry_after("120", kNow), seconds(120));
  EXPECT_EQ(parse_retry_after(" 0 ", kNow), seconds(0));
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:47 GMT", kNow), seconds(10));
  EXPECT_EQ(parse_retry_after("Sunday, 06-Nov-94 08:49:47 GMT", kNow), seconds(10));
  EXPECT_EQ(parse_retry_after("Sun Nov  6 08:49:47 1994", kNow), seconds(10));
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:00:00 GMT", kNow), seconds(0));
}

TEST(ParseRetryAfter, IsEmptyForAllElse) {
  for (const char* value : {"", " ", "-1", "+5", "1.5", "1e3", "soon", "Sunday", "Mon, 99 Foo 1994",
                            "Nov 6 1994", "18446744073709551616"}) {
    EXPECT_FALSE(parse_retry_after(value, kNow).has_value()) << value;
  }
  const std::string long_date = "Sun, 06 Nov 1994 08:49:47 GMT" + std::string(100, ' ') + "x";
  EXPECT_FALSE(parse_retry_after(long_date, kNow).has_value());
}

RC_GTEST_PROP(RetryWait, StaysWithinItsBounds, (const std::string& text, bool limited)) {
  const ResponseHead head{.status = 429,
                          .headers = {{limited ? "RateLimit" : "Retry-After", text}}};
  const auto wait = retry_wait({}, failure_with(head));
  RC_PRE(wait.has_value());
  RC_ASSERT(*wait >= milliseconds(1'000) && *wait <= milliseconds(300'000));
}

}  // namespace
}  // namespace gridscope::http
