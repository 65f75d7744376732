#include "gridscope/store/hub_api.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "store/world.hpp"

namespace gridscope::store {
namespace {

using test::Fails;
using test::HttpReply;
using test::HttpRequest;
using test::HubStage;
using test::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class HubApi : public ::testing::Test {
 protected:
  explicit HubApi(test::HubServerOptions options = {}) : world_(std::move(options)) {
    session_ =
        RemoteSession::make(RemoteSession::Kind::kHub, world_.hub.endpoint(), world_.context())
            .value();
  }

  void answer(HubStage stage, HttpReply reply, std::size_t times = SIZE_MAX) {
    world_.hub.add_fault({.stage = stage,
                          .change = [reply](const auto&, const auto&) { return reply; },
                          .times = times});
  }

  const std::string commit_ = small_repo().commit;
  World world_;
  std::shared_ptr<RemoteSession> session_;
};

TEST_F(HubApi, TellsTheCommitOfARevision) {
  EXPECT_EQ(fetch_commit(*session_, kRepo, "main").value(), commit_);
  EXPECT_EQ(fetch_commit(*session_, kRepo, commit_.substr(0, 8)).value(), commit_);
  EXPECT_EQ(world_.hub.requests()[0].query(), "expand=sha");
}

TEST_F(HubApi, WaitsAsLongAsTheRateLimitSays) {
  answer(HubStage::kInfo,
         {.status = 429, .fields = {{"RateLimit", "\"api\";r=0;t=30"}}, .body = "slow down"}, 1);
  EXPECT_EQ(fetch_commit(*session_, kRepo, "main").value(), commit_);
  EXPECT_THAT(world_.wire.clock.sleeps(), ::testing::ElementsAre(std::chrono::seconds(31)));
}

TEST_F(HubApi, GivesUpOnARateLimitThatLasts) {
  answer(HubStage::kInfo, {.status = 429, .body = "slow down"});
  EXPECT_THAT(
      fetch_commit(*session_, kRepo, "main"),
      Fails(ErrorCode::kUnavailable, AllOf(HasSubstr("rate limit"), HasSubstr("HF_TOKEN"))));
  EXPECT_THAT(world_.hub.requests(), SizeIs(6));
}

TEST_F(HubApi, RecognisesWhatIsNoHub) {
  answer(HubStage::kInfo,
         {.fields = {{"Content-Type", "text/html"}}, .body = "<html>Log in</html>"});
  EXPECT_THAT(fetch_commit(*session_, kRepo, "main"),
              Fails(ErrorCode::kUnsupported,
                    AllOf(HasSubstr("page instead of JSON"), HasSubstr("X-Repo-Commit"),
                          HasSubstr("/api/models/org/model/revision/main"),
                          HasSubstr("HF_ENDPOINT"), Not(HasSubstr("Log in")))));
}

TEST_F(HubApi, RecognisesALoginPageOnAnotherHost) {
  answer(HubStage::kInfo,
         {.status = 302, .fields = {{"Location", world_.hub.content_origin() + "/login?next=x"}}});
  EXPECT_THAT(fetch_commit(*session_, kRepo, "main"),
              Fails(ErrorCode::kUnsupported,
                    AllOf(HasSubstr("redirects to \"localhost\""), Not(HasSubstr("next=")))));
  EXPECT_THAT(world_.requests_to("localhost"), IsEmpty());
}

TEST_F(HubApi, RefusesACommitThatIsNone) {
  for (const char* body : {"{}", R"({"sha": 1})", R"({"sha": "main"})", "[]"}) {
    world_.hub.clear_faults();
    answer(HubStage::kInfo, {.body = body});
    EXPECT_THAT(fetch_commit(*session_, kRepo, "main"),
                Fails(ErrorCode::kUnsupported, HasSubstr("no commit")))
        << body;
  }
}

TEST_F(HubApi, SaysWhereJsonBreaks) {
  answer(HubStage::kInfo, {.body = R"({"sha": )"});
  EXPECT_THAT(fetch_commit(*session_, kRepo, "main"),
              Fails(ErrorCode::kCorrupt, HasSubstr("/api/models/org/model")));
}

TEST_F(HubApi, ListsFilesWithTheirContentIds) {
  const auto files = fetch_listing(*session_, kRepo, commit_);
  ASSERT_THAT(files, IsOk());
  ASSERT_THAT(*files, SizeIs(4));
  EXPECT_EQ((*files)[0].path, "config.json");
  EXPECT_THAT((*files)[0].content_id, SizeIs(40));
  EXPECT_EQ((*files)[2].path, kLargePath);
  EXPECT_EQ((*files)[2].size, kLargeSize);
  EXPECT_THAT((*files)[2].content_id, SizeIs(64));
  EXPECT_EQ(world_.hub.requests()[0].query(), "recursive=true&expand=false");
}

class HubApiPages : public HubApi {
 protected:
  HubApiPages() : HubApi({.page_size = 2}) {}
};

TEST_F(HubApiPages, AreAllRead) {
  const auto files = fetch_listing(*session_, kRepo, commit_);
  ASSERT_THAT(files, IsOk());
  EXPECT_THAT(*files, SizeIs(4));
  EXPECT_THAT(world_.hub.requests(), SizeIs(3));  // the folder is an entry too
}

TEST_F(HubApiPages, MustNotRepeat) {
  world_.hub.add_fault(
      {.stage = HubStage::kTree, .change = [](const HttpRequest& request, auto reply) {
         const std::string self =
             "<http://" + request.field("Host") + request.target + ">; rel=\"next\"";
         reply.fields = {{"Link", self}};
         return reply;
       }});
  EXPECT_THAT(fetch_listing(*session_, kRepo, commit_),
              Fails(ErrorCode::kCorrupt, HasSubstr("repeat")));
}

TEST_F(HubApiPages, MustNotLeaveTheHub) {
  world_.hub.add_fault({.stage = HubStage::kTree, .change = [&](const HttpRequest&, auto reply) {
                          reply.fields = {{"Link", "<" + world_.hub.content_origin() +
                                                       "/x?cursor=secret>; rel=\"next\""}};
                          return reply;
                        }});
  EXPECT_THAT(fetch_listing(*session_, kRepo, commit_),
              Fails(ErrorCode::kCorrupt, AllOf(HasSubstr("localhost"), Not(HasSubstr("secret")))));
  EXPECT_THAT(world_.requests_to("localhost"), IsEmpty());
}

TEST_F(HubApiPages, AreAskedOfTheMirrorWhenTheyNameTheHub) {
  world_.hub.add_fault({.stage = HubStage::kTree, .change = [](const HttpRequest&, auto reply) {
                          for (auto& field : reply.fields) {
                            const std::size_t start = field.value.find("/api/");
                            if (field.name != "Link") continue;
                            field.value = "<https://huggingface.co" + field.value.substr(start);
                          }
                          return reply;
                        }});
  const auto files = fetch_listing(*session_, kRepo, commit_);
  ASSERT_THAT(files, IsOk());
  EXPECT_THAT(*files, SizeIs(4));
}

TEST_F(HubApi, RefusesAListingOfTheWrongShape) {
  for (const char* body :
       {"{}", "[1]", R"([{"type": "file"}])", R"([{"path": "x", "size": 1}])",
        R"([{"type": "file", "path": "x"}])", R"([{"type": "file", "path": "x", "size": -1}])",
        R"([{"type": "file", "path": "x", "size": "1"}])"}) {
    world_.hub.clear_faults();
    answer(HubStage::kTree, {.body = body});
    EXPECT_THAT(fetch_listing(*session_, kRepo, commit_),
                Fails(ErrorCode::kCorrupt, HasSubstr("/tree/")))
        << body;
  }
}

TEST_F(HubApi, LeavesOutNamesThatCouldEscape) {
  answer(HubStage::kTree, {.body = R"([{"type": "file", "path": "../x", "size": 1},
    {"type": "file", "path": "/x", "size": 1}, {"type": "unknown", "path": "y"},
    {"type": "file", "path": "ok", "size": 1, "oid": 5}])"});
  EXPECT_EQ(fetch_listing(*session_, kRepo, commit_).value(),
            (std::vector<FileEntry>{{"ok", 1, ""}}));
}

TEST_F(HubApi, BuildsResolveUrls) {
  EXPECT_EQ(resolve_url_of(*session_, kRepo, commit_, "sub dir/a?b#c.json").value().path,
            fmt::format("/org/model/resolve/{}/sub%20dir/a%3Fb%23c.json", commit_));
}

TEST(NextLink, IsFoundAmongOthers) {
  EXPECT_EQ(next_link({}), "");
  EXPECT_EQ(next_link({{"Link", "<https://x/a?cursor=1>; rel=\"next\""}}), "https://x/a?cursor=1");
  EXPECT_EQ(next_link({{"link", "<https://x/a>; rel=\"prev\", <https://x/b>; rel=\"next\""}}),
            "https://x/b");
  EXPECT_EQ(next_link({{"Link", "<a>; rel=\"first\""}, {"Link", "<b>; rel=\"next\""}}), "b");
  for (const char* none : {"", "<", "<a", "a>", "><", "<a>; rel=\"last\""}) {
    EXPECT_EQ(next_link({{"Link", none}}), "") << none;
  }
}

}  // namespace
}  // namespace gridscope::store
