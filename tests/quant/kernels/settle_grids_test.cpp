// Groups that are settled by a look, against the full search and the plain count of moves, on every
// CPU target.

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <random>

#include "gridscope/quant/cpu_target.hpp"
#include "gridscope/quant/settled_grids.hpp"
#include "kernels/certain_levels.hpp"
#include "quant/int4_pair.hpp"
#include "quant/kernels/settled_as_searched.hpp"
#include "support/matchers.hpp"

namespace gridscope::quant {
namespace {

using test::Build;
using test::expect_as_searched;
using test::Int4Pair;

class SettleGrids : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_THAT(force_cpu_target(GetParam()), test::IsOk()); }
  void TearDown() override { ASSERT_THAT(force_cpu_target(""), test::IsOk()); }
};

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

// Groups of rows whose notes are there, but for some.
TEST_P(SettleGrids, TakesNotesInPlaceOfALook) {
  std::mt19937 random(23);
  for (const std::uint64_t groups : {1U, 3U, 4U, 7U, 64U, 71U, 130U, 200U}) {
    const auto pair = test::make_pair({.rows = 3, .columns = groups * 32}, 23);
    const auto expected = test::settle(pair, {});
    const auto noted = test::searched_notes(pair);
    EXPECT_EQ(expect_as_searched(pair, noted), expected.count());
    for (std::size_t g = 0; g < noted.groups.size(); ++g) {
      auto notes = noted;
      notes.groups[g] = KeptLevels::kUnknown;
      ASSERT_EQ(test::settle(pair, notes), expected) << groups << " " << g;
      std::fill_n(notes.groups.begin(), g + 1, KeptLevels::kUnknown);
      ASSERT_EQ(test::settle(pair, notes), expected) << groups << " up to " << g;
    }
    for (const unsigned one_in : {2U, 3U, 10U, 50U}) {
      auto notes = noted;
      for (std::uint8_t& note : notes.groups) {
        if (random() % one_in == 0) note = KeptLevels::kUnknown;
      }
      ASSERT_EQ(test::settle(pair, notes), expected) << groups << " " << one_in;
    }
  }
}

// What is noted is believed, whatever the weights are, in rows of whole fours.
TEST_P(SettleGrids, DoesNotLookAtWhatIsNoted) {
  using Scale = KeptLevels::Scale;
  constexpr std::array<std::uint8_t, 4> kNotes = {
      KeptLevels::settled(3, Scale::kFeasible), KeptLevels::settled(8, Scale::kSmaller),
      KeptLevels::kOpen, KeptLevels::settled(5, Scale::kLarger)};
  auto pair = test::make_pair({.rows = 2, .columns = 100 * 32}, 29);
  std::ranges::fill(pair.scales, 0.0F);  // nothing would be settled
  KeptLevels notes;
  SettledGroups expected;
  for (std::uint32_t g = 0; g < 200; ++g) {
    notes.groups.push_back(kNotes.at(g * g / 3 % 4));
    if (notes.groups.back() == KeptLevels::kOpen || GetParam() == "SCALAR") {
      expected.open.push_back(g);
    } else {
      test::add_settled(notes.groups.back(), expected);
    }
  }
  EXPECT_EQ(test::settle(pair, notes), expected);
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

TEST(CertainLevels, AreTheSameAsBits) {
  for (unsigned magnitudes = 0; magnitudes < 256; ++magnitudes) {
    EXPECT_EQ((kCertainBits.at(magnitudes / 32) >> magnitudes % 32 & 1U) != 0,
              kCertainLevels.at(magnitudes))
        << magnitudes;
  }
}

}  // namespace
}  // namespace gridscope::quant
