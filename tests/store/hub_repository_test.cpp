#include "gridscope/store/hub_repository.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "store/world.hpp"

namespace gridscope::store {
namespace {

using test::Fails;
using test::HttpReply;
using test::HttpRequest;
using test::HubAccess;
using test::HubStage;
using test::IsOk;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

void write(const std::filesystem::path& file, std::string_view text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

std::string commit_of_small_repo() {
  return small_repo().commit;
}

std::filesystem::path folder_in(const World& world) {
  return world.directory / "hub" / "models--org--model";
}

Result<std::string> read_file_of(const Repository& repository, std::string_view path) {
  GRIDSCOPE_TRY(const auto source, repository.open(path));
  return read_all(*source);
}

TEST(HubRepository, PinsTheRevisionAndListsTheFiles) {
  World world;
  const auto repository = open_hub_repository(hub_reference(), world.context());
  ASSERT_THAT(repository, IsOk());
  const RepositoryInfo& info = (*repository)->info();
  EXPECT_EQ(info.kind, ReferenceKind::kHub);
  EXPECT_EQ(info.location, kRepo);
  EXPECT_EQ(info.revision, "main");
  EXPECT_EQ(info.commit, commit_of_small_repo());
  std::vector<std::string> paths;
  for (const FileEntry& file : *(*repository)->listing()) paths.push_back(file.path);
  EXPECT_THAT(paths,
              ElementsAre("config.json", "license.txt", "model.safetensors", "sub/notes.txt"));
  EXPECT_THAT(world.hub.requests(), SizeIs(2));
}

TEST(HubRepository, ReadsEveryKindOfFile) {
  World world;
  const auto repository = open_hub_repository(hub_reference(), world.context());
  ASSERT_THAT(repository, IsOk());
  for (const auto& [path, file] : small_repo().files) {
    EXPECT_EQ(read_file_of(**repository, path), std::string(file.content())) << path;
  }
}

TEST(HubRepository, AsksForFilesOfThePinnedCommitOnlyAndAlwaysByRange) {
  World world;
  const auto repository = open_hub_repository(hub_reference(), world.context());
  ASSERT_THAT(repository, IsOk());
  world.hub.forget_requests();
  ASSERT_THAT(read_file_of(**repository, kLargePath), IsOk());
  ASSERT_THAT(read_file_of(**repository, "license.txt"), IsOk());
  for (const HttpRequest& request : world.hub.requests()) {
    EXPECT_THAT(request.range(), HasSubstr("bytes=")) << request.target;
    EXPECT_EQ(request.field("Accept-Encoding"), "identity");
    if (request.host() == "localhost") continue;
    EXPECT_THAT(request.path(), HasSubstr("/resolve/" + commit_of_small_repo() + "/"));
  }
}

TEST(HubRepository, FindsFilesAndKnowsWhatIsNotThere) {
  World world;
  const auto repository = open_hub_repository(hub_reference(), world.context());
  ASSERT_THAT(repository, IsOk());
  const auto found = (*repository)->find("license.txt");
  ASSERT_THAT(found, IsOk());
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->size, 5U);
  EXPECT_EQ((*repository)->find("missing.txt").value(), std::nullopt);
  EXPECT_THAT((*repository)->find("../x"), Fails(ErrorCode::kInvalidArgument, HasSubstr("path")));
  EXPECT_THAT((*repository)->open("missing.txt"),
              Fails(ErrorCode::kNotFound, HasSubstr("missing.txt")));
  EXPECT_THAT((*repository)->open("sub"), Fails(ErrorCode::kNotFound, HasSubstr("sub")));
}

TEST(HubRepository, TakesTheSha256OfLargeFilesFromTheListing) {
  World world;
  const auto repository = open_hub_repository(hub_reference(), world.context());
  ASSERT_THAT(repository, IsOk());
  EXPECT_THAT((*repository)->find(kLargePath).value()->content_id, SizeIs(64));
  EXPECT_THAT((*repository)->find("license.txt").value()->content_id, SizeIs(40));
}

TEST(HubRepository, NamesAFileOrAFolder) {
  World world;
  const auto file = open_hub_repository(hub_reference("", "license.txt"), world.context());
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ((*file)->named_file(), "license.txt");
  const auto folder = open_hub_repository(hub_reference("", "sub"), world.context());
  ASSERT_THAT(folder, IsOk());
  EXPECT_EQ((*folder)->named_file(), "sub");
  EXPECT_THAT(open_hub_repository(hub_reference("", "missing"), world.context()),
              Fails(ErrorCode::kNotFound, HasSubstr("no file or folder \"missing\"")));
}

TEST(HubRepository, AsksNothingTwiceForAFullCommitThatIsKept) {
  World world;
  const ModelReference reference = hub_reference(commit_of_small_repo());
  for (int run = 0; run < 2; ++run) {
    world.hub.forget_requests();
    const auto repository = open_hub_repository(reference, world.caching_context());
    ASSERT_THAT(repository, IsOk());
    EXPECT_EQ(read_file_of(**repository, kLargePath), pattern(kLargeSize));
    EXPECT_EQ(read_file_of(**repository, "license.txt"), "free\n");
  }
  EXPECT_THAT(world.hub.requests(), IsEmpty());
}

TEST(HubRepository, AsksOnceAgainWhatABranchIs) {
  World world;
  for (int run = 0; run < 2; ++run) {
    world.hub.forget_requests();
    const auto repository = open_hub_repository(hub_reference("main"), world.caching_context());
    ASSERT_THAT(repository, IsOk());
    EXPECT_EQ(read_file_of(**repository, kLargePath), pattern(kLargeSize));
  }
  ASSERT_THAT(world.hub.requests(), SizeIs(1));
  EXPECT_EQ(world.hub.requests()[0].path(), "/api/models/org/model/revision/main");
}

TEST(HubRepository, SeesABranchMove) {
  World world;
  ASSERT_THAT(open_hub_repository(hub_reference(), world.caching_context()), IsOk());
  test::HubRepo moved = small_repo();
  moved.commit = std::string(40, 'b');
  moved.files["license.txt"].text = "not free\n";
  world.hub.set_repo(moved);
  const auto repository = open_hub_repository(hub_reference(), world.caching_context());
  ASSERT_THAT(repository, IsOk());
  EXPECT_EQ((*repository)->info().commit, std::string(40, 'b'));
  EXPECT_EQ(read_file_of(**repository, "license.txt"), "not free\n");
}

TEST(HubRepository, EncodesARevisionAsOneSegment) {
  test::HubRepo repo = small_repo();
  repo.revisions = {"refs/pr/7"};
  World world({}, repo);
  const auto repository = open_hub_repository(hub_reference("refs/pr/7"), world.context());
  ASSERT_THAT(repository, IsOk());
  EXPECT_EQ(world.hub.requests()[0].path(), "/api/models/org/model/revision/refs%2Fpr%2F7");
}

TEST(HubRepository, FollowsARenameWithItsToken) {
  test::HubRepo repo = small_repo();
  repo.moved_from = "org/old";
  repo.access = HubAccess::kPrivate;
  World world({.token = std::string(kToken)}, repo);
  StoreContext context = world.context();
  context.hub.token = kToken;
  ModelReference reference = hub_reference();
  for (const char* name : {"org/old", "ORG/Model"}) {
    reference.location = name;
    const auto repository = open_hub_repository(reference, context);
    ASSERT_THAT(repository, IsOk()) << name;
    EXPECT_EQ(read_file_of(**repository, kLargePath), pattern(kLargeSize)) << name;
  }
}

TEST(HubRepository, ReadsADownloadedFileFromDisk) {
  World world;
  const std::string path = fmt::format("snapshots/{}/license.txt", commit_of_small_repo());
  write(folder_in(world) / path, "disk\n");  // of the size that the listing tells
  const auto repository = open_hub_repository(hub_reference(), world.context());
  ASSERT_THAT(repository, IsOk());
  world.hub.forget_requests();
  EXPECT_EQ(read_file_of(**repository, "license.txt"), "disk\n");
  EXPECT_THAT(world.hub.requests(), IsEmpty());
}

TEST(HubRepository, DoesNotUseADownloadedFileOfTheWrongSize) {
  World world;
  const std::string path = fmt::format("snapshots/{}/license.txt", commit_of_small_repo());
  write(folder_in(world) / path, "cut");
  const auto repository = open_hub_repository(hub_reference(), world.context());
  ASSERT_THAT(repository, IsOk());
  EXPECT_EQ(read_file_of(**repository, "license.txt"), "free\n");
  EXPECT_THAT(world.wire.observer.details(), Contains(HasSubstr("3 bytes in the Hub's cache")));
}

TEST(HubRepository, DoesNotUseASnapshotOfAnotherCommit) {
  World world;
  write(folder_in(world) / fmt::format("snapshots/{}/license.txt", std::string(40, 'c')), "old!\n");
  const auto repository = open_hub_repository(hub_reference(), world.context());
  ASSERT_THAT(repository, IsOk());
  EXPECT_EQ(read_file_of(**repository, "license.txt"), "free\n");
}

TEST(HubRepositoryOffline, ServesWhatTheHubsToolsDownloaded) {
  World world;
  StoreContext context = world.context();
  context.hub.offline = true;
  context.client = nullptr;
  write(folder_in(world) / "refs/main", commit_of_small_repo() + "\n");
  write(folder_in(world) / fmt::format("snapshots/{}/license.txt", commit_of_small_repo()),
        "free\n");
  const auto repository = open_hub_repository(hub_reference(), context);
  ASSERT_THAT(repository, IsOk());
  EXPECT_EQ((*repository)->info().commit, commit_of_small_repo());
  EXPECT_EQ(read_file_of(**repository, "license.txt"), "free\n");
  EXPECT_THAT(*(*repository)->listing(), SizeIs(1));
  EXPECT_THAT(world.wire.observer.details(),
              AllOf(Contains(HasSubstr("commit " + commit_of_small_repo())),
                    Contains(HasSubstr("only the 1 file"))));
  EXPECT_THAT(world.hub.requests(), IsEmpty());
}

TEST(HubRepositoryOffline, ServesWhatWasReadBefore) {
  World world;
  {
    const auto repository = open_hub_repository(hub_reference(), world.caching_context());
    ASSERT_THAT(repository, IsOk());
    ASSERT_THAT(read_file_of(**repository, kLargePath), IsOk());
  }
  world.hub.forget_requests();
  StoreContext context = world.caching_context();
  context.hub.offline = true;
  const auto repository = open_hub_repository(hub_reference(), context);
  ASSERT_THAT(repository, IsOk());
  EXPECT_THAT(*(*repository)->listing(), SizeIs(4));
  EXPECT_EQ(read_file_of(**repository, kLargePath), pattern(kLargeSize));
  EXPECT_THAT(read_file_of(**repository, "license.txt"),
              Fails(ErrorCode::kUnavailable, HasSubstr("HF_HUB_OFFLINE is set")));
  EXPECT_THAT(world.hub.requests(), IsEmpty());
}

TEST(HubRepositoryOffline, SaysSoWhenNothingIsKept) {
  World world;
  StoreContext context = world.caching_context();
  context.hub.offline = true;
  EXPECT_THAT(open_hub_repository(hub_reference(), context),
              Fails(ErrorCode::kUnavailable, HasSubstr("HF_HUB_OFFLINE")));
  EXPECT_THAT(open_hub_repository(hub_reference(commit_of_small_repo()), context),
              Fails(ErrorCode::kUnavailable, HasSubstr("HF_HUB_OFFLINE")));
  EXPECT_THAT(world.hub.requests(), IsEmpty());
}

TEST(HubRepositoryOffline, IsOfferedWhenTheHubIsOutOfReach) {
  World world;
  ASSERT_THAT(open_hub_repository(hub_reference(), world.caching_context()), IsOk());
  world.hub.add_fault({.stage = HubStage::kInfo, .change = [](const HttpRequest&, HttpReply) {
                         return HttpReply{.status = 503};
                       }});
  EXPECT_THAT(open_hub_repository(hub_reference(), world.caching_context()),
              Fails(ErrorCode::kUnavailable, HasSubstr("HF_HUB_OFFLINE=1")));
  EXPECT_THAT(open_hub_repository(hub_reference(), world.context()),
              Fails(ErrorCode::kUnavailable, Not(HasSubstr("HF_HUB_OFFLINE"))));
}

struct Refusal {
  const char* name;
  HubAccess access;
  std::string server_token;
  std::string token;
  ErrorCode code;
  const char* message;
};

class HubRefusal : public ::testing::TestWithParam<Refusal> {};

TEST_P(HubRefusal, SaysWhatToDo) {
  const Refusal& want = GetParam();
  test::HubRepo repo = small_repo();
  repo.access = want.access;
  World world({.token = want.server_token, .token_in_list = false}, repo);
  StoreContext context = world.context();
  context.hub.token = want.token;
  auto outcome = [&]() -> Result<std::string> {
    GRIDSCOPE_TRY(const auto repository, open_hub_repository(hub_reference(), context));
    return read_file_of(*repository, "license.txt");
  }();
  EXPECT_THAT(outcome,
              Fails(want.code, AllOf(HasSubstr(want.message), HasSubstr("request Root="))));
  EXPECT_THAT(describe(outcome.error()), Not(HasSubstr("secret")));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, HubRefusal,
    ::testing::Values(Refusal{"private", HubAccess::kPrivate, "hf_secret", "", ErrorCode::kNotFound,
                              "or it is private"},
                      Refusal{"wrong_token", HubAccess::kPublic, "hf_secret", "hf_secret_other",
                              ErrorCode::kPermission, "token is wrong or has expired"},
                      Refusal{"gated", HubAccess::kGated, "hf_secret", "", ErrorCode::kPermission,
                              "is gated and no valid token"},
                      Refusal{"not_in_list", HubAccess::kGated, "hf_secret", "hf_secret",
                              ErrorCode::kPermission, "access list"},
                      Refusal{"disabled", HubAccess::kDisabled, "hf_secret", "",
                              ErrorCode::kPermission, "has been disabled"}),
    [](const auto& suite) { return std::string(suite.param.name); });

TEST(HubRepository, NamesAMissingRepositoryAndRevision) {
  World world({.token = std::string(kToken)});
  ModelReference reference = hub_reference();
  reference.location = "org/other";
  EXPECT_THAT(open_hub_repository(reference, world.context()),
              Fails(ErrorCode::kNotFound, HasSubstr("no model org/other")));
  StoreContext context = world.context();
  context.hub.token = kToken;
  EXPECT_THAT(open_hub_repository(reference, context),
              Fails(ErrorCode::kNotFound, HasSubstr("no model org/other")));
  EXPECT_THAT(open_hub_repository(hub_reference("no-such"), world.context()),
              Fails(ErrorCode::kNotFound, HasSubstr("no such revision")));
}

TEST(HubRepository, RefusesNamesThatCouldEscape) {
  World world;
  ModelReference reference = hub_reference("../../x");
  EXPECT_THAT(open_hub_repository(reference, world.context()),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("revision")));
  reference = hub_reference();
  reference.location = "../x";
  EXPECT_THAT(open_hub_repository(reference, world.context()),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("Hub id")));
}

TEST(HubRepository, ShowsAWarningOfTheHubOnce) {
  World world;
  for (const HubStage stage : {HubStage::kInfo, HubStage::kTree}) {
    world.hub.add_fault({.stage = stage, .change = [](const HttpRequest&, HttpReply reply) {
                           reply.fields.push_back({"X-HF-Warning", "unauthenticated; Log in."});
                           return reply;
                         }});
  }
  ASSERT_THAT(open_hub_repository(hub_reference(), world.context()), IsOk());
  const auto warnings = world.wire.observer.warnings();
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].code, "HUB_WARNING");
  EXPECT_EQ(warnings[0].message, "Log in.");
}

}  // namespace
}  // namespace gridscope::store
