#include "gridscope/http/client.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "http/scripted_client.hpp"
#include "support/matchers.hpp"

namespace gridscope::http {
namespace {

using std::chrono::seconds;
using test::CollectingObserver;
using test::Fails;
using test::IsOk;
using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pointee;
using ::testing::SizeIs;

TEST(IsRedirect, IsWhatCarriesALocation) {
  for (const int status : {301, 302, 303, 307, 308}) EXPECT_TRUE(is_redirect(status));
  for (const int status : {200, 206, 300, 304, 404}) EXPECT_FALSE(is_redirect(status));
}

// ---- fetch --------------------------------------------------------------------------------------

TEST_F(ClientTest, FetchBringsHeadAndBody) {
  script({{.headers = {{"X-Repo-Commit", "c0ffee"}}, .body = "{\"a\":1}"}});
  const auto document = fetch();
  ASSERT_THAT(document, IsOk());
  EXPECT_EQ(document->body, "{\"a\":1}");
  EXPECT_THAT(document->head.headers.find("X-Repo-Commit"), Pointee(Eq("c0ffee")));
  EXPECT_EQ(transport_.requests[0].headers.back().value, "identity");
  EXPECT_THAT(observer_.requests(),
              ElementsAre(CollectingObserver::Request{"GET", "https://h/file?..."}));
  EXPECT_THAT(observer_.retries(), IsEmpty());
}

TEST_F(ClientTest, FetchCountsTheBodyOfASuccessOnce) {
  using Read = CollectingObserver::Read;
  script({{.status = 503, .body = "busy"}, {.body = "answer"}, {.status = 404, .body = "why"}});
  ASSERT_THAT(fetch(), IsOk());
  ASSERT_THAT(fetch(), IsOk());
  EXPECT_THAT(observer_.reads(), ElementsAre(Read{"https://h/file?...", 0, 6, Origin::kNetwork}));
}

TEST_F(ClientTest, FetchReturnsFinalStatusesAsTheyAre) {
  for (const int status : {301, 307, 401, 403, 404, 416, 451}) {
    script({{.status = status, .body = "why"}});
    const auto document = fetch();
    ASSERT_THAT(document, IsOk());
    EXPECT_EQ(document->head.status, status);
    EXPECT_EQ(document->body, "why");
  }
}

TEST_F(ClientTest, FetchRetriesWhatIsTransient) {
  script({{.status = 503, .headers = {{"Retry-After", "4"}}, .body = "busy"},
          {.body = "hal", .error = kReset},
          {.status = 0, .error = Error{ErrorCode::kTimeout, "nothing arrived"}},
          {.body = "whole"}});
  const auto document = fetch();
  ASSERT_THAT(document, IsOk());
  EXPECT_EQ(document->body, "whole");
  EXPECT_THAT(clock_.sleeps(), ElementsAre(seconds(5), seconds(2), seconds(4)));
  using Retry = CollectingObserver::Retry;
  const std::string what = "GET https://h/file?...";
  EXPECT_THAT(observer_.retries(), ElementsAre(Retry{what, "status 503", 1, seconds(5)},
                                               Retry{what, "connection lost", 2, seconds(2)},
                                               Retry{what, "nothing arrived", 3, seconds(4)}));
  EXPECT_THAT(observer_.requests(), SizeIs(4));
}

TEST_F(ClientTest, FetchGivesUpAfterTheLastAttempt) {
  script(std::deque<Answer>(10, {.status = 502, .body = "bad gateway"}));
  const auto document = fetch();
  ASSERT_THAT(document, IsOk());
  EXPECT_EQ(document->head.status, 502);
  EXPECT_EQ(document->body, "bad gateway");
  EXPECT_THAT(transport_.requests, SizeIs(6));

  script(std::deque<Answer>(10, {.status = 0, .error = kReset}));
  EXPECT_THAT(fetch(), Fails(ErrorCode::kUnavailable, HasSubstr("connection lost")));
}

TEST_F(ClientTest, LooksForAHostOnceMore) {
  const auto not_found = Fails(ErrorCode::kUnavailable, HasSubstr("host not found"));
  script({kUnknownHost, kUnknownHost, {.body = "found"}});
  EXPECT_THAT(fetch(), not_found);
  EXPECT_THAT(clock_.sleeps(), ElementsAre(seconds(1)));
  script({kUnknownHost, kUnknownHost, part(0, 3)});
  EXPECT_THAT(read(0, 4), not_found);
  script({kUnknownHost, {.status = 0, .error = kReset}, kUnknownHost, {.body = "found"}});
  EXPECT_THAT(fetch(), IsOk());
}

TEST_F(ClientTest, FetchDoesNotRetryWhatIsFinal) {
  script({{.status = 0, .error = Error{ErrorCode::kPermission, "certificate"}}, {.body = "x"}});
  EXPECT_THAT(fetch(), Fails(ErrorCode::kPermission, _));
  EXPECT_THAT(transport_.requests, SizeIs(1));
}

TEST_F(ClientTest, FetchRefusesToWaitTooLong) {
  script({{.status = 429, .headers = {{"RateLimit", R"("api";r=0;t=900)"}}}, {.body = "x"}});
  EXPECT_THAT(fetch(),
              Fails(ErrorCode::kUnavailable, AllOf(HasSubstr("GET https://h/file?..."),
                                                   HasSubstr("901 s"), Not(HasSubstr("SECRET")))));
  EXPECT_THAT(clock_.sleeps(), IsEmpty());
}

TEST_F(ClientTest, FetchBoundsTheBody) {
  script({{.body = std::string(100, 'x')}});
  EXPECT_THAT(fetch(100), IsOk());
  script({{.body = std::string(101, 'x')}});
  EXPECT_THAT(fetch(100), Fails(ErrorCode::kLimit, HasSubstr("longer than 100 B")));
  script({{.headers = {{"Content-Length", "101"}}}});
  EXPECT_THAT(fetch(100), Fails(ErrorCode::kLimit, _));
  script({{.status = 404, .body = std::string(101, 'x')}});
  const auto document = fetch(100);
  ASSERT_THAT(document, IsOk());
  EXPECT_EQ(document->body, std::string(100, 'x'));
}

TEST_F(ClientTest, FetchOfAHeadTakesAnyLength) {
  script({{.headers = {{"Content-Length", "5000000000"}, {"Content-Encoding", "gzip"}}}});
  EXPECT_THAT(client_.fetch({.method = Method::kHead, .url = url_}, 0), IsOk());
}

TEST_F(ClientTest, FetchRefusesAnEncodedBody) {
  script({{.headers = {{"Content-Encoding", "gzip"}}, .body = "\x1f\x8b"}});
  EXPECT_THAT(fetch(), Fails(ErrorCode::kUnsupported, HasSubstr("gzip")));
  script({{.headers = {{"Content-Encoding", "Identity"}}, .body = "x"}});
  EXPECT_THAT(fetch(), IsOk());
}

TEST_F(ClientTest, StopEndsWaitingAndSending) {
  script({{.status = 503}, {.body = "x"}});
  stop_.request_stop();
  EXPECT_THAT(fetch(), Fails(ErrorCode::kCancelled, _));
  EXPECT_THAT(read(0, 4), Fails(ErrorCode::kCancelled, _));
}

}  // namespace
}  // namespace gridscope::http
