#include "gridscope/report/grid_check_view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/sample_grid_reports.hpp"

namespace gridscope::report {
namespace {

using analysis::GridTensor;
using analysis::Verdict;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(GridCheckView, SaysWhenThereIsNoGrid) {
  analysis::SourceGrid grid{.groups = 3};
  grid.off_grid = 3;
  EXPECT_THAT(source_grid_summary(grid), StartsWith("3 groups, no common size: 0 (0.00%)"));
}

TEST(GridCheckView, SharesAreNotRoundedToAllOrNothing) {
  analysis::SourceGrid grid{.groups = 1'000'000};
  grid.on_grid = 999'999;
  EXPECT_THAT(source_grid_summary(grid), HasSubstr("999,999 (>99.99%)"));
  grid.on_grid = 1;
  EXPECT_THAT(source_grid_summary(grid), HasSubstr("1 (<0.01%)"));
}

TEST(GridCheckView, ASmoothedBuildHasASecondLine) {
  const TextTable table = build_table(test::full_grid_report());
  ASSERT_THAT(table.rows, SizeIs(3));
  EXPECT_EQ(table.rows[1][1], "corrupt");
  EXPECT_EQ(table.rows[2][0], "  smoothing undone");
}

TEST(GridCheckView, TheWorstTensorsComeFirst) {
  analysis::GridBuild build;
  const auto add = [&](const std::string& name, Verdict verdict, std::uint64_t moved) {
    GridTensor tensor{.name = name};
    tensor.verdict = verdict;
    tensor.totals.sums.weights = 100;
    tensor.totals.sums.moved = moved;
    build.tensors.push_back(tensor);
  };
  add("fine", Verdict::kExact, 0);
  add("moved", Verdict::kLevelsMoved, 5);
  add("moved more", Verdict::kLevelsMoved, 9);
  add("broken", Verdict::kCorrupt, 0);
  std::vector<std::string> names;
  for (const auto& row : worst_table(build).rows) names.push_back(row[0]);
  EXPECT_THAT(names, ElementsAre("broken", "moved more", "moved"));
  for (int i = 0; i < 20; ++i) add("another", Verdict::kSameGrid, 0);
  EXPECT_THAT(worst_table(build).rows, SizeIs(kWorstTensors));
}

TEST(GridCheckView, ABrokenTensorShowsItsFault) {
  const TextTable table = worst_table(test::full_grid_report().builds[1]);
  EXPECT_EQ(table.rows[0][0], "layers.0.v_proj");
  EXPECT_EQ(table.rows[1].back(), "[17, 1]");
}

TEST(GridCheckView, NotesTellMovesSmoothingAndCoverage) {
  const auto notes = build_notes(test::full_grid_report().builds[1]);
  EXPECT_THAT(notes, Contains("stored as awq int4 g32"));
  EXPECT_THAT(notes, Contains("on the source's grid: 12 of 2,560 weights on another level (-2: 4, "
                              "+1: 8)"));
  EXPECT_THAT(notes, Contains(HasSubstr("smoothed: 1 tensor by factors of 0.5 to 2.25")));
  EXPECT_THAT(notes, Contains("compared: 7 of 9 matched tensors; plain tensors identical: 4 of 5"));
  EXPECT_THAT(notes, Contains("plain tensors that differ: 1 (norm)"));
}

}  // namespace
}  // namespace gridscope::report
