// The tables of kept levels against their definitions, and sets of levels against all steps there
// are.

#include "quant/kernels/kept_tables.hpp"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <set>

#include "gridscope/quant/codec.hpp"

namespace gridscope::quant {
namespace {

// A scale of 1 to 2.
double scale_with(std::size_t significand) {
  return static_cast<double>(128 + significand) / 128;
}

// The rounded product of a level and that, and its neighbour.
double product_with(std::size_t level, std::size_t significand) {
  return bf16_value(to_bf16(static_cast<double>(level) * scale_with(significand)));
}

double next_to(double number, Side side) {
  return bf16_value(
      static_cast<std::uint16_t>(to_bf16(number) + (side == Side::kFurther ? 1 : -1)));
}

TEST(KeptTables, HoldTheBitsOfRoundedProducts) {
  for (const unsigned sign : {0x0000U, 0x8000U}) {
    for (unsigned exponent = 37; exponent <= 217; exponent += 15) {
      for (unsigned significand = 0; significand < 128; ++significand) {
        const auto bits = static_cast<std::uint16_t>(sign | exponent << 7U | significand);
        const ProductBits& table = kProductBits[bits & 0xffU];
        for (unsigned code = 0; code < 16; ++code) {
          const int level = static_cast<int>(code) - 8;
          const unsigned upper = level == 0 ? 0U : bits & 0xff00U;
          const unsigned product = table[code] + upper;
          const std::uint16_t expected = level == 0 ? 0 : to_bf16(level * bf16_value(bits));
          ASSERT_EQ(product & 0xffffU, expected) << bits << " " << level;
        }
      }
    }
  }
}

TEST(KeptTables, HoldSquaresAndDistancesInUnits) {
  constexpr double kPerUnit = 1 << kUnitBits;
  for (std::size_t significand = 0; significand < 128; ++significand) {
    for (std::size_t level = 1; level <= kMagnitudes; ++level) {
      const double product = product_with(level, significand);
      const std::int16_t low_square = kLowSquares[significand][level - 1];
      ASSERT_GE(low_square, 0);
      for (const Side side : {Side::kFurther, Side::kNearer}) {
        const LevelUnits& units = kLevelUnits[static_cast<std::size_t>(side)][significand];
        const double distance = next_to(product, side) - product;
        ASSERT_EQ(units.to_next[level - 1], std::fabs(distance) * kPerUnit);
        ASSERT_EQ(units.squared_to_next[level - 1], distance * distance * kPerUnit * kPerUnit);
        ASSERT_EQ(units.eighth_of_cross[level - 1] * 8, product * distance * kPerUnit * kPerUnit);
        ASSERT_EQ(units.high_square[level - 1] * 32768 + low_square,
                  product * product * kPerUnit * kPerUnit);
      }
    }
  }
}

// Steps in this part of 2^-7: an even number of it wherever a level goes on to another number, and
// between two such places there is an odd one, at which nothing lies halfway.
constexpr int kPart = 2 * 4 * kCommonMultiple;

// The magnitude of a level at a step, rounded, as a BF16 number but for the exponent of 2^-7.
int rounded_weight(int level, int step) {
  int unit = kPart;
  int exponent = 0;
  while (level * step / unit > 0xff) {
    unit *= 2;
    ++exponent;
  }
  while (level * step / unit < 0x80) {
    unit /= 2;
    --exponent;
  }
  const int down = level * step / unit;
  const int rest = level * step % unit;
  return exponent * 128 + down + (2 * rest > unit || (2 * rest == unit && down % 2 != 0) ? 1 : 0);
}

// The sets of levels at the next number, from the scale on to that side, as long as none is two
// numbers away; without that of all levels.
std::set<unsigned> walk_steps(int significand, Side side) {
  const int direction = side == Side::kFurther ? 1 : -1;
  const int scale = (128 + significand) * kPart;
  std::array<int, kMagnitudes> products = {};
  for (int level = 1; level <= 8; ++level) {
    products.at(static_cast<std::size_t>(level - 1)) = rounded_weight(level, scale);
  }
  std::set<unsigned> sets = {0};  // at the scale itself, where some may lie halfway
  for (int step = scale + direction;; step += 2 * direction) {
    unsigned set = 0;
    for (unsigned i = 0; i < kMagnitudes; ++i) {
      const int numbers =
          (rounded_weight(static_cast<int>(i) + 1, step) - products.at(i)) * direction;
      EXPECT_GE(numbers, 0);
      if (numbers > 1) return sets;
      set |= static_cast<unsigned>(numbers) << i;
    }
    if (set != 0xff) sets.insert(set);
  }
}

TEST(KeptTables, HoldTheSetsThatStepsGive) {
  for (const Side side : {Side::kFurther, Side::kNearer}) {
    for (std::size_t significand = 0; significand < 128; ++significand) {
      const auto expected = walk_steps(static_cast<int>(significand), side);
      ASSERT_GT(expected.size(), 1);
      const SetsAtNext& sets = kSetsAtNext[static_cast<std::size_t>(side)][significand];
      ASSERT_EQ(std::set<unsigned>(sets.begin(), sets.end()), expected) << significand;
    }
  }
}

}  // namespace
}  // namespace gridscope::quant
