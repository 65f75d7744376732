#pragma once

// Which sets of levels leave one grid only.
//
// Weights round(q * s) with levels q lie within 2^-8 of q * s, so the ratio of two of them is that
// of their levels but for a factor of less than 1.016. On another grid, which gives the largest
// weight level K instead of T, one with level q would need a whole level within that factor of
// q * K / T. A set of levels in which one q has none within 1.02 rules K out, whatever the step.

#include <array>
#include <bit>
#include <cstdint>

namespace gridscope::quant {

// `magnitudes` has bit q - 1 for level q or -q; `top` is the largest.
constexpr bool rules_out(unsigned magnitudes, int top, int other) {
  constexpr double kRoom = 0.02;
  for (int level = 1; level <= top; ++level) {
    if ((magnitudes >> static_cast<unsigned>(level - 1) & 1U) == 0) continue;
    const double position = static_cast<double>(level) * other / top;
    const int below = static_cast<int>(position);
    const double from_below = below == 0 ? 1.0 : position - below;
    const double from_above = below + 1 - position;
    if (from_below > kRoom * position && from_above > kRoom * position) return true;
  }
  return false;
}

// Whether every other grid with levels in [-8, 7] is ruled out, and there are enough magnitudes for
// GridClass::kOnGrid.
constexpr bool are_certain(unsigned magnitudes) {
  constexpr int kEnough = 3;
  constexpr int kTop = 8;
  if (std::popcount(magnitudes) < kEnough) return false;
  const int top = static_cast<int>(std::bit_width(magnitudes));
  for (int other = 1; other <= kTop; ++other) {
    if (other != top && !rules_out(magnitudes, top, other)) return false;
  }
  return true;
}

constexpr std::array<bool, 256> list_certain_levels() {
  std::array<bool, 256> certain = {};
  for (unsigned magnitudes = 0; magnitudes < certain.size(); ++magnitudes) {
    certain[magnitudes] = are_certain(magnitudes);
  }
  return certain;
}

inline constexpr std::array<bool, 256> kCertainLevels = list_certain_levels();

// The same, a bit each.
constexpr std::array<std::uint32_t, 8> list_certain_bits() {
  std::array<std::uint32_t, 8> bits = {};
  for (unsigned magnitudes = 0; magnitudes < kCertainLevels.size(); ++magnitudes) {
    bits[magnitudes / 32] |= (kCertainLevels[magnitudes] ? 1U : 0U) << magnitudes % 32;
  }
  return bits;
}

inline constexpr std::array<std::uint32_t, 8> kCertainBits = list_certain_bits();

}  // namespace gridscope::quant
