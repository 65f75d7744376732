#pragma once

// What the levels of a group mean where its scale is a BF16 number, by the bits of that.
//
// Steps that round to the same scale differ from it by 2^-8 at most, so weights that lie on a grid
// of such a step are the rounded products of level and scale, or the BF16 numbers next to those,
// all of them to the same side. For each level there is one step beyond which that is the next
// number: these thresholds, in their order, tell which sets of levels can be at the next number
// together.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "quant/int4_groups.hpp"
#include "quant/kernels/int4_units.hpp"

namespace gridscope::quant {

inline constexpr std::size_t kMagnitudes = 8;  // of the levels but for 0

// The rounded products of the 16 codes, as BF16 numbers but for a multiple of 256 that comes from
// the scale's upper byte and is missing in all but that of level 0.
using ProductBits = std::array<std::uint16_t, 16>;

// A product of a level and a scale of 1 to 2, rounded, in 2^-7.
constexpr int rounded_product(int magnitude, int significand) {
  return static_cast<int>(to_eight_bits(static_cast<std::uint32_t>(magnitude * significand)));
}

// From a number of 8 significant bits to the next one.
constexpr int distance_above(int number) {
  int distance = 1;
  while (number / distance > 0xff) distance *= 2;
  return distance;
}

// By the low bit of the exponent and the seven bits after the leading one: bits 16 to 23 of the
// scale as a float.
constexpr std::array<ProductBits, 256> make_product_bits() {
  std::array<ProductBits, 256> all = {};
  for (int scale = 0; scale < 256; ++scale) {
    for (int code = 0; code < 16; ++code) {
      const int level = code + kInt4Lowest;
      if (level == 0) continue;
      const int product = rounded_product(level < 0 ? -level : level, 128 + scale % 128);
      const int distance = distance_above(product);
      int exponent = scale / 128;
      for (int d = distance; d > 1; d /= 2) ++exponent;
      const int bits = exponent * 128 + product / distance - 128 + (level < 0 ? 0x8000 : 0);
      all[static_cast<std::size_t>(scale)][static_cast<std::size_t>(code)] =
          static_cast<std::uint16_t>(bits);
    }
  }
  return all;
}

// Where the next number lies: away from 0 or towards it.
enum class Side : std::uint8_t { kFurther, kNearer };
inline constexpr std::size_t kSides = 2;

// Of levels 1 to 8, in units.
using LevelTable = std::array<std::int16_t, kMagnitudes>;

// Of the value and of the next number. The product of the former and what is added to it there, a
// multiple of 8, is in eighths; the value's square has two parts.
struct LevelUnits {
  LevelTable to_next;  // without the sign
  LevelTable squared_to_next;
  LevelTable eighth_of_cross;
  LevelTable high_square;  // from this bit on:
};

inline constexpr int kLowSquareBits = 15;

// From a number to the next one, in halves of 2^-7.
constexpr int halves_to_next(int number, Side side) {
  const int distance = distance_above(number);
  if (side == Side::kFurther) return 2 * distance;
  return number == 128 * distance ? -distance : -2 * distance;
}

inline constexpr int kUnitsOfHalf = 1 << (kUnitBits - 8);

constexpr int units_of_product(std::size_t magnitude, int significand) {
  return rounded_product(static_cast<int>(magnitude), significand) * 2 * kUnitsOfHalf;
}

constexpr LevelUnits make_level_units(int significand, Side side) {
  LevelUnits units = {};
  for (std::size_t i = 0; i < kMagnitudes; ++i) {
    const int product = rounded_product(static_cast<int>(i) + 1, significand);
    const int to_next = halves_to_next(product, side) * kUnitsOfHalf;
    const int value = units_of_product(i + 1, significand);
    units.to_next[i] = static_cast<std::int16_t>(to_next < 0 ? -to_next : to_next);
    units.squared_to_next[i] = static_cast<std::int16_t>(to_next * to_next);
    units.eighth_of_cross[i] = static_cast<std::int16_t>(value * to_next / 8);
    units.high_square[i] = static_cast<std::int16_t>(value * value >> kLowSquareBits);
  }
  return units;
}

// The bits below.
constexpr std::array<LevelTable, 128> make_low_squares() {
  std::array<LevelTable, 128> all = {};
  for (std::size_t scale = 0; scale < all.size(); ++scale) {
    for (std::size_t i = 0; i < kMagnitudes; ++i) {
      const int value = units_of_product(i + 1, 128 + static_cast<int>(scale));
      all[scale][i] = static_cast<std::int16_t>(value * value % (1 << kLowSquareBits));
    }
  }
  return all;
}

// No number is farther from the next one.
inline constexpr int kMostToNext = 1 << (kUnitBits - 4);

// A step as a fraction: where a level's weights become another number.
struct Threshold {
  int numerator = 0;
  int denominator = 1;

  constexpr bool operator<(const Threshold& other) const {
    return numerator * other.denominator < other.numerator * denominator;
  }
};

// Where a level's weights become the next number, and where the one after that. The latter as if
// that were as far away again: where a power of two lies between it is not, but no threshold comes
// near.
constexpr std::array<Threshold, 2> thresholds_of(int magnitude, int significand, Side side) {
  const int product = rounded_product(magnitude, significand);
  const int next = halves_to_next(product, side);
  return {Threshold{.numerator = 4 * product + next, .denominator = magnitude},
          Threshold{.numerator = 4 * product + 3 * next, .denominator = magnitude}};
}

// Sets of levels, bit q - 1 for level q or -q: all sets whose levels are at the next number for one
// step or another, while none of the others is. Among them is the empty set; that of all levels is
// left out.
using SetsAtNext = std::array<std::uint8_t, 8>;

constexpr SetsAtNext find_sets_at_next(int significand, Side side) {
  std::array<Threshold, kMagnitudes> firsts = {};
  std::array<Threshold, kMagnitudes> seconds = {};
  const auto precedes = [&](const Threshold& a, const Threshold& b) {
    return side == Side::kFurther ? a < b : b < a;
  };
  for (std::size_t i = 0; i < kMagnitudes; ++i) {
    const auto both = thresholds_of(static_cast<int>(i) + 1, significand, side);
    firsts[i] = both[0];
    seconds[i] = both[1];
  }
  SetsAtNext sets = {};
  std::size_t count = 1;
  for (const Threshold& last : firsts) {
    std::uint8_t set = 0;
    bool is_possible = true;
    for (std::size_t i = 0; i < kMagnitudes; ++i) {
      if (!precedes(last, firsts[i])) set |= static_cast<std::uint8_t>(1U << i);
      // Just beyond the last threshold, none is at the number after the next.
      is_possible = is_possible && precedes(last, seconds[i]);
    }
    if (is_possible && set != 0xff) sets[count++] = set;
  }
  return sets;
}

// A table of 128 for each side, by the seven bits after the scale's leading one.
template <class T>
using BySide = std::array<std::array<T, 128>, kSides>;

template <class T, T (*kMake)(int, Side)>
constexpr BySide<T> make_by_side() {
  BySide<T> all = {};
  for (std::size_t scale = 0; scale < 128; ++scale) {
    all[0][scale] = kMake(128 + static_cast<int>(scale), Side::kFurther);
    all[1][scale] = kMake(128 + static_cast<int>(scale), Side::kNearer);
  }
  return all;
}

alignas(64) inline constexpr std::array<ProductBits, 256> kProductBits = make_product_bits();
alignas(64) inline constexpr std::array<LevelTable, 128> kLowSquares = make_low_squares();
alignas(64) inline constexpr auto kLevelUnits = make_by_side<LevelUnits, make_level_units>();
alignas(64) inline constexpr auto kSetsAtNext = make_by_side<SetsAtNext, find_sets_at_next>();

}  // namespace gridscope::quant
