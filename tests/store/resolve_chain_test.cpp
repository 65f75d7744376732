#include "gridscope/store/resolve_chain.hpp"

#include <gtest/gtest.h>

#include <map>

#include "store/world.hpp"

namespace gridscope::store {
namespace {

using test::Fails;
using test::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ResolveChain : public ::testing::Test {
 protected:
  ResolveChain() {
    const StoreContext context{.client = &wire_.client(), .observer = &wire_.observer};
    session_ =
        RemoteSession::make(RemoteSession::Kind::kHub, "https://mirror.example", context).value();
  }

  Result<Resolution> resolve() {
    return resolve_chain(*session_, http::parse_url("https://mirror.example/start").value(),
                         [&](const http::Url& url) -> Result<http::ResponseHead> {
                           asked_.push_back(url.text());
                           return answers_.at(url.text());
                         });
  }

  Wire wire_;
  std::shared_ptr<RemoteSession> session_;
  std::map<std::string, http::ResponseHead> answers_;
  std::vector<std::string> asked_;
};

TEST_F(ResolveChain, EndsWhereTheFirstHopAnswers) {
  answers_["https://mirror.example/start"] = {
      .status = 206,
      .headers = {{"X-Repo-Commit", "c"}, {"ETag", "W/\"abc\""}, {"Content-Length", "99"}}};
  const auto found = resolve();
  ASSERT_THAT(found, IsOk());
  EXPECT_FALSE(found->elsewhere);
  EXPECT_EQ(found->metadata, (HopMetadata{.commit = "c", .size = {}, .content_id = "abc"}));
}

TEST_F(ResolveChain, StopsBeforeAnotherHostAndTakesTheHubsWord) {
  answers_["https://mirror.example/start"] = {.status = 302,
                                              .headers = {{"Location", "https://cdn.example/f?s=1"},
                                                          {"X-Repo-Commit", "c"},
                                                          {"X-Linked-Size", "123"},
                                                          {"X-Linked-ETag", "\"sha\""},
                                                          {"ETag", "\"other\""},
                                                          {"Content-Length", "17"}}};
  const auto found = resolve();
  ASSERT_THAT(found, IsOk());
  EXPECT_TRUE(found->elsewhere);
  EXPECT_EQ(found->url.text(), "https://cdn.example/f?s=1");
  EXPECT_EQ(found->metadata, (HopMetadata{.commit = "c", .size = 123, .content_id = "sha"}));
  EXPECT_THAT(asked_, SizeIs(1));
}

TEST_F(ResolveChain, FollowsTheHubsOwnHopsWithTheirQuery) {
  answers_["https://mirror.example/start"] = {.status = 307,
                                              .headers = {{"Location", "/new?x=%22y%22"}}};
  answers_["https://mirror.example/new?x=%22y%22"] = {
      .status = 308, .headers = {{"Location", "https://huggingface.co/real"}}};
  answers_["https://huggingface.co/real"] = {.status = 200, .headers = {{"X-Repo-Commit", "c"}}};
  const auto found = resolve();
  ASSERT_THAT(found, IsOk());
  EXPECT_FALSE(found->elsewhere);
  EXPECT_EQ(found->metadata.commit, "c");
  EXPECT_THAT(asked_,
              ElementsAre("https://mirror.example/start", "https://mirror.example/new?x=%22y%22",
                          "https://huggingface.co/real"));
}

TEST_F(ResolveChain, LetsALaterHopsWordStand) {
  answers_["https://mirror.example/start"] = {
      .status = 307, .headers = {{"Location", "/b"}, {"X-Repo-Commit", "old"}, {"ETag", "\"1\""}}};
  answers_["https://mirror.example/b"] = {
      .status = 200, .headers = {{"X-Repo-Commit", "new"}, {"X-Linked-Size", "many"}}};
  const auto found = resolve();
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->metadata, (HopMetadata{.commit = "new", .size = {}, .content_id = "1"}));
}

TEST_F(ResolveChain, GivesUpOnALoop) {
  answers_["https://mirror.example/start"] = {.status = 302, .headers = {{"Location", "/start"}}};
  EXPECT_THAT(resolve(), Fails(ErrorCode::kCorrupt, HasSubstr("more than 8 redirects")));
  EXPECT_THAT(asked_, SizeIs(kMaxRedirects + 1));
}

}  // namespace
}  // namespace gridscope::store
