#include "gridscope/analysis/grid_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gridscope::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(GridReport, VerdictsHaveKeysThatReadBack) {
  for (int i = 0; i <= static_cast<int>(Verdict::kCorrupt); ++i) {
    const auto verdict = static_cast<Verdict>(i);
    EXPECT_EQ(parse_verdict(verdict_key(verdict)), verdict);
  }
  EXPECT_EQ(verdict_key(Verdict::kSameGrid), "same_grid");
  EXPECT_EQ(parse_verdict("fine"), std::nullopt);
}

// Source (3, 4), build (3, 5).
GridTotals two_weights() {
  GridTotals totals;
  totals.sums.weights = 2;
  totals.sums.moved = 1;
  totals.sums.abs_error = 1.0;
  totals.sums.squared_error = 1.0;
  totals.sums.squared_source = 25.0;
  totals.sums.squared_build = 34.0;
  totals.sums.product = 29.0;
  return totals;
}

TEST(GridReport, FiguresFollowTheirDefinitions) {
  const GridTotals totals = two_weights();
  EXPECT_DOUBLE_EQ(totals.moved_share(), 0.5);
  EXPECT_DOUBLE_EQ(totals.mean_abs_error(), 0.5);
  EXPECT_DOUBLE_EQ(totals.rmse(), std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(totals.relative_rmse(), 0.2);
  EXPECT_NEAR(totals.sqnr_db().value_or(0.0), 10.0 * std::log10(25.0), 1e-12);
  EXPECT_NEAR(totals.cosine().value_or(0.0), 29.0 / std::sqrt(25.0 * 34.0), 1e-12);
}

TEST(GridReport, WeightsThatAreNoNumbersStandInNoMean) {
  GridTotals totals = two_weights();
  totals.sums.weights = 3;
  totals.sums.build_non_finite = 1;
  EXPECT_DOUBLE_EQ(totals.mean_abs_error(), 0.5);
}

TEST(GridReport, WithoutErrorThereIsNoRatioOfErrors) {
  GridTotals totals;
  EXPECT_EQ(totals.moved_share(), 0.0);
  EXPECT_EQ(totals.mean_abs_error(), 0.0);
  EXPECT_EQ(totals.sqnr_db(), std::nullopt);
  EXPECT_EQ(totals.cosine(), std::nullopt);
  totals.sums.weights = 1;
  totals.sums.squared_source = totals.sums.squared_build = totals.sums.product = 4.0;
  EXPECT_EQ(totals.sqnr_db(), std::nullopt);
  EXPECT_EQ(totals.cosine(), 1.0);
}

TEST(GridReport, TotalsAddUp) {
  GridTotals totals = two_weights();
  totals.level_moves = {{-1, 2}, {1, 3}};
  totals.scale_ratio.add_allowed(4);
  totals.level_ties = 1;
  totals.lattice_weights = 64;
  GridTotals later = totals;
  later.level_moves = {{1, 1}, {4, 1}};
  later.scale_ratio = {};
  later.scale_ratio.add(0.9);
  later.scale_ratio.add_allowed();
  totals.add(later);
  EXPECT_EQ(totals.sums.weights, 4U);
  EXPECT_DOUBLE_EQ(totals.sums.squared_source, 50.0);
  EXPECT_THAT(totals.level_moves, ElementsAre(Pair(-1, 2), Pair(1, 4), Pair(4, 1)));
  EXPECT_THAT(totals.scale_ratio.named(), ElementsAre(Pair("0.875", 1), Pair("1", 5)));
  EXPECT_EQ(totals.level_ties, 2U);
  EXPECT_EQ(totals.lattice_weights, 128U);
}

TEST(GridReport, TheGroupSizeIsThatOfMostWeights) {
  SourceGrid grid;
  EXPECT_EQ(grid.group_size(), 0U);
  grid.group_sizes = {{32, 1000}, {64, 10}};
  SourceGrid other;
  other.group_sizes = {{64, 2000}};
  other.groups = 3;
  other.on_grid = 2;
  other.off_grid = 1;
  other.top_levels = {{-8, 2}};
  grid.add(other);
  EXPECT_EQ(grid.group_size(), 64U);
  EXPECT_EQ(grid.groups, 3U);
  EXPECT_THAT(grid.top_levels, ElementsAre(Pair(-8, 2)));
}

}  // namespace
}  // namespace gridscope::analysis
