#include "gridscope/analysis/xtensor_views.hpp"

#include <gtest/gtest.h>

#include <xtensor/xmath.hpp>

namespace gridscope::analysis {
namespace {

quant::RowBlock two_rows() {
  return {.rows = 2,
          .columns = 3,
          .values = {1.0, 2.0, 3.0, -1.0, -2.0, -3.0},
          .levels = {1, 2, 3, -1, -2, -3},
          .stride = 1,
          .scales = {1.0, 1.0}};
}

TEST(XtensorViews, ShowTheBlockItself) {
  const quant::RowBlock block = two_rows();
  const auto values = values_view(block);
  EXPECT_EQ(values.shape()[0], 2U);
  EXPECT_EQ(values.shape()[1], 3U);
  EXPECT_EQ(values(1, 2), -3.0);
  EXPECT_EQ(&values(0, 0), block.values.data());
  EXPECT_EQ(levels_view(block)(0, 1), 2);
  EXPECT_EQ(scales_view(block)(1, 0), 1.0);
}

TEST(XtensorViews, CanBeComputedWith) {
  const quant::RowBlock block = two_rows();
  const auto column_sums = xt::sum(values_view(block), {0});
  EXPECT_EQ(column_sums(0), 0.0);
  EXPECT_EQ(xt::amax(xt::abs(values_view(block)))(), 3.0);
}

TEST(XtensorViews, PlainWeightsHaveNeitherLevelsNorScales) {
  quant::RowBlock plain = two_rows();
  plain.levels.clear();
  plain.scales.clear();
  plain.stride = 0;
  EXPECT_EQ(levels_view(plain).size(), 0U);
  EXPECT_EQ(scales_view(plain).size(), 0U);
  EXPECT_EQ(values_view(plain).size(), 6U);
}

}  // namespace
}  // namespace gridscope::analysis
