#include "gridscope/app/grid_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "app/grid_models.hpp"
#include "app/support.hpp"
#include "gridscope/report/grid_check_report.hpp"
#include "support/fakes.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::app {
namespace {

namespace fs = std::filesystem;
using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class GridCheckUseCase : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_grid_source(directory_ / "source");
    test::write_grid_build(directory_ / "build");
    context_ = Context::make(settings_with({}), observer_).value();
  }

  [[nodiscard]] std::string path(const std::string& name) const {
    return (directory_ / name).string();
  }
  [[nodiscard]] GridCheckRequest request() const {
    return {.source = path("source"), .builds = {path("build")}};
  }
  // The text of one run without shards or journal.
  [[nodiscard]] std::string whole() const {
    const auto report = grid_check(request(), *context_);
    EXPECT_THAT(report, test::IsOk());
    return report ? report::grid_check_json(*report) : "";
  }
  void write(const std::string& name, const std::string& text) const {
    test::write_file(directory_ / name, std::string_view(text));
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    return test::to_text(test::read_file(directory_ / name));
  }
  [[nodiscard]] GridCheckRequest shard(std::uint64_t index, std::uint64_t count) const {
    GridCheckRequest part = request();
    part.shard = analysis::Shard{.index = index, .count = count};
    return part;
  }

  test::TempDir directory_;
  test::CollectingObserver observer_;
  std::unique_ptr<Context> context_;
};

TEST_F(GridCheckUseCase, AFaithfulBuildIsExact) {
  const auto report = grid_check(request(), *context_);
  ASSERT_THAT(report, test::IsOk());
  ASSERT_THAT(report->builds, SizeIs(1));
  const analysis::GridBuild& build = report->builds[0];
  EXPECT_EQ(build.verdict, analysis::Verdict::kExact);
  EXPECT_EQ(build.totals.sums.values_identical, test::kGridRows * test::kGridColumns);
  EXPECT_EQ(build.plain_identical, 1U);
  EXPECT_EQ(report->source_grid.on_grid, report->source_grid.groups);
  EXPECT_EQ(report->source_grid.group_size(), test::kGridColumns);  // one step a row
  EXPECT_THAT(report->findings, IsEmpty());
}

TEST_F(GridCheckUseCase, OneMovedWeightIsFoundWithItsPlace) {
  test::write_grid_build(directory_ / "moved", 1);
  GridCheckRequest moved = request();
  moved.builds = {path("moved")};
  moved.requirements = {.verdict = analysis::Verdict::kSameGrid};
  const auto report = grid_check(moved, *context_);
  ASSERT_THAT(report, test::IsOk());
  const analysis::GridTensor& tensor = report->builds.at(0).tensors.at(0);
  EXPECT_EQ(tensor.verdict, analysis::Verdict::kLevelsMoved);
  EXPECT_EQ(tensor.totals.sums.moved, 1U);
  EXPECT_EQ(tensor.totals.level_moves.at(1), 1U);
  EXPECT_EQ(tensor.totals.sums.worst.row, 100 / test::kGridColumns);
  EXPECT_EQ(tensor.totals.sums.worst.column, 100 % test::kGridColumns);
  EXPECT_EQ(report->findings.at(0).code, "VERDICT_MISSED");
}

// Models are opened at once, and reported on as if they had been opened one after the other.
TEST_F(GridCheckUseCase, NamesTheFirstModelThatCannotBeOpened) {
  GridCheckRequest wrong = request();
  wrong.builds = {path("build"), path("no-b"), path("no-a")};
  EXPECT_THAT(grid_check(wrong, *context_), test::Fails(ErrorCode::kNotFound, HasSubstr("no-b")));
  wrong.source = path("no-c");
  EXPECT_THAT(grid_check(wrong, *context_), test::Fails(ErrorCode::kNotFound, HasSubstr("no-c")));
}

// A host that does not answer is tried for a while; what is wrong here is said before.
TEST_F(GridCheckUseCase, LooksAtTheDiskBeforeTheNetwork) {
  GridCheckRequest wrong = request();
  wrong.builds = {"http://127.0.0.1:1/model.safetensors", path("no-b")};
  EXPECT_THAT(grid_check(wrong, *context_), test::Fails(ErrorCode::kNotFound, HasSubstr("no-b")));
  wrong.builds = {"http://127.0.0.1:1/model.safetensors", "hf://no//name"};
  EXPECT_THAT(grid_check(wrong, *context_),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("no//name")));
}

TEST_F(GridCheckUseCase, OpensAModelThatIsNamedTwiceOnce) {
  const auto opened = [&](std::vector<std::string> builds) {
    GridCheckRequest several = request();
    several.builds = std::move(builds);
    const auto fresh = Context::make(settings_with({}), observer_).value();
    const auto plan = plan_grid_check(several, *fresh);
    EXPECT_THAT(plan, test::IsOk());
    return fresh->observer().totals().requests;
  };
  EXPECT_EQ(opened({path("build"), path("build")}), opened({path("build")}));
  EXPECT_LT(opened({path("source")}), opened({path("build")}));
}

TEST_F(GridCheckUseCase, ThePlanReadsNoWeight) {
  const auto cost = plan_grid_check(request(), *context_);
  ASSERT_THAT(cost, test::IsOk());
  EXPECT_EQ(cost->tensors, 2U);
  EXPECT_EQ(cost->weights, test::kGridRows * test::kGridColumns + test::kGridColumns);
  EXPECT_GT(cost->bytes, test::kGridRows * test::kGridColumns * 5 / 2);
  const auto report = grid_check(request(), *context_);
  ASSERT_THAT(report, test::IsOk());
  EXPECT_EQ(report->read_bytes, cost->bytes);
}

TEST_F(GridCheckUseCase, PartsGiveTheReportOfOneRun) {
  for (const std::uint64_t index : {1U, 2U, 3U}) {
    const auto part = grid_check_part(shard(index, 3), *context_);
    ASSERT_THAT(part, test::IsOk());
    write("part-" + std::to_string(index), *part);
  }
  const auto merged =
      merge_grid_parts({path("part-2"), path("part-3"), path("part-1")}, {}, *context_);
  ASSERT_THAT(merged, test::IsOk());
  EXPECT_EQ(report::grid_check_json(*merged), whole());
}

TEST_F(GridCheckUseCase, PartsThatDoNotBelongTogetherAreRefused) {
  write("one", *grid_check_part(shard(1, 2), *context_));
  write("two", *grid_check_part(shard(2, 2), *context_));
  write("of-three", *grid_check_part(shard(2, 3), *context_));
  const auto merge = [&](std::vector<fs::path> parts) {
    return merge_grid_parts(parts, {}, *context_);
  };
  EXPECT_THAT(merge({path("one"), path("two")}), test::IsOk());
  EXPECT_THAT(merge({path("one")}),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("part 2 of 2 is missing")));
  EXPECT_THAT(merge({path("one"), path("one")}),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("are the same part")));
  EXPECT_THAT(merge({path("one"), path("of-three")}),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("different checks")));
  EXPECT_THAT(merge({path("one"), path("two"), path("two")}),
              test::Fails(ErrorCode::kInvalidArgument, _));
  EXPECT_THAT(merge({}), test::Fails(ErrorCode::kInvalidArgument, _));
  EXPECT_THAT(merge({path("nothing")}), test::Fails(ErrorCode::kNotFound, _));
}

TEST_F(GridCheckUseCase, APartThatWasCutOffIsNamed) {
  write("one", *grid_check_part(shard(1, 2), *context_));
  const std::string part = *grid_check_part(shard(2, 2), *context_);
  write("two", part.substr(0, part.size() - 10));
  EXPECT_THAT(merge_grid_parts({path("one"), path("two")}, {}, *context_),
              test::Fails(ErrorCode::kInvalidArgument,
                          AllOf(HasSubstr("\"" + path("two") + "\" is not whole"),
                                HasSubstr("the results of 1 of 1 weight, \"model.layers.0."),
                                HasSubstr("--shard 2/2 --resume \"" + path("two") + "\""))));
  write("letter", "dear all,\n");
  EXPECT_THAT(merge_grid_parts({path("one"), path("letter")}, {}, *context_),
              test::Fails(ErrorCode::kInvalidArgument,
                          AllOf(HasSubstr("letter"), HasSubstr("no journal of a grid check"),
                                HasSubstr("dear all"))));
}

TEST_F(GridCheckUseCase, PartsOfABuildThatChangedAreRefused) {
  write("one", *grid_check_part(shard(1, 1), *context_));
  test::write_grid_build(directory_ / "build", 1);
  EXPECT_THAT(merge_grid_parts({path("one")}, {}, *context_),
              test::Fails(ErrorCode::kChanged, HasSubstr("have changed")));
}

TEST_F(GridCheckUseCase, AJournalThatWasCutOffIsGoneOnWith) {
  const std::string expected = whole();
  GridCheckRequest resumed = request();
  resumed.resume = directory_ / "journal";
  ASSERT_THAT(grid_check(resumed, *context_), test::IsOk());
  const std::string journal = read("journal");
  for (std::size_t size = 0; size <= journal.size(); size += 97) {
    write("journal", journal.substr(0, size));
    const auto report = grid_check(resumed, *context_);
    ASSERT_THAT(report, test::IsOk()) << size;
    EXPECT_EQ(report::grid_check_json(*report), expected) << size;
  }
}

TEST_F(GridCheckUseCase, TheJournalOfAnotherCheckIsLeftAlone) {
  GridCheckRequest resumed = request();
  resumed.resume = directory_ / "journal";
  ASSERT_THAT(grid_check(resumed, *context_), test::IsOk());
  const std::string journal = read("journal");
  resumed.selection.globs = {"*q_proj*"};
  EXPECT_THAT(grid_check(resumed, *context_),
              test::Fails(ErrorCode::kInvalidArgument,
                          AllOf(HasSubstr("journal"), HasSubstr("another grid check"))));
  EXPECT_EQ(read("journal"), journal);
  write("letter", "dear all,\n");
  resumed.resume = directory_ / "letter";
  EXPECT_THAT(grid_check(resumed, *context_),
              test::Fails(ErrorCode::kInvalidArgument,
                          AllOf(HasSubstr("no journal"), HasSubstr("dear all"))));
  EXPECT_EQ(read("letter"), "dear all,\n");
}

TEST_F(GridCheckUseCase, NothingInCommonIsAnError) {
  test::SafetensorsBuilder other;
  other.tensor("encoder.block.weight", Dtype::kBF16, {4, 8});
  test::write_checkpoint(directory_ / "other",
                         {.config = "{}", .shards = {{"model.safetensors", other}}});
  GridCheckRequest strange = request();
  strange.builds = {path("other")};
  EXPECT_THAT(grid_check(strange, *context_),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("no weight in common")));
  strange.builds = {path("nowhere")};
  EXPECT_THAT(grid_check(strange, *context_), ::testing::Not(test::IsOk()));
}

}  // namespace
}  // namespace gridscope::app
