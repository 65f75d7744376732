// The client over real connections: whatever breaks on the way, the bytes are right or an error
// says why.

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "gridscope/http/client.hpp"
#include "gridscope/http/curl_transport.hpp"
#include "support/fakes.hpp"
#include "support/http_server.hpp"
#include "support/matchers.hpp"

namespace gridscope::http {
namespace {

using std::chrono::seconds;
using test::CollectingObserver;
using test::HttpFault;
using test::HttpReply;
using test::HttpRequest;
using test::HttpServer;
using test::IsOk;
using test::ManualClock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ClientOverNetworkTest : public ::testing::Test {
 protected:
  static std::string make_content() {
    std::string content(300'000, '\0');
    for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7 % 251);
    return content;
  }

  const std::string content_ = make_content();
  std::unique_ptr<Transport> transport_ =
      make_curl_transport({.stall_timeout = seconds(1)}).value();
  ManualClock clock_;
  CollectingObserver observer_;
  Client client_{*transport_, clock_, observer_, {}};
};

// Keeps what it takes.
TakeBytes append_to(std::string& text) {
  return [&text](std::span<const std::byte> bytes) -> Status {
    text += test::to_text(bytes);
    return {};
  };
}

// Whatever breaks, and wherever: the bytes are right in the end.
TEST_F(ClientOverNetworkTest, SurvivesFaultsAtEveryStage) {
  using Kind = HttpFault::Kind;
  using From = HttpFault::From;
  const std::vector<HttpFault> faults = {
      {.kind = Kind::kDrop, .after = 0, .from = From::kResponse},
      {.kind = Kind::kReset, .after = 9, .from = From::kResponse},
      {.kind = Kind::kDrop, .after = 40, .from = From::kResponse},
      {.kind = Kind::kDrop, .after = 0},
      {.kind = Kind::kDrop, .after = 1},
      {.kind = Kind::kReset, .after = 70'000},
      {.kind = Kind::kStall, .after = 50'000},
      {.kind = Kind::kDrop, .after = 60'000}};
  std::size_t next = 0;
  HttpServer server([&](const HttpRequest& request) {
    HttpReply reply = serve_content(request, content_);
    if (next < faults.size()) reply.fault = faults[next++];
    return reply;
  });
  std::string taken;
  const auto reply = client_.read_range(
      {.url = parse_url(server.url("/f?key=SECRET")).value(), .offset = 1'000, .length = 250'000},
      append_to(taken));
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->total, content_.size());
  EXPECT_TRUE(taken == content_.substr(1'000, 250'000));
  for (const auto& retry : observer_.retries()) {
    EXPECT_THAT(retry.what, StartsWith("GET http://127.0.0.1:"));
    EXPECT_THAT(retry.reason, Not(StartsWith("GET ")));
    EXPECT_THAT(retry.what + retry.reason, Not(HasSubstr("SECRET")));
  }
  for (const HttpRequest& request : server.requests()) {
    EXPECT_THAT(request.range(), HasSubstr("bytes="));
    EXPECT_EQ(request.field("Accept-Encoding"), "identity");
  }
}

TEST_F(ClientOverNetworkTest, EndsATransferThatIgnoresTheRange) {
  const std::string large(10'000'000, 'x');
  HttpServer server([&](const HttpRequest&) { return HttpReply{.body = large}; });
  std::string taken;
  const auto reply =
      client_.read_range({.url = parse_url(server.url()).value(), .length = 8}, append_to(taken));
  ASSERT_THAT(reply, IsOk());
  EXPECT_TRUE(reply->range_ignored);
  EXPECT_EQ(reply->total, large.size());
  EXPECT_EQ(taken, "xxxxxxxx");
}

TEST_F(ClientOverNetworkTest, ReadsRangesFromManyThreads) {
  constexpr std::size_t kThreads = 32;
  std::size_t count = 0;
  HttpServer server([&](const HttpRequest& request) {
    HttpReply reply = serve_content(request, content_);
    if (++count % 5 == 0) reply.fault = {.kind = HttpFault::Kind::kDrop, .after = 1'000};
    return reply;
  });
  const Url url = parse_url(server.url()).value();
  std::vector<int> good(kThreads);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        std::string taken;
        const auto reply = client_.read_range({.url = url, .offset = i * 9'000, .length = 9'000},
                                              append_to(taken));
        good[i] = reply && taken == content_.substr(i * 9'000, 9'000);
      });
    }
  }
  EXPECT_THAT(good, ::testing::Each(1));
}

TEST_F(ClientOverNetworkTest, FetchesADocumentAfterARateLimit) {
  int asked = 0;
  HttpServer server([&](const HttpRequest&) {
    if (++asked == 1) {
      return HttpReply{.status = 429, .fields = {{"RateLimit", R"("api";r=0;t=30)"}}};
    }
    return HttpReply{.body = "[]"};
  });
  const auto document = client_.fetch({.url = parse_url(server.url("/api")).value()}, 1'000);
  ASSERT_THAT(document, IsOk());
  EXPECT_EQ(document->body, "[]");
  EXPECT_THAT(clock_.sleeps(), ElementsAre(seconds(31)));
}

}  // namespace
}  // namespace gridscope::http
