#include "gridscope/store/remote_file.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "gridscope/store/hub_api.hpp"
#include "store/world.hpp"

namespace gridscope::store {
namespace {

using namespace std::chrono_literals;
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

class RemoteFileTest : public ::testing::Test {
 protected:
  RemoteFileTest() {
    StoreContext context = world_.context();
    context.connections = 4;
    session_ =
        RemoteSession::make(RemoteSession::Kind::kHub, world_.hub.endpoint(), context).value();
  }

  [[nodiscard]] RemoteFileSpec spec(std::string_view path = kLargePath) const {
    const std::string commit = small_repo().commit;
    const std::string content(small_repo().files.at(std::string(path)).content());
    return {.session = session_,
            .url = resolve_url_of(*session_, kRepo, commit, path).value(),
            .name = std::string(path),
            .size = content.size(),
            .commit = commit,
            .repo_id = std::string(kRepo)};
  }
  [[nodiscard]] std::unique_ptr<io::ByteSource> file() const { return make_remote_file(spec()); }

  // The first answer for content, or all, become `reply`.
  void refuse_content(HttpReply reply, std::size_t times) {
    world_.hub.add_fault({.stage = HubStage::kContent,
                          .change = [reply](const auto&, const auto&) { return reply; },
                          .times = times});
  }

  World world_;
  const std::string content_ = pattern(kLargeSize);
  std::shared_ptr<RemoteSession> session_;
};

TEST_F(RemoteFileTest, KnowsItself) {
  RemoteFileSpec known = spec();
  known.content_id = "abc";
  const auto source = make_remote_file(known);
  EXPECT_EQ(source->size(), kLargeSize);
  EXPECT_EQ(source->identity(),
            (io::SourceIdentity{.name = "model.safetensors", .version = "abc"}));
}

TEST_F(RemoteFileTest, ReadsAnyRangeAndNothingBeyond) {
  const auto source = file();
  EXPECT_EQ(read_text(*source, 0, 1), content_.substr(0, 1));
  EXPECT_EQ(read_text(*source, 123'456, 7'890), content_.substr(123'456, 7'890));
  EXPECT_EQ(read_text(*source, kLargeSize - 1, 1), content_.substr(kLargeSize - 1));
  EXPECT_EQ(read_all(*source), content_);
  world_.hub.forget_requests();
  EXPECT_EQ(read_text(*source, kLargeSize, 0), "");
  EXPECT_THAT(read_text(*source, kLargeSize, 1),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("300")));
  EXPECT_THAT(read_text(*source, UINT64_MAX, 2), Fails(ErrorCode::kInvalidArgument, HasSubstr("")));
  EXPECT_THAT(world_.hub.requests(), IsEmpty());
}

TEST_F(RemoteFileTest, FindsTheContentOnceAndThenAsksItDirectly) {
  const auto source = file();
  ASSERT_THAT(read_text(*source, 0, 10), IsOk());
  ASSERT_THAT(read_text(*source, 1000, 10), IsOk());
  ASSERT_THAT(read_text(*source, 200'000, 10), IsOk());
  EXPECT_THAT(world_.requests_to("127.0.0.1"), SizeIs(1));
  EXPECT_THAT(world_.requests_to("localhost"), SizeIs(3));
}

TEST_F(RemoteFileTest, FindsTheContentOnceForManyReadersAtOnce) {
  const auto source = file();
  std::vector<std::jthread> readers;
  for (std::size_t i = 0; i < 8; ++i) {
    readers.emplace_back([&, i] {
      EXPECT_EQ(read_text(*source, i * 30'000, 100), content_.substr(i * 30'000, 100));
    });
  }
  readers.clear();
  EXPECT_THAT(world_.requests_to("127.0.0.1"), SizeIs(1));
  EXPECT_THAT(world_.requests_to("localhost"), SizeIs(8));
}

// Where the server is gone, those that wait for one reader's look-up fail with it: each of them
// would try for just as long, one after the other.
TEST_F(RemoteFileTest, FailsForManyReadersAsSoonAsForOne) {
  constexpr std::size_t kReaders = 8;
  const test::HttpFault gone{.kind = test::HttpFault::Kind::kReset,
                             .from = test::HttpFault::From::kResponse};
  const auto source = file();
  world_.hub.add_fault({.stage = HubStage::kResolve,
                        .change =
                            [gone](const auto&, const auto&) {
                              std::this_thread::sleep_for(20ms);  // until all have begun
                              return HttpReply{.body = "gone", .fault = gone};
                            },
                        .times = 1000});
  EXPECT_THAT(read_text(*source, 0, 100), Fails(ErrorCode::kUnavailable, HasSubstr("")));
  const std::size_t of_one = world_.hub.requests().size();
  ASSERT_GT(of_one, 1);
  world_.hub.forget_requests();
  std::vector<std::jthread> readers;
  for (std::size_t i = 0; i < kReaders; ++i) {
    readers.emplace_back([&, i] {
      EXPECT_THAT(read_text(*source, i * 30'000, 100),
                  Fails(ErrorCode::kUnavailable, HasSubstr("")));
    });
  }
  readers.clear();
  EXPECT_LE(world_.hub.requests().size(), 2 * of_one);
}

TEST_F(RemoteFileTest, MergesNeighboursAndReadsTheRestInParallel) {
  const auto source = file();
  std::vector<std::string> texts(4, std::string(1000, '\0'));
  const std::array<std::uint64_t, 4> offsets = {200'000, 0, 500, 3'000};
  std::vector<io::ReadRequest> requests;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    requests.push_back({.offset = offsets[i], .into = std::as_writable_bytes(std::span(texts[i]))});
  }
  ASSERT_THAT(source->read_many(requests), IsOk());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(texts[i], content_.substr(offsets[i], 1000)) << i;
  }
  EXPECT_THAT(world_.requests_to("localhost"), SizeIs(2));
}

TEST(RemoteFilePieces, ALongRangeIsReadOverSeveralConnections) {
  constexpr std::size_t kSize = 10'000'000;
  test::HubRepo repo = small_repo();
  repo.files[std::string(kLargePath)].text = pattern(kSize);
  World world({}, repo);
  const StoreContext context = world.context();
  const auto session =
      RemoteSession::make(RemoteSession::Kind::kHub, world.hub.endpoint(), context).value();
  const auto source =
      make_remote_file({.session = session,
                        .url = resolve_url_of(*session, kRepo, repo.commit, kLargePath).value(),
                        .name = std::string(kLargePath),
                        .size = kSize,
                        .commit = repo.commit,
                        .repo_id = std::string(kRepo)});
  EXPECT_EQ(read_all(*source), pattern(kSize));
  EXPECT_THAT(world.requests_to("localhost"), SizeIs(3));
}

TEST_F(RemoteFileTest, LooksTheContentUpAgainBeforeItsUrlExpires) {
  const auto source = file();
  ASSERT_THAT(read_text(*source, 0, 10), IsOk());
  world_.wire.clock.advance(3600s - 121s);
  ASSERT_THAT(read_text(*source, 0, 10), IsOk());
  EXPECT_THAT(world_.requests_to("127.0.0.1"), SizeIs(1));
  world_.wire.clock.advance(2s);
  ASSERT_THAT(read_text(*source, 0, 10), IsOk());
  EXPECT_THAT(world_.requests_to("127.0.0.1"), SizeIs(2));
}

TEST_F(RemoteFileTest, LooksTheContentUpOnceMoreWhenItIsRefused) {
  for (const int status : {401, 403, 404}) {
    world_.hub.clear_faults();
    const auto source = file();
    ASSERT_THAT(read_text(*source, 0, 10), IsOk());
    world_.hub.forget_requests();
    refuse_content({.status = status, .body = "expired"}, 1);
    EXPECT_EQ(read_text(*source, 1000, 10), content_.substr(1000, 10)) << status;
    EXPECT_THAT(world_.requests_to("127.0.0.1"), SizeIs(1));
    EXPECT_THAT(world_.requests_to("localhost"), SizeIs(2));
  }
}

TEST_F(RemoteFileTest, ReportsAContentHostThatGoesOnRefusing) {
  refuse_content({.status = 403, .body = "Auth failed: SignatureError: invalid key pair id\nmore"},
                 SIZE_MAX);
  const auto source = file();
  EXPECT_THAT(read_text(*source, 0, 10),
              Fails(ErrorCode::kPermission,
                    AllOf(HasSubstr("Auth failed: SignatureError: invalid key pair id"),
                          HasSubstr("http://localhost:"), Not(HasSubstr("Signature=")))));
  EXPECT_THAT(world_.requests_to("127.0.0.1"), SizeIs(2));
  EXPECT_THAT(world_.requests_to("localhost"), SizeIs(2));
}

TEST_F(RemoteFileTest, FollowsAContentHostThatRedirects) {
  world_.hub.add_fault({.stage = HubStage::kContent,
                        .change =
                            [](const HttpRequest& request, auto) {
                              return HttpReply{.status = 302,
                                               .fields = {{"Location", request.target}}};
                            },
                        .times = 1});
  EXPECT_EQ(read_text(*file(), 5, 10), content_.substr(5, 10));
}

TEST_F(RemoteFileTest, GivesUpOnAContentHostThatRedirectsForEver) {
  world_.hub.add_fault(
      {.stage = HubStage::kContent, .change = [](const HttpRequest& request, auto) {
         return HttpReply{.status = 302, .fields = {{"Location", request.target}}};
       }});
  EXPECT_THAT(
      read_text(*file(), 5, 10),
      Fails(ErrorCode::kUnavailable, AllOf(HasSubstr("redirects"), Not(HasSubstr("Signature")))));
}

// What is said of the file itself must come from its bytes.
TEST_F(RemoteFileTest, NonsenseOfAServerIsNoFaultOfTheFile) {
  const std::vector<HttpReply> nonsense = {
      {.raw = "220 ready\r\n"}, {.status = 206, .body = "no Content-Range"}, {.status = 204}};
  for (const HttpReply& reply : nonsense) {
    world_.hub.clear_faults();
    refuse_content(reply, SIZE_MAX);
    EXPECT_THAT(read_text(*file(), 5, 10), Fails(ErrorCode::kUnavailable, HasSubstr("localhost")));
  }
}

TEST_F(RemoteFileTest, AsksByHeadAfterARangeWasAppliedToARedirect) {
  // The client asks twice before it believes a 416.
  world_.hub.add_fault(
      {.stage = HubStage::kResolve, .change = [](const HttpRequest& request, HttpReply reply) {
         if (request.method == "HEAD") return reply;
         return HttpReply{.status = 416,
                          .fields = {{"Content-Range", "bytes */177"}},
                          .body = "<html>no</html>"};
       }});
  EXPECT_EQ(read_text(*file(), 1000, 10), content_.substr(1000, 10));
  const auto asked = world_.requests_to("127.0.0.1");
  EXPECT_EQ(asked.back().method, "HEAD");
  EXPECT_EQ(asked.back().range(), "");
}

TEST_F(RemoteFileTest, ReportsARefusedRangeWithWhatWasAskedAndTold) {
  refuse_content({.status = 416, .fields = {{"Content-Range", "bytes */177"}}}, SIZE_MAX);
  EXPECT_THAT(read_text(*file(), 1000, 10),
              Fails(ErrorCode::kChanged, AllOf(HasSubstr("1000-1009"), HasSubstr("177"))));
}

TEST_F(RemoteFileTest, NamesTheHostsToLetThroughWhenTheContentHostIsOutOfReach) {
  world_.hub.add_fault(
      {.stage = HubStage::kResolve, .change = [](const HttpRequest&, HttpReply reply) {
         for (auto& field : reply.fields) {
           if (field.name == "Location") field.value = "http://localhost:1/x?s=1";
         }
         return reply;
       }});
  EXPECT_THAT(read_text(*file(), 0, 10),
              Fails(ErrorCode::kUnavailable, HasSubstr("us.aws.cdn.hf.co")));
}

TEST_F(RemoteFileTest, ServesItsPrefixAndGivesItUpOnceRead) {
  RemoteFileSpec known = spec();
  known.prefix = test::to_bytes(content_.substr(0, 1000));
  const auto source = make_remote_file(known);
  EXPECT_EQ(read_text(*source, 10, 100), content_.substr(10, 100));
  EXPECT_EQ(read_text(*source, 0, 1000), content_.substr(0, 1000));
  EXPECT_THAT(world_.hub.requests(), IsEmpty());
  EXPECT_EQ(read_text(*source, 0, 1000), content_.substr(0, 1000));
  EXPECT_THAT(world_.hub.requests(), SizeIs(2));
}

TEST_F(RemoteFileTest, KnowsWhetherItsServerIsNear) {
  const auto source = file();
  EXPECT_EQ(source->distance(), io::Distance::kFar) << "nothing is known yet";
  world_.hub.add_fault({.stage = HubStage::kContent,
                        .change =
                            [this](const HttpRequest&, HttpReply reply) {
                              world_.wire.clock.advance(3ms);
                              return reply;
                            },
                        .times = 1});
  ASSERT_THAT(read_text(*source, 0, 10), IsOk());
  EXPECT_EQ(source->distance(), io::Distance::kFar);
  ASSERT_THAT(read_text(*source, 0, 10), IsOk());
  EXPECT_EQ(source->distance(), io::Distance::kNear);
}

// ---- through a window

// Keeps what it gets.
io::UseBytes append_to(std::string& text) {
  return [&text](std::span<const std::byte> bytes) -> Status {
    text += test::to_text(bytes);
    return {};
  };
}

TEST_F(RemoteFileTest, ReadsThroughAWindowWithOneRequest) {
  const auto source = file();
  ASSERT_THAT(read_text(*source, 0, 10), IsOk());
  world_.hub.forget_requests();
  std::vector<std::byte> window(1'000);
  std::string text;
  EXPECT_THAT(source->read_through({.offset = 5, .length = 123'456}, window, append_to(text)),
              IsOk());
  EXPECT_TRUE(text == content_.substr(5, 123'456));
  EXPECT_THAT(world_.hub.requests(), SizeIs(1));
  EXPECT_THAT(source->read_through({.offset = kLargeSize, .length = 0}, window, append_to(text)),
              IsOk());
  EXPECT_THAT(source->read_through({.offset = 5, .length = kLargeSize}, window, append_to(text)),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("has 300000 bytes")));
  EXPECT_THAT(world_.hub.requests(), SizeIs(1));
}

TEST_F(RemoteFileTest, GoesOnAtANewLocationWhereTheOldOneBroke) {
  const auto source = file();
  ASSERT_THAT(read_text(*source, 0, 10), IsOk());
  world_.hub.forget_requests();
  int asked = 0;
  world_.hub.add_fault(
      {.stage = HubStage::kContent, .change = [&asked](const HttpRequest&, HttpReply reply) {
         ++asked;
         if (asked == 1) reply.fault = {.kind = test::HttpFault::Kind::kDrop, .after = 40'000};
         return asked == 2 ? HttpReply{.status = 403, .body = "expired"} : reply;
       }});
  std::vector<std::byte> window(1'000);
  std::string text;
  EXPECT_THAT(source->read_through({.offset = 0, .length = 100'000}, window, append_to(text)),
              IsOk());
  EXPECT_TRUE(text == content_.substr(0, 100'000));
  ASSERT_THAT(world_.requests_to("localhost"), SizeIs(3));
  EXPECT_EQ(world_.requests_to("localhost")[2].range(), "bytes=40000-99999");
  EXPECT_THAT(world_.requests_to("127.0.0.1"), SizeIs(1));
}

TEST_F(RemoteFileTest, DoesNotGoOnInAnotherFile) {
  const auto source = file();
  ASSERT_THAT(read_text(*source, 0, 10), IsOk());
  int asked = 0;
  world_.hub.add_fault(
      {.stage = HubStage::kContent, .change = [&asked](const HttpRequest&, HttpReply reply) {
         if (++asked == 1) {
           reply.fault = {.kind = test::HttpFault::Kind::kDrop, .after = 40'000};
           return reply;
         }
         for (auto& field : reply.fields) {
           if (field.name == "ETag") field.value = "\"another\"";
         }
         return reply;
       }});
  std::vector<std::byte> window(1'000);
  std::string text;
  EXPECT_THAT(source->read_through({.offset = 0, .length = 100'000}, window, append_to(text)),
              Fails(ErrorCode::kChanged, HasSubstr("ETag")));
  EXPECT_TRUE(text == content_.substr(0, 40'000));
  EXPECT_EQ(asked, 2);
}

// kCorrupt and kUnsupported of a server mean something else than those of the user.
TEST_F(RemoteFileTest, PassesTheUsersFailureOnAsItIs) {
  const auto source = file();
  ASSERT_THAT(read_text(*source, 0, 10), IsOk());
  world_.hub.forget_requests();
  std::vector<std::byte> window(1'000);
  for (const ErrorCode code :
       {ErrorCode::kCorrupt, ErrorCode::kUnsupported, ErrorCode::kUnavailable}) {
    int used = 0;
    const auto refuse = [&](std::span<const std::byte>) -> Status {
      ++used;
      return fail(code, "a bad scale");
    };
    EXPECT_THAT(source->read_through({.offset = 1, .length = 5'000}, window, refuse),
                Fails(code, "a bad scale"));
    EXPECT_EQ(used, 1);
  }
  EXPECT_THAT(world_.hub.requests(), SizeIs(3));
}

TEST_F(RemoteFileTest, ReadsAroundThroughAWindowWhereRangesAreIgnored) {
  world_.hub.add_fault(
      {.stage = HubStage::kContent, .change = [this](const HttpRequest&, const HttpReply&) {
         return HttpReply{.body = content_};
       }});
  std::vector<std::byte> window(1'000);
  for (const std::uint64_t offset : {100'000U, 0U}) {
    std::string text;
    EXPECT_THAT(file()->read_through({.offset = offset, .length = 2'500}, window, append_to(text)),
                IsOk());
    EXPECT_EQ(text, content_.substr(offset, 2'500));
  }
}

TEST_F(RemoteFileTest, ServesItsPrefixThroughAWindow) {
  RemoteFileSpec known = spec();
  known.prefix = test::to_bytes(content_.substr(0, 1000));
  std::vector<std::byte> window(400);
  std::string text;
  EXPECT_THAT(make_remote_file(known)->read_through({.offset = 0, .length = 1'000}, window,
                                                    append_to(text)),
              IsOk());
  EXPECT_EQ(text, content_.substr(0, 1000));
  EXPECT_THAT(world_.hub.requests(), IsEmpty());
}

// ---- what is reported

TEST_F(RemoteFileTest, ReportsNetworkReadsAndRequests) {
  ASSERT_THAT(read_text(*file(), 0, 10), IsOk());
  ASSERT_THAT(world_.wire.observer.reads(), SizeIs(1));
  EXPECT_EQ(world_.wire.observer.reads()[0].bytes, 10U);
  EXPECT_EQ(world_.wire.observer.reads()[0].origin, Origin::kNetwork);
  EXPECT_THAT(world_.wire.observer.requests(), SizeIs(2));
}

}  // namespace
}  // namespace gridscope::store
