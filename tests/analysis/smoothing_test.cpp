#include "gridscope/analysis/smoothing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace gridscope::analysis {
namespace {

constexpr std::uint64_t kRows = 64;
constexpr std::uint64_t kColumns = 256;

// Gaussian weights, and a build of them: each times its column's factor, plus noise as 4-bit codes
// make it.
struct Pair {
  std::vector<double> source;
  quant::RowBlock build;
};

Pair source_and_build(const std::vector<double>& factors, double noise) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  Pair pair{.source = std::vector<double>(kRows * kColumns),
            .build = {.rows = kRows, .columns = kColumns}};
  pair.build.values.resize(pair.source.size());
  for (std::size_t i = 0; i < pair.source.size(); ++i) {
    pair.source[i] = 0.02 * normal(random);
    const double exact = pair.source[i] * factors[i % kColumns];
    pair.build.values[i] = exact + 0.02 * noise * normal(random);
  }
  return pair;
}

ColumnSums sums_of(const Pair& pair) {
  ColumnSums sums;
  sums.add_rows(pair.build, pair.source);
  return sums;
}

std::vector<double> spread_factors() {
  std::vector<double> factors(kColumns);
  for (std::size_t k = 0; k < kColumns; ++k) factors[k] = 0.5 + static_cast<double>(k % 16) / 10.0;
  return factors;
}

TEST(Smoothing, NoiseAloneIsNoSmoothing) {
  for (const double noise : {0.0, 0.01, 0.1, 0.3}) {
    const Pair pair = source_and_build(std::vector<double>(kColumns, 1.0), noise);
    EXPECT_EQ(factors_from_columns(sums_of(pair)), std::nullopt) << noise;
  }
}

TEST(Smoothing, AScaleOfAllColumnsIsNoSmoothing) {
  const Pair pair = source_and_build(std::vector<double>(kColumns, 1.7), 0.1);
  EXPECT_EQ(factors_from_columns(sums_of(pair)), std::nullopt);
}

TEST(Smoothing, FactorsAreFoundThroughTheNoise) {
  const std::vector<double> factors = spread_factors();
  for (const double noise : {0.0, 0.1}) {
    const auto found = factors_from_columns(sums_of(source_and_build(factors, noise)));
    ASSERT_TRUE(found.has_value()) << noise;
    for (std::size_t k = 0; k < kColumns; ++k) {
      EXPECT_NEAR(found->at(k), factors[k], 6.0 * noise / std::sqrt(kRows) + 1e-12) << k;
    }
  }
}

TEST(Smoothing, OneColumnThatStandsElsewhereContradictsTheNorm) {
  std::vector<double> factors = spread_factors();
  for (const double noise : {0.0, 0.1}) {
    const ColumnSums sums = sums_of(source_and_build(factors, noise));
    EXPECT_TRUE(agrees_with_columns(factors, sums)) << noise;
    std::vector<double> doubled = factors;
    for (double& factor : doubled) factor *= 2.0;
    EXPECT_TRUE(agrees_with_columns(doubled, sums)) << "a factor common to all";
    std::vector<double> edited = factors;
    edited[100] *= 1.5;
    EXPECT_FALSE(agrees_with_columns(edited, sums)) << noise;
  }
  EXPECT_TRUE(agrees_with_columns(factors, {})) << "no rows tell nothing";
}

TEST(Smoothing, SumsOfPartsAreThoseOfTheWhole) {
  const Pair pair = source_and_build(spread_factors(), 0.1);
  const ColumnSums whole = sums_of(pair);
  ColumnSums parts;
  for (std::uint64_t row = 0; row < kRows; ++row) {
    quant::RowBlock one{.rows = 1, .columns = kColumns};
    const auto values = pair.build.row_values(row);
    one.values.assign(values.begin(), values.end());
    ColumnSums sums;
    sums.add_rows(one, std::span(pair.source).subspan(row * kColumns, kColumns));
    parts.add(sums);
  }
  EXPECT_EQ(parts.rows, whole.rows);
  EXPECT_EQ(parts.product, whole.product);
  EXPECT_EQ(parts.squared_build, whole.squared_build);
}

TEST(Smoothing, WeightsThatAreNoNumbersAndDeadColumnsDoNotMatter) {
  Pair pair = source_and_build(spread_factors(), 0.0);
  pair.build.values[3] = std::numeric_limits<double>::quiet_NaN();
  for (std::uint64_t row = 0; row < kRows; ++row) pair.source[row * kColumns + 5] = 0.0;
  const auto found = factors_from_columns(sums_of(pair));
  ASSERT_TRUE(found.has_value());
  EXPECT_NEAR(found->at(3), spread_factors()[3], 1e-9);
  EXPECT_EQ(found->at(5), 1.0);
}

TEST(Smoothing, FewRowsTellNothing) {
  Pair pair = source_and_build(spread_factors(), 0.0);
  pair.build.rows = 7;
  EXPECT_EQ(factors_from_columns(sums_of(pair)), std::nullopt);
  EXPECT_EQ(factors_from_columns({}), std::nullopt);
}

TEST(Smoothing, NormsTellTheFactor) {
  const std::vector<double> source = {1.0, 2.0, 3.0};
  const auto factors = factors_from_norms(source, std::vector<double>{0.5, 2.0, 6.0}, 0.0);
  ASSERT_TRUE(factors.has_value());
  EXPECT_THAT(*factors, ::testing::ElementsAre(2.0, 1.0, 0.5));
  const FactorRange range = range_of(*factors);
  EXPECT_EQ(range.lowest, 0.5);
  EXPECT_EQ(range.highest, 2.0);
}

TEST(Smoothing, TheOffsetOfANormBelongsToTheFactor) {
  const auto factors = factors_from_norms(std::vector<double>{0.0, 1.0}, {{1.0, 1.0}}, 1.0);
  ASSERT_TRUE(factors.has_value());
  EXPECT_THAT(*factors, ::testing::ElementsAre(0.5, 1.0));
}

TEST(Smoothing, RoundedOrBrokenNormsTellNothing) {
  const std::vector<double> source = {1.0, 2.0};
  EXPECT_EQ(factors_from_norms(source, source, 0.0), std::nullopt);
  EXPECT_EQ(factors_from_norms(source, std::vector<double>{1.0, 2.0 + 0x1p-8}, 0.0), std::nullopt);
  EXPECT_EQ(factors_from_norms(source, std::vector<double>{1.0, 0.0}, 0.0), std::nullopt);
}

}  // namespace
}  // namespace gridscope::analysis
