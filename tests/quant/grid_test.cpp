#include "gridscope/quant/grid.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "gridscope/quant/codec.hpp"
#include "quant/grid_oracle.hpp"
#include "quant/grid_values.hpp"

namespace gridscope::quant {
namespace {

using test::to_bf16_number;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr LevelRange kInt4 = {};

std::uint32_t bit(int level) {
  return 1U << static_cast<unsigned>(level);
}

std::vector<float> times(std::initializer_list<int> levels, double step) {
  std::vector<float> values;
  for (const int level : levels) values.push_back(to_bf16_number(level * step));
  return values;
}

GridFit fit(std::span<const float> values, LevelRange range = kInt4) {
  return fit_grid(values, Dtype::kBF16, range, {});
}

TEST(Grid, RecoversLevelsWhoseValuesWereRounded) {
  constexpr double kStep = 0.00421142578125;  // 3, 5 and 7 times it are no BF16 numbers
  const auto values = times({3, -5, 7}, kStep);
  std::vector<std::int16_t> levels(3);
  const GridFit found = fit_grid(values, Dtype::kBF16, kInt4, levels);
  EXPECT_EQ(found.verdict, GridClass::kOnGrid);
  EXPECT_THAT(levels, ElementsAre(3, -5, 7));
  EXPECT_EQ(found.top_level, 7);
  EXPECT_EQ(found.feasible, bit(7));
  EXPECT_LE(found.step_low, kStep);
  EXPECT_GE(found.step_high, kStep);
  EXPECT_EQ(found.step, found.step_low + (found.step_high - found.step_low) / 2);
  EXPECT_EQ(step_candidates(found, Dtype::kBF16, 100), 1);
}

// Row n of the matrix that every encoding is tested with: levels (5n + 3k) mod 16 - 8.
TEST(Grid, RecoversTheCrossFormatMatrix) {
  for (int n = 0; n < 8; ++n) {
    const double step = bf16_value(to_bf16(0.01 * (n + 1)));
    std::vector<float> values;
    std::vector<std::int16_t> expected;
    for (int k = 0; k < 32; ++k) {
      const int level = (5 * n + 3 * k) % 16 - 8;
      expected.push_back(static_cast<std::int16_t>(level));
      values.push_back(to_bf16_number(level * step));
    }
    std::vector<std::int16_t> levels(32);
    const GridFit found = fit_grid(values, Dtype::kBF16, kInt4, levels);
    EXPECT_EQ(found.verdict, GridClass::kOnGrid);
    EXPECT_EQ(found.feasible, bit(8));
    EXPECT_EQ(found.top_level, -8);
    EXPECT_EQ(levels, expected);
    EXPECT_EQ(step_candidates(found, Dtype::kBF16, 100), 1);
    EXPECT_EQ(to_bf16(found.step), to_bf16(step));
  }
}

TEST(Grid, ForcesTheSignOnlyForTheLowestLevel) {
  const GridFit free = fit(times({7, -3, 1}, -0.125));
  EXPECT_GT(free.step, 0.0);
  EXPECT_EQ(free.top_level, -7);
  const GridFit forced = fit(times({-8, -3, 1}, -0.125));
  EXPECT_LT(forced.step, 0.0);
  EXPECT_EQ(forced.top_level, -8);
  EXPECT_EQ(forced.feasible, bit(8));
  EXPECT_EQ(fit(times({8, -8, 3}, 0.125)).verdict, GridClass::kOffGrid);
}

TEST(Grid, CallsFewMagnitudesAmbiguous) {
  EXPECT_EQ(fit(times({5, -5, 0}, 0.01)).verdict, GridClass::kAmbiguous);
  const GridFit halves = fit(times({4, -2}, 0.01));
  EXPECT_EQ(halves.verdict, GridClass::kAmbiguous);
  EXPECT_EQ(halves.feasible, bit(2) | bit(4) | bit(6) | bit(8));
  EXPECT_EQ(halves.top_level, -8) << "the smallest step, whose sign is forced";
}

TEST(Grid, TakesTheSmallestStepOfMultiples) {
  std::vector<std::int16_t> levels(4);
  const GridFit found = fit_grid(times({3, -2, 1, 0}, 0.01), Dtype::kBF16, kInt4, levels);
  EXPECT_EQ(found.verdict, GridClass::kAmbiguous) << "twice the step would do as well";
  EXPECT_EQ(found.feasible, bit(3) | bit(6));
  EXPECT_THAT(levels, ElementsAre(6, -4, 2, 0));
}

// 5, 3, 1 of 15 and of 5: with more levels the smaller step wins, and it is no rival.
TEST(Grid, FindsWiderRanges) {
  const auto values = times({15, -9, 3, 1}, 0.01);
  EXPECT_EQ(fit(values).verdict, GridClass::kOffGrid);
  const GridFit found = fit(values, {.lowest = -15, .highest = 15});
  EXPECT_EQ(found.verdict, GridClass::kOnGrid);
  EXPECT_EQ(found.feasible, bit(15));
}

TEST(Grid, TellsDeadAndNonFiniteApart) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(fit(std::vector<float>{0.0F, -0.0F}).verdict, GridClass::kDead);
  EXPECT_EQ(fit(std::vector<float>{}).verdict, GridClass::kDead);
  EXPECT_EQ(fit(std::vector<float>{1.0F, -kInfinity}).verdict, GridClass::kNonFinite);
  EXPECT_EQ(fit(std::vector<float>{0.0F, std::nanf("")}).verdict, GridClass::kNonFinite);
}

TEST(Grid, SeesOneWeightOffTheLattice) {
  auto values = times({-8, 7, 5, 3, 1}, 0.01);
  ASSERT_EQ(fit(values).verdict, GridClass::kOnGrid);
  values[2] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(values[2]) + 0x20000U);
  EXPECT_EQ(fit(values).verdict, GridClass::kOffGrid);
}

// 257 lies halfway between the BF16 numbers 256 and 258 and rounds to 256, which is even.
TEST(Grid, KnowsWhichEndsBelong) {
  const GridFit even = fit(std::vector<float>{256.0F});
  EXPECT_TRUE(even.high_is_feasible);
  EXPECT_EQ(even.step_high, 257.0 / 8);
  EXPECT_EQ(even.step_low, 255.5 / 8);
  const GridFit odd = fit(std::vector<float>{258.0F});
  EXPECT_FALSE(odd.low_is_feasible);
  EXPECT_EQ(odd.step_low, 257.0 / 8);
  // Steps of BF16: 255.5 has too many bits, 256 / 8 is there, 257 / 8 has too many as well.
  EXPECT_EQ(step_candidates(even, Dtype::kBF16, 9), 1);
  // Of F16, whose spacing near 32 is 1/32: from 31.9375 (spacing 1/64) on to 32.125.
  EXPECT_EQ(step_candidates(even, Dtype::kF16, 99), 4 + 1 + 4);
  EXPECT_EQ(step_candidates(odd, Dtype::kF16, 99), 2 * 4 - 1);
  EXPECT_EQ(step_candidates(even, Dtype::kF32, 50), 50);
}

TEST(Grid, FindsGridsOfOtherTypes) {
  const std::vector<int> levels = {-8, 7, 5, 3, 1, 0};
  for (const Dtype dtype : {Dtype::kF16, Dtype::kF32}) {
    std::vector<float> values;
    for (const int level : levels) {
      values.push_back(static_cast<float>(rounded_to(dtype, level * 0.0123)));
    }
    std::vector<std::int16_t> found(levels.size());
    const GridFit fitted = fit_grid(values, dtype, kInt4, found);
    EXPECT_EQ(fitted.verdict, GridClass::kOnGrid);
    EXPECT_THAT(found, ElementsAreArray(levels));
    // As BF16 numbers they would have to be nearer to the lattice than they are written.
    values[2] = static_cast<float>(rounded_to(dtype, static_cast<double>(values[2]) * 1.002));
    EXPECT_EQ(fit_grid(values, dtype, kInt4, {}).verdict, GridClass::kOffGrid);
  }
}

// Weights from 2^-2 to 2^9, so that the oracle's integers hold them.
std::vector<float> on_or_near_a_grid(std::mt19937& random) {
  std::uniform_int_distribution<int> size(1, 6);
  std::uniform_int_distribution<int> level(-8, 8);
  std::uniform_int_distribution<int> chance(0, 3);
  std::uniform_int_distribution<int> nudge(-2, 2);
  std::uniform_real_distribution<double> step(0.5, 60.0);
  const double chosen = chance(random) == 0 ? std::floor(step(random)) + 0.5 : step(random);
  const bool nudged = chance(random) == 0;
  std::vector<float> values;
  for (int i = size(random); i > 0; --i) {
    const float value = to_bf16_number(level(random) * chosen);
    const auto bits = static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(value));
    const std::int64_t moved = value != 0.0F && nudged ? nudge(random) * 0x10000LL : 0;
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits + moved)));
  }
  return values;
}

bool expect_as_oracle(std::span<const float> values, LevelRange range) {
  std::vector<std::int16_t> levels(values.size());
  const GridFit found = fit_grid(values, Dtype::kBF16, range, levels);
  if (std::ranges::all_of(values, [](float value) { return value == 0.0F; })) {
    EXPECT_EQ(found.verdict, GridClass::kDead);
    return false;
  }
  const auto grids = test::all_grids(values, range);
  std::uint32_t feasible = 0;
  for (const auto& [top, grid] : grids) feasible |= bit(top);
  EXPECT_EQ(found.feasible, feasible) << ::testing::PrintToString(values);
  EXPECT_EQ(found.has_step(), !grids.empty());
  if (grids.empty() || !found.has_step()) return false;
  std::erase(levels, 0);
  EXPECT_THAT(levels, ElementsAreArray(grids.rbegin()->second)) << ::testing::PrintToString(values);
  return true;
}

TEST(Grid, DecidesAsTheDefinitionDoes) {
  std::mt19937 random(17);
  int on_grid = 0;
  constexpr int kGroups = 3000;
  for (int i = 0; i < kGroups; ++i) {
    if (expect_as_oracle(on_or_near_a_grid(random), kInt4)) ++on_grid;
    ASSERT_FALSE(HasFailure()) << "group " << i;
  }
  EXPECT_GT(on_grid, kGroups / 4);
  EXPECT_LT(on_grid, kGroups * 9 / 10);
}

TEST(Grid, DecidesAsTheDefinitionDoesInOtherRanges) {
  std::mt19937 random(18);
  for (const LevelRange range :
       {LevelRange{.lowest = -4, .highest = 3}, LevelRange{.lowest = 0, .highest = 8},
        LevelRange{.lowest = -15, .highest = 15}}) {
    for (int i = 0; i < 500; ++i) {
      expect_as_oracle(on_or_near_a_grid(random), range);
      ASSERT_FALSE(HasFailure()) << "group " << i;
    }
  }
}

TEST(Grid, TriesTheGroupSizesThatDivideTheRow) {
  EXPECT_THAT(usual_group_sizes(2816), ElementsAre(2816, 256, 128, 64, 32, 16));
  EXPECT_THAT(usual_group_sizes(512), ElementsAre(512, 256, 128, 64, 32, 16));
  EXPECT_THAT(usual_group_sizes(24), ElementsAre(24));
}

TEST(RepackRule, TakesTheLargestStepWithinItsTolerance) {
  std::vector<std::int16_t> levels(3);
  const RepackFit found = fit_repack_rule(times({3, -5, 7}, 0.25), levels);
  EXPECT_EQ(found.m, 7);
  EXPECT_EQ(found.step, 0.25);
  EXPECT_EQ(found.refined, 0.25);
  EXPECT_THAT(levels, ElementsAre(3, -5, 7));
  EXPECT_EQ(fit_repack_rule(times({2, -4}, 0.25), {}).m, 2) << "fit_grid() would say 8";
}

TEST(RepackRule, RefinesByLeastSquares) {
  const std::vector<float> values = {1.0F, -2.0F, 3.015625F};
  const RepackFit found = fit_repack_rule(values, {});
  EXPECT_EQ(found.m, 3);
  EXPECT_EQ(found.step, static_cast<double>(3.015625F / 3));
  EXPECT_DOUBLE_EQ(found.refined, (1 + 4 + 3 * 3.015625) / 14);
}

TEST(RepackRule, HandlesDeadAndNonFinite) {
  std::vector<std::int16_t> levels(2, 5);
  const RepackFit dead = fit_repack_rule(std::vector<float>{0.0F, -0.0F}, levels);
  EXPECT_EQ(dead.m, 1);
  EXPECT_EQ(dead.step, 0.0);
  EXPECT_THAT(levels, Each(0));
  EXPECT_EQ(fit_repack_rule(std::vector<float>{1.0F, std::nanf("")}, {}).m, 0);
}

// The rule allows an error of 1/16 of a step at level 8, where BF16 leaves at most half a unit of
// the eighth bit: it takes weights for which no step exists.
TEST(RepackRule, AcceptsWhatNoStepExplains) {
  auto values = times({-8, 7, 5, 3, 1}, 0.01);
  values[3] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(values[3]) + 0x20000U);
  EXPECT_EQ(fit_repack_rule(values, {}).m, 8);
  EXPECT_EQ(fit(values).verdict, GridClass::kOffGrid);
}

// The Q4_0 rule makes the step negative where the extreme weight is positive; the repack rule clips
// that weight to level 7 and gives up.
TEST(RepackRule, RefusesNegativeSteps) {
  const auto values = times({-8, 7, 5, 3, 1}, -0.01);
  EXPECT_EQ(fit_repack_rule(values, {}).m, 0);
  const GridFit found = fit(values);
  EXPECT_EQ(found.verdict, GridClass::kOnGrid);
  EXPECT_EQ(to_bf16(found.step), to_bf16(-0.01));
}

}  // namespace
}  // namespace gridscope::quant
