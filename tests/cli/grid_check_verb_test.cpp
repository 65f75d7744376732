#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "app/grid_models.hpp"
#include "cli/support.hpp"
#include "gridscope/cli/verb_list.hpp"
#include "support/checkpoints.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class GridCheckVerb : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_grid_source(directory_ / "source");
    test::write_grid_build(directory_ / "build");
    test::write_grid_build(directory_ / "moved", 1);
  }

  [[nodiscard]] std::string path(const std::string& name) const {
    return (directory_ / name).string();
  }
  Result<Answer> run_words(std::vector<std::string> words) {
    words.insert(words.begin(), "grid-check");
    words.emplace_back("--no-cache");
    return run_grid_check(arguments_of(words), {.observer = observer_});
  }
  Result<Answer> run(const std::string& build, std::vector<std::string> options = {}) {
    options.insert(options.begin(), {path("source"), path(build)});
    return run_words(std::move(options));
  }

  NullObserver observer_;
  test::TempDir directory_;
};

TEST_F(GridCheckVerb, RendersEveryFormat) {
  const auto text = run("build");
  ASSERT_THAT(text, test::IsOk());
  EXPECT_THAT(text->text, HasSubstr("exact"));
  EXPECT_EQ(text->exit_code, 0);
  const auto json = run("build", {"--json"});
  ASSERT_THAT(json, test::IsOk());
  EXPECT_THAT(json->text, HasSubstr("\"gridscope.grid-check/1\""));
  const auto markdown = run("build", {"--format", "markdown"});
  ASSERT_THAT(markdown, test::IsOk());
  EXPECT_THAT(markdown->text, StartsWith("# Grid check against "));
}

TEST_F(GridCheckVerb, SeveralBuildsAreComparedInOneReport) {
  const auto text = run_words({path("source"), path("build"), path("moved")});
  ASSERT_THAT(text, test::IsOk());
  EXPECT_THAT(text->text, AllOf(HasSubstr("exact"), HasSubstr("levels_moved")));
}

TEST_F(GridCheckVerb, RequirementsDecideTheExitCode) {
  const auto code = [&](const std::vector<std::string>& options) {
    const auto answer = run("moved", options);
    EXPECT_THAT(answer, test::IsOk());
    return answer ? answer->exit_code : -1;
  };
  EXPECT_EQ(code({}), 0);
  EXPECT_EQ(code({"--require", "same_grid"}), 1);
  EXPECT_EQ(code({"--require", "same_grid", "--fail-on", "never"}), 0);
  EXPECT_EQ(code({"--max-moved", "0"}), 1);
  EXPECT_EQ(code({"--max-moved", "0.01"}), 0);
  EXPECT_EQ(code({"--min-sqnr", "99"}), 1);
  EXPECT_EQ(code({"--min-sqnr", "20"}), 0);
  EXPECT_EQ(code({"--tensor", "*norm*", "--require", "exact"}), 0);
  const auto failed = run("moved", {"--require", "same_grid", "--max-moved", "0"});
  ASSERT_THAT(failed, test::IsOk());
  EXPECT_EQ(failed->failures, "2 errors");
}

TEST_F(GridCheckVerb, ThePlanComparesNothing) {
  const auto text = run("build", {"--plan"});
  ASSERT_THAT(text, test::IsOk());
  EXPECT_THAT(text->text, StartsWith("2 pairs of tensors, 4,160 weights; "));
  const auto json = run("build", {"--plan", "--json", "--tensor", "*q_proj*"});
  ASSERT_THAT(json, test::IsOk());
  EXPECT_THAT(json->text, HasSubstr("\"tensors\": 1"));
}

TEST_F(GridCheckVerb, ShardsAreMergedIntoTheReportOfOneRun) {
  const auto whole = run("build", {"--json"});
  ASSERT_THAT(whole, test::IsOk());
  std::vector<std::string> merge = {"--merge", "--json"};
  for (const std::string shard : {"1/2", "2/2"}) {
    const auto part = run("build", {"--shard", shard});
    ASSERT_THAT(part, test::IsOk());
    const std::string file = path("part-" + shard.substr(0, 1));
    test::write_file(file, std::string_view(part->text));
    merge.push_back(file);
  }
  const auto merged = run_words(merge);
  ASSERT_THAT(merged, test::IsOk());
  EXPECT_EQ(merged->text, whole->text);
  merge.insert(merge.end(), {"--require", "exact", "--min-sqnr", "1"});
  EXPECT_THAT(run_words(merge), test::IsOk());
}

// A part has no verdict and one form: they would be without effect.
TEST_F(GridCheckVerb, RequirementsAndFormatsOfAPartAreRefused) {
  for (const std::vector<std::string>& requirement :
       {std::vector<std::string>{"--require", "exact"},
        {"--max-moved", "0"},
        {"--min-sqnr", "1"},
        {"--fail-on", "error"},
        {"--format", "markdown"}}) {
    std::vector<std::string> options = {"--shard", "1/2"};
    options.insert(options.end(), requirement.begin(), requirement.end());
    EXPECT_THAT(run("build", options),
                test::Fails(ErrorCode::kInvalidArgument,
                            AllOf(HasSubstr(requirement[0]), HasSubstr("--merge"))));
  }
  EXPECT_THAT(run("build", {"--shard", "1/2", "--plan", "--json"}), test::IsOk());
}

TEST_F(GridCheckVerb, ValuesThatMakeNoSenseAreNamed) {
  const auto refused = [&](const std::vector<std::string>& options, const char* expected) {
    EXPECT_THAT(run("build", options),
                test::Fails(ErrorCode::kInvalidArgument, HasSubstr(expected)));
  };
  for (const char* sample : {"0", "0.0", "1.5", "-1", "half"}) {
    refused({"--sample", sample}, "--sample: expected a count from 1 or a fraction");
  }
  for (const char* shard : {"0/2", "3/2", "2", "1/0", "a/b", "1/2/3"}) {
    refused({"--shard", shard}, "--shard: expected I/N");
  }
  refused({"--plan", "--format", "markdown"}, "no Markdown form");
  refused({"--tensor", "nothing*"}, "is named \"nothing*\"");
  EXPECT_THAT(run_words({path("source")}),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("BUILD is missing")));
  EXPECT_THAT(run_words({"--merge", path("source"), "--tensor", "x"}),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("exclude each other")));
}

}  // namespace
}  // namespace gridscope::cli
