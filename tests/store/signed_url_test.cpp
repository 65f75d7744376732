#include "gridscope/store/signed_url.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gridscope::store {
namespace {

using namespace std::chrono_literals;
using std::chrono::system_clock;

const system_clock::time_point kNow = std::chrono::sys_days(std::chrono::January / 1 / 2026) + 12h;

system_clock::time_point until(std::string query) {
  const http::Url url{.scheme = "https",
                      .host = "cdn.example",
                      .port = 443,
                      .path = "/x",
                      .query = std::move(query)};
  return good_until(url, kNow);
}

TEST(SignedUrl, IsGoodUntilTwoMinutesBeforeItsExpiry) {
  const auto expiry = kNow + 1h;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(expiry.time_since_epoch());
  EXPECT_EQ(until("a=b&Expires=" + std::to_string(seconds.count()) + "&Signature=x"),
            expiry - 2min);
  EXPECT_EQ(until("X-Amz-Date=20260101T120000Z&X-Amz-Expires=3600"), expiry - 2min);
}

TEST(SignedUrl, HasTenMinutesWhenItDoesNotSay) {
  for (const char* query :
       {"", "a", "Signature=x", "Expires=", "Expires=soon", "Expires=-1",
        "Expires=99999999999999999999", "X-Amz-Expires=3600", "X-Amz-Date=20260101T120000Z",
        "X-Amz-Date=20261301T120000Z&X-Amz-Expires=1", "X-Amz-Date=2026-01-01&X-Amz-Expires=1",
        "X-Amz-Date=20260101T120000Z&X-Amz-Expires=x",
        "X-Amz-Date=20260101Tab0000Z&X-Amz-Expires=1"}) {
    EXPECT_EQ(until(query), kNow + 10min) << query;
  }
}

TEST(SignedUrl, MayBePastItsTimeAtOnce) {
  EXPECT_LT(until("Expires=1"), kNow);
}

}  // namespace
}  // namespace gridscope::store
