#include "gridscope/analysis/verdict.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gridscope::analysis {
namespace {

// A hundred weights, all of them the source's.
GridTensor exact() {
  GridTensor tensor{.name = "q_proj", .source_name = "q_proj"};
  tensor.totals.sums.weights = 100;
  tensor.totals.sums.groups = 4;
  tensor.totals.sums.values_identical = 100;
  tensor.totals.sums.squared_source = 1.0;
  tensor.totals.sums.squared_build = 1.0;
  return tensor;
}

GridTensor with_error(double squared_error) {
  GridTensor tensor = exact();
  tensor.totals.sums.values_identical = 60;
  tensor.totals.sums.squared_error = squared_error;
  return tensor;
}

TEST(Verdict, EveryValueTheSameIsExact) {
  EXPECT_EQ(verdict_of(exact()), Verdict::kExact);
}

TEST(Verdict, RoundedScalesKeepTheGrid) {
  EXPECT_EQ(verdict_of(with_error(1e-6)), Verdict::kSameGrid);
}

TEST(Verdict, OneMovedWeightIsEnough) {
  GridTensor tensor = with_error(1e-6);
  tensor.totals.sums.moved = 1;
  EXPECT_EQ(verdict_of(tensor), Verdict::kLevelsMoved);
  tensor = with_error(1e-6);
  tensor.totals.level_moves[-1] = 1;
  EXPECT_EQ(verdict_of(tensor), Verdict::kLevelsMoved);
}

TEST(Verdict, SmoothingIsJudgedByWhatIsLeftWithoutIt) {
  GridTensor tensor = with_error(0.9);
  EXPECT_EQ(verdict_of(tensor), Verdict::kDifferentModel);
  tensor.smoothing = TensorSmoothing{.totals_after = with_error(0.01).totals};
  EXPECT_EQ(verdict_of(tensor), Verdict::kSmoothed);
  tensor.smoothing->totals_after.sums.squared_error = 0.9;
  EXPECT_EQ(verdict_of(tensor), Verdict::kDifferentModel);
}

TEST(Verdict, ZeroPointsOneOffShiftAlmostEveryWeight) {
  GridTensor tensor = exact();
  EXPECT_EQ(common_shift(tensor), 0) << "the source is on no grid";
  tensor.totals.lattice_weights = 100;
  EXPECT_EQ(common_shift(tensor), 0);
  tensor.totals.level_moves = {{-1, 30}, {1, 45}};
  EXPECT_EQ(common_shift(tensor), 0) << "rounding";
  tensor.totals.level_moves = {{-2, 15}, {-1, 80}, {1, 2}};
  EXPECT_EQ(common_shift(tensor), -1);
  tensor.smoothing = TensorSmoothing{.totals_after = exact().totals};
  tensor.smoothing->totals_after.lattice_weights = 100;
  EXPECT_EQ(common_shift(tensor), 0) << "columns were scaled";
}

TEST(Verdict, TheBoundOfAnotherModelIsExact) {
  const double bound = std::pow(10.0, -kDifferentModelSqnrDb / 10.0);
  EXPECT_EQ(verdict_of(with_error(bound * 1.001)), Verdict::kDifferentModel);
  EXPECT_EQ(verdict_of(with_error(bound * 0.999)), Verdict::kSameGrid);
}

TEST(Verdict, WhatIsNoNumberOrDiedIsCorrupt) {
  GridTensor tensor = exact();
  tensor.totals.sums.build_non_finite = 1;
  EXPECT_EQ(verdict_of(tensor), Verdict::kCorrupt);
  tensor.totals.sums.source_non_finite = 1;
  EXPECT_EQ(verdict_of(tensor), Verdict::kExact);
  tensor = exact();
  tensor.totals.sums.dead_groups = 1;
  EXPECT_EQ(verdict_of(tensor), Verdict::kCorrupt);
  tensor.totals.sums.dead_in_both = 1;
  EXPECT_EQ(verdict_of(tensor), Verdict::kExact);
  tensor.fault = "its scale is missing";
  EXPECT_EQ(verdict_of(tensor), Verdict::kCorrupt);
}

TEST(Verdict, TheWorstTensorCounts) {
  std::vector<GridTensor> tensors = {exact(), with_error(1e-6), exact()};
  for (GridTensor& tensor : tensors) tensor.verdict = verdict_of(tensor);
  EXPECT_EQ(worst_verdict(tensors), Verdict::kSameGrid);
  EXPECT_EQ(worst_verdict({}), Verdict::kExact);
}

TEST(Verdict, ExactMeetsWhateverIsRequired) {
  EXPECT_TRUE(meets(Verdict::kExact, Verdict::kSameGrid));
  EXPECT_TRUE(meets(Verdict::kSameGrid, Verdict::kSameGrid));
  EXPECT_FALSE(meets(Verdict::kSameGrid, Verdict::kExact));
  EXPECT_FALSE(meets(Verdict::kLevelsMoved, Verdict::kSameGrid));
}

}  // namespace
}  // namespace gridscope::analysis
