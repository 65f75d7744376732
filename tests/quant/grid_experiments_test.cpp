// What exact recovery gives on many groups of 32 made by known rules, with the rates that the
// format reference states; and how often a re-encoder that derives its own scale would hit such
// weights.

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "gridscope/quant/codec.hpp"
#include "gridscope/quant/grid.hpp"
#include "quant/grid_values.hpp"

namespace gridscope::quant {
namespace {

constexpr std::size_t kGroup = 32;
constexpr int kGroups = 1500;
constexpr double kDeviation = 0.02;

struct Rule {
  const char* name;
  test::StepRule step;
};

std::vector<Rule> rules() {
  return {{.name = "max/-8", .step = test::over_minus_eight},
          {.name = "absmax/7", .step = test::over_seven},
          {.name = "absmax/7.5", .step = test::over_seven_and_a_half}};
}

struct Rates {
  int recovered = 0;
  int true_step_feasible = 0;
  int top_eight = 0;
  std::uint32_t candidates = 0;
  std::uint32_t most_candidates = 0;
};

Rates recover(const test::StepRule& rule, Dtype scale_dtype) {
  std::mt19937 random(5);
  Rates rates;
  std::vector<std::int16_t> levels(kGroup);
  for (int i = 0; i < kGroups; ++i) {
    const auto made = test::snap(test::gaussian(random, kGroup, kDeviation), rule, scale_dtype);
    const GridFit found = fit_grid(made.values, Dtype::kBF16, {}, levels);
    if (!found.has_step()) continue;
    // Without level -8 a grid and its mirror image are the same.
    if (std::signbit(found.step) != std::signbit(made.step)) {
      for (std::int16_t& level : levels) level = static_cast<std::int16_t>(-level);
    }
    if (levels == made.levels) ++rates.recovered;
    const double step = std::fabs(made.step);
    if (found.step_low <= step && step <= found.step_high) ++rates.true_step_feasible;
    if ((found.feasible >> 8U & 1U) != 0) ++rates.top_eight;
    const std::uint32_t candidates = step_candidates(found, scale_dtype, 1000);
    rates.candidates += candidates;
    rates.most_candidates = std::max(rates.most_candidates, candidates);
  }
  return rates;
}

TEST(GridExperiments, RecoverEveryLevelWhateverTheRuleAndTheScaleType) {
  for (const Rule& rule : rules()) {
    for (const Dtype dtype : {Dtype::kBF16, Dtype::kF16, Dtype::kF32}) {
      const Rates rates = recover(rule.step, dtype);
      EXPECT_EQ(rates.recovered, kGroups) << rule.name;
      EXPECT_EQ(rates.true_step_feasible, kGroups) << rule.name;
    }
  }
}

TEST(GridExperiments, LeaveOneScaleOfBf16AndAFewOfF16) {
  for (const Rule& rule : rules()) {
    const Rates bf16 = recover(rule.step, Dtype::kBF16);
    EXPECT_EQ(bf16.candidates, kGroups) << rule.name;
    EXPECT_EQ(bf16.most_candidates, 1) << rule.name;
    const Rates f16 = recover(rule.step, Dtype::kF16);
    EXPECT_NEAR(f16.candidates / static_cast<double>(kGroups), 4.0, 0.7) << rule.name;
    EXPECT_LE(f16.most_candidates, 9) << rule.name;
  }
}

TEST(GridExperiments, TellTheRulesApartByTheTopLevel) {
  const auto share = [](const test::StepRule& rule) {
    return recover(rule, Dtype::kBF16).top_eight / static_cast<double>(kGroups);
  };
  EXPECT_EQ(share(test::over_minus_eight), 1.0);
  EXPECT_EQ(share(test::over_seven), 0.0);
  EXPECT_NEAR(share(test::over_seven_and_a_half), 0.25, 0.04);
  EXPECT_NEAR(share(test::both_sides), 0.42, 0.05);
}

TEST(GridExperiments, RejectWeightsThatWereNeverOnAGrid) {
  std::mt19937 random(6);
  int accepted = 0;
  for (int i = 0; i < kGroups; ++i) {
    auto values = test::gaussian(random, kGroup, kDeviation);
    for (float& value : values) value = test::to_bf16_number(static_cast<double>(value));
    if (fit_grid(values, Dtype::kBF16, {}, {}).has_step()) ++accepted;
  }
  EXPECT_EQ(accepted, 0);
}

struct Hits {
  double groups = 0.0;
  double values = 0.0;
};

// Q4_0 without knowledge of the grid: the scale is the extreme weight over -8, kept as F16; codes
// are chosen with the scale before it is rounded.
Hits naive_q4_0(const test::StepRule& rule) {
  std::mt19937 random(7);
  int groups = 0;
  int values = 0;
  for (int i = 0; i < kGroups; ++i) {
    const auto made = test::snap(test::gaussian(random, kGroup, kDeviation), rule, Dtype::kBF16);
    const auto scale = static_cast<float>(test::extremes_of(made.values).largest / -8);
    const double stored = f16_value(to_f16(static_cast<double>(scale)));
    int same = 0;
    for (const float value : made.values) {
      const auto code = static_cast<int>(std::clamp(value / scale + 8.5F, 0.0F, 15.0F));
      if (test::to_bf16_number((code - 8) * stored) == value) ++same;
    }
    values += same;
    if (same == static_cast<int>(kGroup)) ++groups;
  }
  return {.groups = groups / static_cast<double>(kGroups),
          .values = values / static_cast<double>(kGroups * kGroup)};
}

TEST(GridExperiments, ShowWhatAnEncoderThatDerivesItsScaleKeeps) {
  EXPECT_EQ(naive_q4_0(test::over_minus_eight).groups, 1.0);
  const Hits over_seven = naive_q4_0(test::over_seven);
  EXPECT_EQ(over_seven.groups, 0.0);
  EXPECT_NEAR(over_seven.values, 0.17, 0.03);
  const Hits over_seven_and_a_half = naive_q4_0(test::over_seven_and_a_half);
  EXPECT_NEAR(over_seven_and_a_half.groups, 0.25, 0.04);
  EXPECT_NEAR(over_seven_and_a_half.values, 0.375, 0.04);
  EXPECT_NEAR(naive_q4_0(test::both_sides).groups, 0.42, 0.05);
}

}  // namespace
}  // namespace gridscope::quant
