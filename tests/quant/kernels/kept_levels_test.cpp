// Builds that kept the levels of their source, or nearly: the same sums as the reference, and the
// same groups settled whether the comparison noted something of them or not, on every CPU target.

#include "quant/kernels/kept_levels.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>
#include <span>
#include <vector>

#include "gridscope/quant/cpu_target.hpp"
#include "quant/int4_pair.hpp"
#include "quant/kernels/int4_units.hpp"
#include "quant/kernels/kept_pairs.hpp"
#include "quant/kernels/reference_sums.hpp"
#include "quant/kernels/settled_as_searched.hpp"
#include "support/matchers.hpp"

namespace gridscope::quant {
namespace {

using test::any_bf16_scale;
using test::any_codes;
using test::any_kept_pair;
using test::codes_of;
using test::Int4Pair;
using test::move_level;
using test::pair_of;
using test::steps_beside;
using test::store_weights;
using test::weights_of;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::size_t kSize = kPartWeights;

// ---- what is expected ---------------------------------------------------------------------------

// Sums are those of the reference, groups are settled with notes as without. Returns the notes.
std::vector<std::uint8_t> expect_alike(const Int4Pair& pair,
                                       double known_worst = WorstError().error) {
  const auto bytes = pair.source_bytes();
  KeptLevels kept{.groups = {1, 2, 3}};  // of another comparison
  const ErrorSums fused = compare_int4_bf16(
      pair.int4_rows(3), {.dtype = Dtype::kBF16, .bytes = bytes}, known_worst, kept);
  ErrorSums expected = test::reference_of(pair);
  if (expected.worst.error <= known_worst) expected.worst = {};
  test::expect_same(fused, expected);
  if (expected.source_non_finite == 0) {
    EXPECT_EQ(test::settle(pair, kept), test::settle(pair, {}));
  }
  return kept.groups;
}

class LookForKept : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_THAT(force_cpu_target(GetParam()), test::IsOk()); }
  void TearDown() override { ASSERT_THAT(force_cpu_target(""), test::IsOk()); }
};

TEST_P(LookForKept, IsForOneTargetOnly) {
  if (GetParam() != "AVX3_DL") {
    EXPECT_FALSE(can_look_for_kept());
  }
  std::mt19937 random(1);
  EXPECT_EQ(expect_alike(any_kept_pair(2, 8, kSize, random)).empty(), !can_look_for_kept());
}

// Groups of scales with all 128 significands, and of the steps beside them.
class EveryScale {
 public:
  // `exponent`: called for each group.
  template <class Exponent>
  EveryScale(Exponent exponent, float sign, std::mt19937& random) {
    for (int significand = 128; significand < 256; ++significand) {
      for (const double step : steps_beside(significand, random)) {
        const int power = exponent();
        steps_.push_back(std::ldexp(step, power) * static_cast<double>(sign));
        scales_.push_back(std::ldexp(static_cast<float>(significand), power) * sign);
      }
    }
    pair_ = pair_of(1, kSize, scales_, steps_, random);
  }

  [[nodiscard]] const Int4Pair& pair() const { return pair_; }

  // Whether a repack to BF16 scales could have made that group.
  [[nodiscard]] bool is_faithful(std::size_t group) const {
    return test::to_bf16_number(steps_[group]) == scales_[group];
  }

 private:
  std::vector<float> scales_;
  std::vector<double> steps_;
  Int4Pair pair_;
};

void expect_as_searched(const EveryScale& every, bool all_are_noted) {
  const auto notes = expect_alike(every.pair());
  test::expect_as_searched(every.pair(), {.groups = notes});
  if (!can_look_for_kept() || !all_are_noted) return;
  const auto searched = test::searched_notes(every.pair()).groups;
  ASSERT_THAT(notes, SizeIs(searched.size()));
  for (std::size_t g = 0; g < notes.size(); ++g) {
    if (notes[g] == KeptLevels::kUnknown && !every.is_faithful(g)) continue;
    ASSERT_EQ(notes[g], searched[g]) << g << ", scale " << every.pair().scales[g];
  }
}

TEST_P(LookForKept, AgreesOnEveryScaleAndTheStepsBesideIt) {
  std::mt19937 random(2);
  for (const float sign : {1.0F, -1.0F}) {
    for (const int power : {-12, -13}) {
      expect_as_searched(EveryScale([=] { return power; }, sign, random), true);
    }
    const auto any_power = [&] { return static_cast<int>(random() % 180) - 97; };
    expect_as_searched(EveryScale(any_power, sign, random), false);
  }
}

TEST_P(LookForKept, AgreesInRowsOfAnyLengthAndGroupsOfSeveralParts) {
  std::mt19937 random(3);
  for (const std::uint64_t size : {16U, 32U, 64U, 96U, 128U, 256U}) {
    for (const std::uint64_t groups :
         {1U, 2U, 3U, 4U, 5U, 8U, 30U, 88U, 127U, 128U, 130U, 132U, 264U}) {
      const std::uint64_t rows = 4;
      if (groups * size % kSize != 0) continue;
      auto pair = any_kept_pair(rows, groups, size, random);
      const auto notes = expect_alike(pair);
      ASSERT_EQ(notes.empty(), size != kSize || !can_look_for_kept());
      const std::uint64_t whole = groups / 4 * 4;
      for (std::size_t g = 0; g < notes.size(); ++g) {
        if (g % groups >= whole) {
          ASSERT_EQ(notes[g], KeptLevels::kUnknown) << groups;
        }
      }
      // A few groups that are not kept, in every row but the first.
      for (std::size_t change = 0; change < rows * groups / 16 + 1; ++change) {
        const std::size_t first = groups * size;
        pair.source[first + random() % (pair.source.size() - first)] ^= 0x0004U;
      }
      expect_alike(pair);
    }
  }
}

// ---- groups that did not keep their levels ------------------------------------------------------

// Eight fours of one scale and step.
constexpr std::size_t kOfEight = 8 * kKeptParts;

Int4Pair eight_fours(float scale, double step, std::mt19937& random) {
  auto pair = pair_of(1, kSize, std::vector(kOfEight, scale), std::vector(kOfEight, step), random);
  for (std::size_t g = 0; g < kOfEight; ++g) {
    std::ranges::copy(any_codes(random, 16), codes_of(pair, g).begin());
    store_weights(pair, g, step);
  }
  return pair;
}

Int4Pair eight_fours(std::mt19937& random) {
  return eight_fours(0x1.2cp-6F, 0x1.2cp-6, random);
}

// Of the four of that group none is noted.
void expect_four_unknown(const std::vector<std::uint8_t>& notes, std::size_t group) {
  if (!can_look_for_kept()) return;
  ASSERT_THAT(notes, SizeIs(kOfEight));
  EXPECT_THAT(std::span(notes).subspan(group / kKeptParts * kKeptParts, kKeptParts),
              Each(KeptLevels::kUnknown));
}

// And of the others all are.
void expect_only_four_unknown(const std::vector<std::uint8_t>& notes, std::size_t group) {
  expect_four_unknown(notes, group);
  if (!can_look_for_kept()) return;
  EXPECT_EQ(std::ranges::count(notes, KeptLevels::kUnknown), kKeptParts);
}

// Each weight in its turn, in groups without a level at the next number and with some at it, to
// either side. Every level has two weights or more.
TEST_P(LookForKept, LeavesOneStrangeWeight) {
  std::mt19937 random(4);
  for (const double beside : {0.0, 0x1p-9, -0x1p-9}) {
    const double step = 0x1.2cp-6 * (1 + beside);
    const auto usual = eight_fours(0x1.2cp-6F, step, random);
    EXPECT_THAT(expect_alike(usual), Each(Not(KeptLevels::kUnknown)));
    for (std::size_t i = 0; i < kSize; ++i) {
      const std::size_t group = i % kOfEight;
      const std::size_t at = group * kSize + i;
      const unsigned right = usual.source[at];
      std::vector<unsigned> others = {1,      0x8001, 0x7f,   0x80,   0x8080, 0x3c00,
                                      0x7f7f, 0x7f80, 0xff80, 0x7fff, 0xffff};
      if (usual.codes[at] != 8) {
        others.insert(others.end(), {0, 0x8000, right ^ 0x8000U, right + 1, right - 1, right + 2,
                                     right - 2, right + 255, right + 256, right - 256, right + 257,
                                     (right ^ 0x8000U) + 1, (right ^ 0x8000U) - 1});
      }
      for (const unsigned other : others) {
        auto pair = usual;
        pair.source[at] = static_cast<std::uint16_t>(other);
        expect_only_four_unknown(expect_alike(pair), group);
        ASSERT_FALSE(HasFailure()) << other << " instead of " << right << " at " << at;
      }
    }
  }
}

// All levels are at the next number but for one weight each, and one of level 0 is not 0: by their
// counts alone, all levels would be there.
TEST_P(LookForKept, LeavesAStrangeZeroAmongLevelsThatMoved) {
  std::mt19937 random(17);
  for (const int numbers : {1, -1}) {
    auto pair = eight_fours(random);
    const std::size_t group = random() % kOfEight;
    for (int level = 1; level <= 8; ++level) move_level(pair, group, level, numbers);
    expect_alike(pair);
    unsigned seen = 0;
    for (std::size_t i = 0; i < kSize; ++i) {
      const int level = std::abs(codes_of(pair, group)[i] - 8);
      const bool is_first = (seen >> static_cast<unsigned>(level) & 1U) == 0;
      std::uint16_t& weight = weights_of(pair, group)[i];
      // The first of level 0 is a number above or below 0, as bits go.
      if (is_first) weight = static_cast<std::uint16_t>(level == 0 ? numbers : weight - numbers);
      seen |= 1U << static_cast<unsigned>(level);
    }
    expect_only_four_unknown(expect_alike(pair), group);
  }
}

// Two levels at the next number, to either side of it: of neighbouring groups, then of one.
TEST_P(LookForKept, TakesLevelsOfAGroupToOneSideOnly) {
  std::mt19937 random(5);
  const auto usual = eight_fours(random);
  for (int level = 1; level <= 8; ++level) {
    for (int other = 1; other <= 8; ++other) {
      const std::size_t group = random() % kOfEight;
      const int numbers = random() % 2 == 0 ? 1 : -1;
      auto pair = usual;
      move_level(pair, group, level, numbers);
      move_level(pair, group ^ 1U, other, -numbers);
      test::expect_as_searched(pair, {.groups = expect_alike(pair)});
      move_level(pair, group, other, -numbers);
      if (level != other) expect_only_four_unknown(expect_alike(pair), group);
      ASSERT_FALSE(HasFailure()) << level << " " << other << " " << numbers;
    }
  }
}

TEST_P(LookForKept, LeavesLevelsTwoNumbersAway) {
  std::mt19937 random(14);
  const auto usual = eight_fours(random);
  for (int level = 1; level <= 8; ++level) {
    for (const int numbers : {-2, 2}) {
      auto pair = usual;
      const std::size_t group = random() % kOfEight;
      move_level(pair, group, level, numbers);
      expect_only_four_unknown(expect_alike(pair), group);
      ASSERT_FALSE(HasFailure()) << level << " " << numbers;
    }
  }
}

// Only groups that a step explains are noted as settled, whichever levels are at the next number.
TEST_P(LookForKept, SettlesSetsOfLevelsThatAStepAllows) {
  std::mt19937 random(6);
  for (int trial = 0; trial < 4; ++trial) {
    std::vector<float> scales(256);
    std::ranges::generate(scales, [&] { return any_bf16_scale(random, 1); });
    auto pair =
        pair_of(1, kSize, scales, std::vector<double>(scales.begin(), scales.end()), random);
    for (std::size_t set = 0; set < scales.size(); ++set) {
      for (int level = 1; level <= 8; ++level) {
        if ((set >> static_cast<unsigned>(level - 1) & 1U) == 0) continue;
        move_level(pair, set, level, trial % 2 == 0 ? 1 : -1);
      }
    }
    const auto notes = expect_alike(pair);
    test::expect_as_searched(pair, {.groups = notes});
    const auto searched = test::searched_notes(pair).groups;
    for (std::size_t g = 0; g < notes.size(); ++g) {
      ASSERT_THAT(notes[g], AnyOf(KeptLevels::kUnknown, searched[g])) << g;
    }
    if (!can_look_for_kept()) continue;
    EXPECT_THAT(notes, Contains(KeptLevels::kUnknown));
    EXPECT_THAT(notes, Contains(Not(KeptLevels::kUnknown)));
  }
}

// Sums of 2^31, and dead groups.
TEST_P(LookForKept, AgreesOnGroupsOfOneLevel) {
  std::mt19937 random(7);
  for (std::uint8_t code = 0; code < 16; ++code) {
    for (const float scale : {1.0F, 255.0F / 128, -255.0F / 128, 0x1.fep+90F, 0x1.2cp-6F}) {
      for (const int numbers : {-1, 0, 1}) {
        if (code == 8 && numbers != 0) continue;
        auto pair = eight_fours(scale, static_cast<double>(scale), random);
        const std::size_t group = random() % kOfEight;
        std::ranges::fill(codes_of(pair, group), code);
        store_weights(pair, group, static_cast<double>(scale));
        move_level(pair, group, std::abs(code - 8), numbers);
        const auto notes = expect_alike(pair);
        if (can_look_for_kept()) {
          EXPECT_EQ(notes[group], KeptLevels::kOpen);
          EXPECT_THAT(notes, Each(Not(KeptLevels::kUnknown)));
        }
        // One other weight, and sums that are just below.
        codes_of(pair, group)[9] = 8;
        weights_of(pair, group)[9] = 0;
        expect_alike(pair);
        ASSERT_FALSE(HasFailure()) << int{code} << " " << scale << " " << numbers;
      }
    }
  }
}

// Of the square of 181 units of 2^-7 nearly all is below bit 15 of the kernel's unit.
TEST_P(LookForKept, AddsUpLongRows) {
  constexpr std::size_t kGroups = 6000;
  constexpr float kScale = 181.0F / 128;
  std::mt19937 random(16);
  auto pair = pair_of(1, kSize, std::vector(kGroups, kScale),
                      std::vector(kGroups, static_cast<double>(kScale)), random);
  std::ranges::fill(pair.codes, std::uint8_t{9});
  for (std::size_t g = 0; g < kGroups; ++g) store_weights(pair, g, static_cast<double>(kScale));
  expect_alike(pair);
  for (std::size_t g = 0; g < kGroups; ++g) move_level(pair, g, 1, 1);
  expect_alike(pair);
}

TEST_P(LookForKept, AgreesOnGroupsThatAreDeadOnOneSide) {
  std::mt19937 random(8);
  auto pair = eight_fours(random);
  std::ranges::fill(weights_of(pair, 1), std::uint16_t{0x8000});  // the source alone
  expect_four_unknown(expect_alike(pair), 1);
  std::ranges::fill(codes_of(pair, 1), std::uint8_t{8});  // both
  EXPECT_EQ(test::reference_of(pair).dead_in_both, 1);
  EXPECT_THAT(expect_alike(pair), Each(Not(KeptLevels::kUnknown)));
  std::ranges::fill(codes_of(pair, 4), std::uint8_t{8});  // the build alone
  expect_four_unknown(expect_alike(pair), 4);
}

TEST_P(LookForKept, TakesNormalBf16ScalesOnly) {
  std::mt19937 random(9);
  const auto usual = eight_fours(random);
  for (const float sign : {1.0F, -1.0F}) {
    for (const float scale : {0x1p-90F, 0x1.02p-90F, 1.0F, 0x1.fep-1F, 0x1p+90F, 0x1.fep+90F}) {
      const auto pair = eight_fours(sign * scale, static_cast<double>(sign * scale), random);
      EXPECT_THAT(expect_alike(pair), Each(Not(KeptLevels::kUnknown))) << scale;
    }
    for (const float scale :
         {0.0F, 0x1p-133F, 0x1p-127F, 0x1p-126F, 0x1.fep-91F, 0x1p+91F, 0x1p+127F, 0x1.fep+127F,
          0x1.01p+0F, 0x1.000002p+0F, 0x1.2cp-6F + 0x1p-22F, INFINITY, std::nanf("")}) {
      const auto all = eight_fours(sign * scale, static_cast<double>(sign * scale), random);
      EXPECT_THAT(expect_alike(all), Each(KeptLevels::kUnknown)) << scale;
      auto pair = usual;
      const std::size_t group = random() % kOfEight;
      pair.scales[group] = sign * scale;
      store_weights(pair, group, static_cast<double>(sign * scale));
      expect_four_unknown(expect_alike(pair), group);
      ASSERT_FALSE(HasFailure()) << scale;
    }
  }
}

// Weights that would be kept if there were no zero points.
TEST_P(LookForKept, LeavesBuildsWithZeroPoints) {
  std::mt19937 random(15);
  auto pair = any_kept_pair(2, 8, kSize, random);
  pair.zeros.resize(pair.scales.size());
  EXPECT_THAT(expect_alike(pair), IsEmpty());
  for (const auto zero : {std::int8_t{-1}, std::int8_t{1}, std::int8_t{7}}) {
    pair.zeros[random() % pair.zeros.size()] = zero;
    EXPECT_THAT(expect_alike(pair), IsEmpty());
  }
}

// Scales some BF16 numbers away from those that the levels belong to.
TEST_P(LookForKept, AgreesWhereTheScaleIsAnother) {
  std::mt19937 random(10);
  for (const int numbers : {-200, -129, -128, -127, -2, -1, 1, 2, 127, 128, 129, 200}) {
    auto pair = any_kept_pair(2, 16, kSize, random);
    for (float& scale : pair.scales) {
      const auto bits = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(scale));
      scale = std::bit_cast<float>(bits + numbers * 65536);
    }
    const auto notes = expect_alike(pair);
    test::expect_as_searched(pair, {.groups = notes});
  }
}

// ---- rows ---------------------------------------------------------------------------------------

// After a row in which more than a quarter of the fours are not kept the next seven are spared.
TEST_P(LookForKept, PausesAfterRowsOfOthers) {
  constexpr std::size_t kGroups = 16;
  std::mt19937 random(11);
  auto pair = pair_of(24, kSize, std::vector(24 * kGroups, 0x1.2cp-6F),
                      std::vector(24 * kGroups, 0x1.2cp-6), random);
  const auto spoil = [&](std::size_t row, std::size_t four) {
    pair.source[(row * kGroups + four * 4) * kSize] ^= 0x0010U;
  };
  const auto is_looked_at = [&](const std::vector<std::uint8_t>& notes, std::size_t row) {
    return std::ranges::count(std::span(notes).subspan(row * kGroups, kGroups),
                              KeptLevels::kUnknown) < std::ptrdiff_t{kGroups};
  };
  spoil(2, 0);
  for (const std::size_t four : {1U, 3U}) spoil(4, four);
  for (const std::size_t four : {0U, 1U, 2U, 3U}) spoil(15, four);
  const auto notes = expect_alike(pair);
  test::expect_as_searched(pair, {.groups = notes});
  if (!can_look_for_kept()) return;
  for (std::size_t row = 0; row < pair.rows; ++row) {
    if (row == 4 || row == 15) continue;
    const bool is_spared = (row > 4 && row <= 11) || (row > 15 && row <= 22);
    EXPECT_EQ(is_looked_at(notes, row), !is_spared) << row;
  }
}

// Rows whose worst errors grow, shrink and repeat, kept or not.
TEST_P(LookForKept, NamesTheFirstErrorThatIsLargerThanTheKnownOne) {
  constexpr float kScale = 0x1.2cp-6F;
  std::mt19937 random(12);
  for (const bool is_spoilt : {false, true}) {
    for (int trial = 0; trial < 30; ++trial) {
      auto pair = pair_of(6, kSize, std::vector(6 * 8, kScale),
                          std::vector(6 * 8, static_cast<double>(kScale)), random);
      for (std::size_t change = 0; change < 9; ++change) {
        move_level(pair, random() % (6 * 8), 1 + static_cast<int>(random() % 8), 1);
      }
      if (is_spoilt) pair.source[random() % pair.source.size()] ^= 0x0002U;
      for (const int level : {0, 1, 2, 3, 5, 8}) {
        const auto product = to_bf16(level * static_cast<double>(kScale));
        const double next = bf16_value(static_cast<std::uint16_t>(product + 1));
        const auto error = level == 0 ? 0.0F : static_cast<float>(next - bf16_value(product));
        for (const float known :
             {error, std::nextafter(error, -1.0F), std::nextafter(error, 1.0F)}) {
          expect_alike(pair, static_cast<double>(known));
          ASSERT_FALSE(HasFailure()) << trial << " " << known;
        }
      }
      expect_alike(pair);
    }
  }
}

TEST_P(LookForKept, NamesThePlaceOfTheFirstOfTheWorst) {
  auto pair = Int4Pair{.rows = 3, .groups = 8};
  for (std::size_t i = 0; i < pair.rows * pair.groups; ++i) pair.scales.push_back(0.125F);
  for (std::size_t i = 0; i < pair.rows * pair.columns(); ++i) {
    pair.codes.push_back(static_cast<std::uint8_t>(i % 16));
    pair.source.push_back(to_bf16((static_cast<int>(i % 16) - 8) * 0.125));
  }
  const auto worst_beyond = [&](double known) {
    KeptLevels kept;
    const auto bytes = pair.source_bytes();
    return compare_int4_bf16(pair.int4_rows(), {.dtype = Dtype::kBF16, .bytes = bytes}, known, kept)
        .worst;
  };
  constexpr double kToNext = 0x1p-8;  // from 0.5 and from 0.875; twice that from 1
  EXPECT_EQ(worst_beyond(0.0), WorstError());
  EXPECT_EQ(worst_beyond(-1.0), (WorstError{.error = 0.0, .row = 5, .column = 0}));
  move_level(pair, 8 + 6, 7, 1);
  move_level(pair, 16 + 1, 4, 1);
  const WorstError first{.error = kToNext, .row = 6, .column = 6 * 32 + 1};
  EXPECT_EQ(worst_beyond(-1.0), first);
  EXPECT_EQ(worst_beyond(0.0), first);
  EXPECT_EQ(worst_beyond(kToNext / 2), first);
  EXPECT_EQ(worst_beyond(kToNext), WorstError());
  move_level(pair, 16 + 3, 8, 1);
  const WorstError second{.error = 2 * kToNext, .row = 7, .column = 3 * 32};
  EXPECT_EQ(worst_beyond(-1.0), second);
  EXPECT_EQ(worst_beyond(kToNext), second);
  EXPECT_EQ(worst_beyond(2 * kToNext), WorstError());
}

INSTANTIATE_TEST_SUITE_P(Targets, LookForKept, ::testing::ValuesIn(cpu_targets()),
                         [](const auto& test) { return test.param; });

// ---- anything near to kept levels ---------------------------------------------------------------

void change_something(Int4Pair& pair) {
  const auto at = *rc::gen::inRange<std::size_t>(0, pair.source.size());
  const auto group = at / pair.group_size;
  switch (*rc::gen::inRange(0, 8)) {
    case 0:
      pair.codes[at] = static_cast<std::uint8_t>(*rc::gen::inRange(0, 16));
      break;
    case 1:
      pair.scales[group] *= *rc::gen::element(0.0F, -1.0F, 0x1p-80F, 0x1p+100F, 1 + 0x1p-9F);
      break;
    case 2:
      pair.source[at] ^= static_cast<std::uint16_t>(1U << *rc::gen::inRange(0U, 16U));
      break;
    default:
      move_level(pair, at / kSize, *rc::gen::inRange(1, 9), *rc::gen::element(-2, -1, -1, 1, 1, 2));
  }
}

RC_GTEST_PROP(LookForKeptProperty, AgreesNearToKeptLevels, ()) {
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
  const auto group_size = *rc::gen::element<std::uint64_t>(32, 32, 32, 64, 128);
  auto pair = any_kept_pair(*rc::gen::inRange<std::uint64_t>(1, 4),
                            *rc::gen::inRange<std::uint64_t>(1, 20), group_size, random);
  for (int changes = *rc::gen::inRange(0, 8); changes > 0; --changes) change_something(pair);
  const double known = *rc::gen::element(-1.0, 0.0, 0x1p-14, 0x1p-12);
  for (const std::string& target : cpu_targets()) {
    RC_ASSERT(force_cpu_target(target).has_value());
    expect_alike(pair, known);
    RC_ASSERT(!::testing::Test::HasFailure());
  }
  RC_ASSERT(force_cpu_target("").has_value());
}

}  // namespace
}  // namespace gridscope::quant
