#include "gridscope/store/remote_session.hpp"

#include <gtest/gtest.h>

#include "store/world.hpp"

namespace gridscope::store {
namespace {

using test::Fails;
using test::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

http::Url url_of(std::string_view text) {
  return http::parse_url(text).value();
}

class RemoteSessionTest : public ::testing::Test {
 protected:
  std::shared_ptr<RemoteSession> session(std::string_view endpoint,
                                         RemoteSession::Kind kind = RemoteSession::Kind::kHub) {
    StoreContext context{.client = &wire_.client(), .observer = &wire_.observer};
    context.hub.token = kToken;
    return RemoteSession::make(kind, endpoint, context).value();
  }

  Wire wire_;
};

TEST_F(RemoteSessionTest, ShowsTheTokenToTheEndpointsOriginOnly) {
  const auto hub = session("https://huggingface.co");
  const auto headers = hub->headers_for(url_of("https://huggingface.co/any/path"));
  ASSERT_THAT(headers, SizeIs(1));
  EXPECT_EQ(headers[0].name, "Authorization");
  EXPECT_EQ(headers[0].value, "Bearer hf_verysecrettoken");
  for (const char* other :
       {"http://huggingface.co/x", "https://huggingface.co:8443/x", "https://hf.co/x",
        "https://huggingface.co.evil.example/x", "https://cdn-lfs-us-1.hf.co/x"}) {
    EXPECT_THAT(hub->headers_for(url_of(other)), IsEmpty()) << other;
    EXPECT_FALSE(hub->sends_token_to(url_of(other))) << other;
  }
}

TEST_F(RemoteSessionTest, ShowsNoTokenToTheHubThroughAMirror) {
  const auto mirror = session("https://mirror.example/hf");
  EXPECT_EQ(mirror->endpoint(), "https://mirror.example/hf");
  EXPECT_TRUE(mirror->is_own(url_of("https://huggingface.co/x")));
  EXPECT_FALSE(mirror->is_own(url_of("http://huggingface.co/x")));
  EXPECT_FALSE(mirror->sends_token_to(url_of("https://huggingface.co/x")));
}

TEST_F(RemoteSessionTest, HasNoTokenForAWebServer) {
  const auto web = session("https://files.example/", RemoteSession::Kind::kWeb);
  EXPECT_THAT(web->headers_for(url_of("https://files.example/x")), IsEmpty());
  EXPECT_FALSE(web->is_own(url_of("https://huggingface.co/x")));
}

TEST_F(RemoteSessionTest, FollowsRelativeAndAbsoluteLocationsWithTheirQuery) {
  const auto hub = session("https://huggingface.co");
  const http::Url from = url_of("https://huggingface.co/a/b/resolve/main/x");
  const auto target = [&](const char* location) {
    return hub->redirect_target(from, {.status = 307, .headers = {{"Location", location}}});
  };
  EXPECT_EQ(target("/api/y?a=b&c").value().text(), "https://huggingface.co/api/y?a=b&c");
  EXPECT_EQ(target("https://cdn.example/z?s=1").value().text(), "https://cdn.example/z?s=1");
  EXPECT_THAT(
      target("http://cdn.example/z?s=secret"),
      Fails(ErrorCode::kPermission, AllOf(HasSubstr("plain http"), Not(HasSubstr("secret")))));
  EXPECT_THAT(target("ftp://x/?secret"),
              Fails(ErrorCode::kCorrupt, AllOf(HasSubstr("no URL"), Not(HasSubstr("secret")))));
  EXPECT_THAT(hub->redirect_target(from, {.status = 302, .headers = {}}),
              Fails(ErrorCode::kCorrupt, HasSubstr("without a Location")));
}

TEST_F(RemoteSessionTest, MayLeadToHttpsFromHttp) {
  const auto local = session("http://127.0.0.1:8080");
  const http::Url from = url_of("http://127.0.0.1:8080/x");
  EXPECT_THAT(local->redirect_target(
                  from, {.status = 302, .headers = {{"Location", "http://localhost:8080/y"}}}),
              IsOk());
}

TEST_F(RemoteSessionTest, PassesEachWarningOnOnce) {
  const auto hub = session("https://huggingface.co");
  const http::ResponseHead head{.status = 200,
                                .headers = {{"x-hf-warning", "topic; First."},
                                            {"X-HF-Warning", "no topic"},
                                            {"X-HF-Warning", "other; First."}}};
  hub->note_warnings(head);
  hub->note_warnings(head);
  const auto warnings = wire_.observer.warnings();
  ASSERT_THAT(warnings, SizeIs(2));
  EXPECT_EQ(warnings[0].message, "First.");
  EXPECT_EQ(warnings[1].message, "no topic");
}

TEST_F(RemoteSessionTest, KeepsAFloodOfWarningsShort) {
  const auto hub = session("https://huggingface.co");
  for (int i = 0; i < 1000; ++i) hub->warn_once("CODE", std::to_string(i), "");
  EXPECT_THAT(wire_.observer.warnings(), SizeIs(100));
}

TEST_F(RemoteSessionTest, IsNotMadeOfflineOrWithoutAClient) {
  StoreContext context{.client = &wire_.client(), .observer = &wire_.observer};
  context.hub.offline = true;
  EXPECT_THAT(RemoteSession::make(RemoteSession::Kind::kWeb, "https://x", context),
              Fails(ErrorCode::kUnavailable, HasSubstr("HF_HUB_OFFLINE")));
  EXPECT_THAT(
      RemoteSession::make(RemoteSession::Kind::kWeb, "https://x", {.observer = &wire_.observer}),
      Fails(ErrorCode::kUnavailable, HasSubstr("no HTTP client")));
}

TEST_F(RemoteSessionTest, NamesTheEndpointWhenItIsNoHub) {
  const auto hub = session("https://mirror.example");
  const Error error = not_a_hub(*hub, url_of("https://mirror.example/x?s=1"), "sent nothing");
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(describe(error), AllOf(HasSubstr("https://mirror.example/x"),
                                     HasSubstr("HF_ENDPOINT"), Not(HasSubstr("s=1"))));
}

}  // namespace
}  // namespace gridscope::store
