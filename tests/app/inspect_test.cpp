#include "gridscope/app/inspect.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>

#include "app/support.hpp"
#include "support/checkpoints.hpp"
#include "support/fakes.hpp"
#include "support/http_server.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::app {
namespace {

namespace fs = std::filesystem;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class InspectUseCase : public ::testing::Test {
 protected:
  void SetUp() override {
    test::SafetensorsBuilder shard;
    shard.tensor("model.embed_tokens.weight", Dtype::kBF16, {4, 8});
    shard.tensor("model.norm.weight", Dtype::kF32, {8});
    test::write_checkpoint(model(), {.config = R"({"model_type": "llama"})",
                                     .shards = {{"model.safetensors", shard}}});
    context_ =
        Context::make(settings_with({{"HF_HUB_OFFLINE", "1"}, {"HF_HUB_CACHE", hub_cache()}}),
                      observer_)
            .value();
  }

  [[nodiscard]] fs::path model() const { return directory_ / "model"; }
  [[nodiscard]] std::string hub_cache() const { return (directory_ / "hub").string(); }
  [[nodiscard]] Result<analysis::Inspection> run(const InspectRequest& request) {
    return inspect(request, *context_);
  }

  test::TempDir directory_;
  test::CollectingObserver observer_;
  std::unique_ptr<Context> context_;
};

TEST_F(InspectUseCase, GoesFromAReferenceToAnInspection) {
  const auto inspection = run({.model = model().string()});
  ASSERT_THAT(inspection, test::IsOk());
  EXPECT_EQ(inspection->kind, "disk");
  EXPECT_EQ(inspection->model_type, "llama");
  EXPECT_EQ(inspection->tensor_count, 2U);
  EXPECT_EQ(inspection->tensor_bytes, 96U);
}

TEST_F(InspectUseCase, CountsWhatThisRequestRead) {
  const auto first = run({.model = model().string()});
  ASSERT_THAT(first, test::IsOk());
  EXPECT_GT(first->reads.requests, 0U);
  EXPECT_GT(first->reads.bytes, 0U);
  EXPECT_GT(first->read_seconds, 0.0);
  const auto second = run({.model = model().string()});
  ASSERT_THAT(second, test::IsOk());
  EXPECT_EQ(second->reads, first->reads);
}

TEST_F(InspectUseCase, PassesTheOptionsOn) {
  const auto inspection = run({.model = model().string(),
                               .options = {.by = analysis::GroupBy::kFile,
                                           .tensors = analysis::InspectOptions::Tensors::kList}});
  ASSERT_THAT(inspection, test::IsOk());
  EXPECT_EQ(inspection->tensors.size(), 2U);
  EXPECT_EQ(inspection->groups.size(), 1U);
}

TEST_F(InspectUseCase, SaysThatABareNameIsTakenFromDisk) {
  const fs::path before = fs::current_path();
  fs::current_path(directory_.path());
  const auto bare = run({.model = "model"});
  const auto with_revision = run({.model = "model", .revision = "main"});
  fs::current_path(before);
  ASSERT_THAT(bare, test::IsOk());
  EXPECT_THAT(observer_.details(),
              ElementsAre(HasSubstr("\"model\" exists on disk and is read from there")));
  EXPECT_THAT(with_revision, test::Fails(ErrorCode::kInvalidArgument, HasSubstr("hf://")));
}

TEST_F(InspectUseCase, TakesARevisionForTheHubAlone) {
  EXPECT_THAT(run({.model = model().string(), .revision = "main"}),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("no repository of the Hub")));
  EXPECT_THAT(run({.model = "hf://org/name@v1", .revision = "v2"}),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("two revisions")));
  EXPECT_THAT(run({.model = "hf://org/name", .revision = "a..b"}),
              test::Fails(ErrorCode::kInvalidArgument, _));
}

TEST_F(InspectUseCase, LooksForTheRevisionThatIsNamed) {
  const std::string commit(40, 'a');
  const fs::path repository = fs::path(hub_cache()) / "models--org--name";
  test::write_file(repository / "refs/v2", commit);
  fs::create_directories(repository / "snapshots");
  fs::copy(model(), repository / "snapshots" / commit);
  const auto inspection = run({.model = "hf://org/name", .revision = "v2"});
  ASSERT_THAT(inspection, test::IsOk());
  EXPECT_EQ(inspection->commit, commit);
  EXPECT_EQ(inspection->revision, "v2");
  EXPECT_THAT(observer_.requests(), IsEmpty());
  EXPECT_THAT(run({.model = "hf://org/name@v2", .revision = "v2"}), test::IsOk());
  EXPECT_THAT(run({.model = "hf://org/name"}), ::testing::Not(test::IsOk()));
}

TEST_F(InspectUseCase, FindsThatAServerIgnoresRanges) {
  const std::string weights = test::to_text(test::read_file(model() / "model.safetensors"));
  const test::HttpServer server([&](const test::HttpRequest& request) {
    if (!request.target.ends_with("/model.safetensors")) return test::HttpReply{.status = 404};
    return test::HttpReply{.body = request.method == "HEAD" ? "" : weights};
  });
  const auto context = Context::make(settings_with({}), observer_).value();
  const auto inspection = inspect({.model = server.url("/model.safetensors")}, *context);
  ASSERT_THAT(inspection, test::IsOk());
  const auto has_code = [](const Finding& finding) { return finding.code == "RANGE_IGNORED"; };
  const auto found = std::ranges::find_if(inspection->findings, has_code);
  ASSERT_NE(found, inspection->findings.end());
  EXPECT_EQ(found->severity, Severity::kWarning);
  EXPECT_THAT(found->message, HasSubstr("whole files"));
  EXPECT_NE(found->remedy, "");
  EXPECT_EQ(std::ranges::count_if(inspection->findings, has_code), 1);
  EXPECT_TRUE(
      std::ranges::is_sorted(inspection->findings, std::ranges::greater{}, &Finding::severity));
  EXPECT_THAT(observer_.warnings(), SizeIs(1));
}

TEST_F(InspectUseCase, HeedsTheLimits) {
  Settings settings = settings_with({});
  settings.limits.tensors = 1;
  const auto context = Context::make(settings, observer_).value();
  EXPECT_THAT(inspect({.model = model().string()}, *context), test::Fails(ErrorCode::kLimit, _));
}

TEST_F(InspectUseCase, ReadsTheDiskWithoutTheHubsVariablesAndTheCache) {
  test::write_file(directory_ / "file", std::string_view());
  Settings settings = settings_with({{"HF_TOKEN", "${HF_TOKEN}"}, {"HF_ENDPOINT", "bad"}});
  settings.cache = Settings::Cache::kUse;
  settings.cache_directory = directory_ / "file";
  const auto context = Context::make(settings, observer_).value();
  EXPECT_THAT(inspect({.model = model().string()}, *context), test::IsOk());
  EXPECT_THAT(observer_.warnings(), IsEmpty());
  EXPECT_THAT(inspect({.model = "hf://org/name"}, *context),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("HF_ENDPOINT")));
}

TEST_F(InspectUseCase, KnowsThePagesOfTheHubThatIsNamed) {
  Settings settings =
      settings_with({{"HF_HUB_OFFLINE", "1"}, {"HF_ENDPOINT", "https://mirror.example/hub/"}});
  const auto context = Context::make(settings, observer_).value();
  EXPECT_THAT(inspect({.model = "https://mirror.example/hub/datasets/x"}, *context),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("datasets are not models")));
}

TEST_F(InspectUseCase, SaysThatABareNameIsNoPath) {
  constexpr auto kNoPath = "\"org/name\" is no path on disk and was taken for";
  EXPECT_THAT(run({.model = "org/name"}), test::Fails(ErrorCode::kUnavailable, HasSubstr(kNoPath)));
  EXPECT_THAT(run({.model = "hf://org/name"}),
              test::Fails(ErrorCode::kUnavailable, Not(HasSubstr("no path"))));
  EXPECT_THAT(run({.model = "org/name", .revision = "v1"}),
              test::Fails(ErrorCode::kUnavailable, Not(HasSubstr("no path"))));
}

TEST_F(InspectUseCase, RefusesReferencesThatAreNone) {
  EXPECT_THAT(run({.model = ""}), test::Fails(ErrorCode::kInvalidArgument, _));
  EXPECT_THAT(run({.model = "a/b/c/d"}), test::Fails(ErrorCode::kInvalidArgument, _));
  EXPECT_THAT(run({.model = "./absent"}), test::Fails(ErrorCode::kNotFound, _));
}

}  // namespace
}  // namespace gridscope::app
