// Groups that are settled by a look, against the full search and the plain count of moves, on every
// CPU target.

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <random>

#include "gridscope/quant/cpu_target.hpp"
#include "gridscope/quant/level_moves.hpp"
#include "gridscope/quant/settled_grids.hpp"
#include "kernels/certain_levels.hpp"
#include "quant/int4_pair.hpp"
#include "support/matchers.hpp"

namespace gridscope::quant {
namespace {

using test::Build;
using test::Int4Pair;

class SettleGrids : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_THAT(force_cpu_target(GetParam()), test::IsOk()); }
  void TearDown() override { ASSERT_THAT(force_cpu_target(""), test::IsOk()); }
};

// What is settled is as the search says; returns how many groups are.
std::size_t expect_as_searched(const Int4Pair& pair) {
  const auto bytes = pair.source_bytes();
  const SourceRows source{.dtype = Dtype::kBF16, .bytes = bytes};
  const Int4Rows build = pair.int4_rows(3);
  const std::size_t groups = pair.rows * pair.groups;
  SettledGroups settled;
  settle_grids(build, source, {}, settled);
  EXPECT_EQ(settled.count() + settled.open.size(), groups);

  std::vector<GridFit> fits(groups);
  fit_grids(bytes, pair.group_size, {}, fits);
  std::vector<GridFit> open(settled.open.size());
  fit_grids_of(bytes, pair.group_size, settled.open, open);
  SettledGroups expected{.open = settled.open};
  auto next = settled.open.begin();
  for (std::size_t g = 0; g < fits.size(); ++g) {
    if (next != settled.open.end() && *next == g) {
      EXPECT_EQ(open[static_cast<std::size_t>(next++ - settled.open.begin())], fits[g]) << g;
      continue;
    }
    EXPECT_EQ(fits[g].verdict, GridClass::kOnGrid) << g;
    ++expected.top_levels.at(static_cast<std::size_t>(std::abs(fits[g].top_level)));
    const double scale = std::fabs(static_cast<double>(build.scales[g]));
    if (allows_step(fits[g], scale)) continue;
    ++(scale < std::fabs(fits[g].step) ? expected.smaller_scales : expected.larger_scales);
  }
  EXPECT_EQ(settled, expected);

  const LevelMoves all =
      count_level_moves(pair.row_block(), source, {.group_size = pair.group_size, .fits = fits});
  LevelMoves some =
      count_level_moves(build, source, {.group_size = pair.group_size, .fits = open}, settled.open);
  some.counts[LevelMoves::kFarthest] += settled.count() * pair.group_size;
  EXPECT_EQ(some, all);
  return settled.count();
}

TEST_P(SettleGrids, AgreesWithTheSearchOnBuildsThatKeptTheLevels) {
  for (const std::uint64_t size : {16U, 32U, 64U, 128U}) {
    for (const Dtype scales : {Dtype::kBF16, Dtype::kF16, Dtype::kF32}) {
      const auto pair = test::make_pair(
          {.rows = 4, .columns = 512, .group_size = size, .scale_dtype = scales}, 3);
      const std::size_t settled = expect_as_searched(pair);
      if (size == 32 && GetParam() != "SCALAR") {
        EXPECT_GT(settled, pair.scales.size() * 9 / 10) << size;
      }
    }
  }
}

TEST_P(SettleGrids, SettlesWhatIsGivenBackNumberForNumber) {
  auto pair = test::make_pair({.rows = 8, .columns = 512}, 5);
  for (std::size_t i = 0; i < pair.codes.size(); ++i) {
    const double level = pair.codes[i] - 8;
    pair.source[i] = to_bf16(level * static_cast<double>(pair.scales[i / 32]));
    if (level == 0.0 && i % 2 == 0) pair.source[i] = 0x8000;  // -0, as rounding leaves it
  }
  const std::size_t settled = expect_as_searched(pair);
  if (GetParam() != "SCALAR") {
    EXPECT_GT(settled, pair.scales.size() * 9 / 10);
  }
  // The same with negative steps, and with steps near to where BF16 ends.
  for (const float factor :
       {-1.0F, 0x1p-95F, 0x1p-120F, 0x1p-127F, 0x1p+90F, 0x1p+110F, 1.8e-28F, 1.7e+31F}) {
    auto scaled = pair;
    for (float& scale : scaled.scales) scale *= factor;
    for (std::size_t i = 0; i < scaled.codes.size(); ++i) {
      const double level = scaled.codes[i] - 8;
      scaled.source[i] = to_bf16(level * static_cast<double>(scaled.scales[i / 32]));
    }
    expect_as_searched(scaled);
  }
}

// Where a scale lies by the ends of the feasible steps, and in float beside them.
TEST_P(SettleGrids, TellsScalesAtTheEndsOfTheSteps) {
  const auto pair = test::make_pair({.rows = 8, .columns = 512, .scale_dtype = Dtype::kF32}, 19);
  const auto bytes = pair.source_bytes();
  std::vector<GridFit> fits(pair.rows * pair.groups);
  fit_grids(bytes, pair.group_size, {}, fits);
  for (const bool low : {true, false}) {
    for (const float beside : {0.0F, 1.0F, -INFINITY, INFINITY}) {
      auto moved = pair;
      for (std::size_t g = 0; g < fits.size(); ++g) {
        const auto end = static_cast<float>(low ? fits[g].step_low : fits[g].step_high);
        moved.scales[g] = beside == 0.0F ? end : std::nextafter(end, beside);
        if (beside == 1.0F) moved.scales[g] = test::to_bf16_number(static_cast<double>(end));
      }
      const std::size_t settled = expect_as_searched(moved);
      if (beside == 1.0F) {
        EXPECT_EQ(settled > 0, GetParam() != "SCALAR");
      }
    }
  }
}

TEST_P(SettleGrids, LeavesMovedLevelsToTheSearch) {
  expect_as_searched(test::make_pair({.rows = 4, .columns = 512, .build = Build::kRequantized}, 7));
  expect_as_searched(test::make_pair({.rows = 4,
                                      .columns = 512,
                                      .build = Build::kRequantized,
                                      .scale_dtype = Dtype::kF16,
                                      .zero_points = true},
                                     8));
  auto pair = test::make_pair({.rows = 2, .columns = 512}, 9);
  for (std::uint8_t& code : pair.codes) code = static_cast<std::uint8_t>(code ^ 1U);
  EXPECT_EQ(expect_as_searched(pair), 0);
}

TEST_P(SettleGrids, AgreesWithTheSearchOnFewAndStrangeLevels) {
  std::mt19937 random(11);
  auto pair = test::make_pair({.rows = 16, .columns = 512}, 13);
  for (std::size_t first = 0; first < pair.codes.size(); first += 32) {
    // Four levels a group, so that other grids are often possible.
    std::array<std::uint8_t, 4> levels = {};
    for (auto& level : levels) level = static_cast<std::uint8_t>(random() % 16);
    for (std::size_t i = first; i < first + 32; ++i) {
      pair.codes[i] = levels[random() % 4];
      const double level = pair.codes[i] - 8;
      pair.source[i] = to_bf16(level * static_cast<double>(pair.scales[i / 32]));
    }
  }
  EXPECT_EQ(expect_as_searched(pair) > 0, GetParam() != "SCALAR");
  for (const float scale : {0.0F, INFINITY, std::nanf("")}) {
    pair.scales[random() % pair.scales.size()] = scale;
    expect_as_searched(pair);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, SettleGrids, ::testing::ValuesIn(cpu_targets()),
                         [](const auto& test) { return test.param; });

// Of a set that is called certain, no step and no rounding allows another largest level.
TEST(CertainLevels, LeaveOneGridOnly) {
  std::mt19937 random(17);
  std::uniform_real_distribution<double> mantissa(1.0, 2.0);
  int certain = 0;
  for (unsigned magnitudes = 0; magnitudes < 256; ++magnitudes) {
    if (!kCertainLevels[magnitudes]) continue;
    ++certain;
    const int top = static_cast<int>(std::bit_width(magnitudes));
    for (int trial = 0; trial < 200; ++trial) {
      const double step = mantissa(random);
      std::vector<float> values;
      for (int level = 1; level <= top; ++level) {
        const bool is_in = (magnitudes >> static_cast<unsigned>(level - 1) & 1U) != 0;
        if (is_in) values.push_back(test::to_bf16_number(-level * step));
      }
      const GridFit fit = fit_grid(values, Dtype::kBF16, {}, {});
      ASSERT_EQ(fit.verdict, GridClass::kOnGrid) << magnitudes << ' ' << step;
      ASSERT_EQ(fit.feasible, 1U << static_cast<unsigned>(top)) << magnitudes << ' ' << step;
    }
  }
  EXPECT_GT(certain, 150);
}

}  // namespace
}  // namespace gridscope::quant
