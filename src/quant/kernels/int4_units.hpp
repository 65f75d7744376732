#pragma once

// 4-bit builds and BF16 sources in whole numbers.
//
// All non-zero values of a group that lies on a grid are within a factor of 16 of one another, and
// each has 8 significant bits: in units of a power of two a little below the step they are integers
// of 13 bits, and so are the rounded values of the build. Products and sums of integers are exact,
// so they can be taken in any order and give the bits that the sums in double of error_sums.hpp
// give, which then are exact as well. Groups with weights outside of that window are left to
// others.

#include <array>
#include <cstddef>
#include <cstdint>

namespace gridscope::quant {

// Codes that share a scale are looked at 32 at a time: 16 bytes.
inline constexpr std::size_t kPartWeights = 32;
inline constexpr std::size_t kPartCodeBytes = kPartWeights / 2;
inline constexpr std::size_t kPartSourceBytes = kPartWeights * 2;

// The scale is 2^e times 1 to 2. With symmetric levels the unit is 2^(e - kUnitBits); with zero
// points levels reach 15 instead of 8, and the unit is twice that.
inline constexpr int kUnitBits = 9;
// Weights of the source may have this many exponents, from that of unit * 2^7 on: 13 bits.
inline constexpr int kWindow = 6;
// Errors must be smaller than this, in units, so that the squares of 32 add up in 32 bits.
inline constexpr int kMostError = 1 << 13;
// Scales within 2^-100 to 2^100 (as exponent fields): units and their squares are normal doubles.
inline constexpr std::uint32_t kLeastExponent = 27;
inline constexpr std::uint32_t kMostExponent = 227;

// Where no sum over a row has more bits than a double, its units are not more powers of two apart.
inline constexpr std::uint32_t kMostPowers = 9;

// What the 16 codes of a group mean, in units: the low bytes, then the high bytes.
using UnitTable = std::array<std::uint8_t, 32>;

// `product`, at most 16 bits, rounded to 8 significant ones.
constexpr std::uint32_t to_eight_bits(std::uint32_t product) {
  std::uint32_t unit = 1;
  while (product / unit > 0xff) unit *= 2;
  const std::uint32_t down = product / unit;
  const std::uint32_t rest = product % unit;
  const bool up = 2 * rest > unit || (2 * rest == unit && down % 2 != 0);
  return (down + (up ? 1 : 0)) * unit;
}

// Of symmetric levels and scales that are BF16 numbers, by the sign and the seven bits after the
// leading one: all that rounded products depend on but for the exponent.
constexpr std::array<UnitTable, 256> make_bf16_tables() {
  std::array<UnitTable, 256> tables = {};
  for (std::uint32_t scale = 0; scale < tables.size(); ++scale) {
    const int sign = scale < 128 ? 1 : -1;
    for (int code = 0; code < 16; ++code) {
      const int level = code - 8;
      const auto magnitude = static_cast<std::uint32_t>(level < 0 ? -level : level);
      const auto rounded = static_cast<int>(to_eight_bits(magnitude * (128 + scale % 128)));
      const int value = (level < 0 ? -sign : sign) * rounded * (1 << (kUnitBits - 7));
      const auto index = static_cast<std::size_t>(code);
      tables[scale][index] = static_cast<std::uint8_t>(value & 0xff);
      tables[scale][16 + index] = static_cast<std::uint8_t>(value >> 8 & 0xff);
    }
  }
  return tables;
}

inline constexpr std::array<UnitTable, 256> kBf16Tables = make_bf16_tables();

}  // namespace gridscope::quant
