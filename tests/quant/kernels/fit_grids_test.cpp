// The vector path of grid recovery against fit_grid(), on every CPU target.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <random>
#include <vector>

#include "gridscope/core/endian.hpp"
#include "gridscope/quant/codec.hpp"
#include "gridscope/quant/cpu_target.hpp"
#include "gridscope/quant/grid.hpp"
#include "quant/grid_values.hpp"
#include "support/matchers.hpp"

namespace gridscope::quant {
namespace {

using Codes = std::vector<std::uint16_t>;

std::string describe_fit(const GridFit& fit) {
  return fmt::format("class {}, step {} in {} ({}) to {} ({}), top {}, feasible {:x}",
                     static_cast<int>(fit.verdict), fit.step, fit.step_low, fit.low_is_feasible,
                     fit.step_high, fit.high_is_feasible, fit.top_level, fit.feasible);
}

bool is_same_as_one_by_one(const Codes& codes, std::size_t group_size, LevelRange range = {}) {
  std::vector<std::byte> bytes(codes.size() * 2);
  std::vector<float> values;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    store_le(std::span(bytes).subspan(2 * i), codes[i]);
    values.push_back(static_cast<float>(bf16_value(codes[i])));
  }
  std::vector<GridFit> fits(codes.size() / group_size);
  fit_grids(bytes, group_size, range, fits);
  for (std::size_t g = 0; g < fits.size(); ++g) {
    const auto group = std::span(values).subspan(g * group_size, group_size);
    const GridFit expected = fit_grid(group, Dtype::kBF16, range, {});
    EXPECT_EQ(fits[g], expected) << describe_fit(fits[g]) << "\nexpected "
                                 << describe_fit(expected);
    if (fits[g] != expected) return false;
  }
  return true;
}

// Groups of 32 by the usual rules, now and then with weights replaced or moved by a last bit.
Codes any_groups(std::mt19937& random, std::size_t groups) {
  const std::array<test::StepRule, 4> rules = {test::over_minus_eight, test::over_seven,
                                               test::over_seven_and_a_half, test::both_sides};
  const auto chance = [&](unsigned in) { return random() % in == 0; };
  Codes codes;
  for (std::size_t g = 0; g < groups; ++g) {
    const double deviation =
        chance(8) ? std::ldexp(1.0, static_cast<int>(random() % 240) - 120) : 0.02;
    const auto made = test::snap(test::gaussian(random, 32, deviation), rules[random() % 4],
                                 chance(2) ? Dtype::kBF16 : Dtype::kF32);
    const bool sparse = chance(4);
    for (const float value : made.values) {
      auto code = to_bf16(static_cast<double>(value));
      if (sparse && !chance(5)) code &= 0x8000U;
      if (chance(300)) code = static_cast<std::uint16_t>(code + random() % 3);
      if (chance(2000)) code = static_cast<std::uint16_t>(random());
      codes.push_back(code);
    }
  }
  return codes;
}

class FitGrids : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_THAT(force_cpu_target(GetParam()), test::IsOk()); }
  void TearDown() override { ASSERT_THAT(force_cpu_target(""), test::IsOk()); }
};

TEST_P(FitGrids, GiveTheSameFits) {
  std::mt19937 random(3);
  ASSERT_TRUE(is_same_as_one_by_one(any_groups(random, 4000), 32));
}

TEST_P(FitGrids, DoEveryGroupSize) {
  std::mt19937 random(4);
  for (const std::size_t size : {1U, 4U, 16U, 48U, 64U, 96U, 128U}) {
    ASSERT_TRUE(is_same_as_one_by_one(any_groups(random, 12 * 4), size)) << size;
  }
}

TEST_P(FitGrids, DoOtherRanges) {
  std::mt19937 random(5);
  const Codes codes = any_groups(random, 50);
  ASSERT_TRUE(is_same_as_one_by_one(codes, 32, {.lowest = -15, .highest = 15}));
  ASSERT_TRUE(is_same_as_one_by_one(codes, 32, {.lowest = -2, .highest = 1}));
}

// All groups of 16 with few magnitudes: ends of intervals coincide, signs are forced, levels tie.
TEST_P(FitGrids, DecideNarrowCases) {
  for (unsigned significand = 0x80; significand < 0x100; ++significand) {
    for (int a = 1; a <= 8; ++a) {
      for (int b = 1; b <= a; ++b) {
        Codes codes(16, 0);
        for (const bool below : {false, true}) {
          codes[3] = to_bf16(significand * 0.01 * a);
          codes[7] = static_cast<std::uint16_t>(to_bf16(significand * -0.01 * b) - (below ? 1 : 0));
          codes[9] = below ? codes[3] : 0x8000;
          ASSERT_TRUE(is_same_as_one_by_one(codes, 16)) << significand << " " << a << " " << b;
        }
      }
    }
  }
}

TEST_P(FitGrids, DecideStrangeNumbers) {
  for (const unsigned strange : {0x0000U, 0x8000U, 0x0001U, 0x8001U, 0x007fU, 0x0080U, 0x7f7fU,
                                 0xff7fU, 0x7f80U, 0xff80U, 0x7fc0U, 0xffffU}) {
    Codes codes(32, 0);
    codes[5] = static_cast<std::uint16_t>(strange);
    ASSERT_TRUE(is_same_as_one_by_one(codes, 32)) << strange;
    codes[6] = 0x3c80;
    ASSERT_TRUE(is_same_as_one_by_one(codes, 32)) << strange;
    std::ranges::fill(codes, static_cast<std::uint16_t>(strange));
    ASSERT_TRUE(is_same_as_one_by_one(codes, 32)) << strange;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, FitGrids, ::testing::ValuesIn(cpu_targets()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace gridscope::quant
