#pragma once

// Builds that kept the levels of their source, or nearly.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "gridscope/quant/codec.hpp"
#include "quant/int4_pair.hpp"
#include "quant/kernels/int4_units.hpp"

namespace gridscope::test {

// The levels of 32 weights: so many different ones, in any order.
inline std::array<std::uint8_t, quant::kPartWeights> any_codes(std::mt19937& random,
                                                               std::size_t different) {
  std::array<std::uint8_t, 16> all = {};
  std::iota(all.begin(), all.end(), std::uint8_t{0});
  std::ranges::shuffle(all, random);
  std::array<std::uint8_t, quant::kPartWeights> codes = {};
  for (std::size_t i = 0; i < codes.size(); ++i) codes.at(i) = all.at(i % different);
  std::ranges::shuffle(codes, random);
  return codes;
}

inline std::span<std::uint8_t> codes_of(Int4Pair& pair, std::size_t group) {
  return std::span(pair.codes).subspan(group * pair.group_size, pair.group_size);
}

inline std::span<std::uint16_t> weights_of(Int4Pair& pair, std::size_t group) {
  return std::span(pair.source).subspan(group * pair.group_size, pair.group_size);
}

// The numbers that a step gives to the levels of a group; level 0 is -0 at every other place.
inline void store_weights(Int4Pair& pair, std::size_t group, double step) {
  for (std::size_t i = group * pair.group_size; i < (group + 1) * pair.group_size; ++i) {
    const int level = pair.codes[i] - 8;
    pair.source[i] = level == 0 && i % 2 != 0 ? 0x8000 : quant::to_bf16(level * step);
  }
}

// A group of all scales and steps, with levels of three kinds or more.
inline Int4Pair pair_of(std::uint64_t rows, std::uint64_t group_size, std::span<const float> scales,
                        std::span<const double> steps, std::mt19937& random) {
  Int4Pair pair{.rows = rows,
                .group_size = group_size,
                .groups = scales.size() / rows,
                .scales = {scales.begin(), scales.end()}};
  for (std::size_t part = 0; part < scales.size() * group_size / quant::kPartWeights; ++part) {
    const auto codes = any_codes(random, 3 + random() % 14);
    pair.codes.insert(pair.codes.end(), codes.begin(), codes.end());
  }
  pair.source.resize(pair.codes.size());
  for (std::size_t g = 0; g < steps.size(); ++g) store_weights(pair, g, steps[g]);
  return pair;
}

// So many exponents.
inline float any_bf16_scale(std::mt19937& random, unsigned exponents) {
  const auto bits = static_cast<std::uint16_t>(random() % 2 << 15U |
                                               (110 + random() % exponents) << 7U | random() % 128);
  return static_cast<float>(quant::bf16_value(bits));
}

// Levels are kept where steps lie so near to the scale.
inline constexpr double kReach = 1.0 / 256;

inline double any_step(float scale, std::mt19937& random) {
  return static_cast<double>(scale) *
         std::uniform_real_distribution<double>(1 - kReach, 1 + kReach)(random);
}

// Scales of a few powers of two, or of so many that sums over a row are not exact.
inline Int4Pair any_kept_pair(std::uint64_t rows, std::uint64_t groups, std::uint64_t group_size,
                              std::mt19937& random) {
  const auto exponents = static_cast<unsigned>(random() % 4 == 0 ? 16 : 1 + random() % 5);
  std::vector<float> scales;
  std::vector<double> steps;
  for (std::uint64_t g = 0; g < rows * groups; ++g) {
    scales.push_back(any_bf16_scale(random, exponents));
    steps.push_back(any_step(scales.back(), random));
  }
  return pair_of(rows, group_size, scales, steps, random);
}

// Where a level goes on to its next number, and just beside that; and others, up to a number.
inline std::vector<double> steps_beside(double scale, std::mt19937& random) {
  constexpr std::size_t kCount = 32;
  const double power = std::ldexp(1.0, std::ilogb(scale));
  std::vector<double> steps = {scale, scale * (1 - kReach), scale * (1 + kReach), power, 2 * power};
  for (const int level : {1, 3, 5, 7}) {
    const std::uint16_t product = quant::to_bf16(level * scale);
    for (const int next : {-1, 1}) {
      const double middle = (quant::bf16_value(product) +
                             quant::bf16_value(static_cast<std::uint16_t>(product + next))) /
                            2;
      for (const double beside : {-0x1p-30, 0.0, 0x1p-30}) {
        steps.push_back(middle / level * (1 + beside));
      }
    }
  }
  std::erase_if(steps, [&](double step) { return std::fabs(step - scale) > scale * kReach; });
  while (steps.size() < kCount) steps.push_back(any_step(static_cast<float>(scale), random));
  return steps;
}

// Puts all weights of a level and its opposite so many numbers further.
inline void move_level(Int4Pair& pair, std::size_t group, int level, int numbers) {
  for (std::size_t i = group * quant::kPartWeights; i < (group + 1) * quant::kPartWeights; ++i) {
    if (std::abs(pair.codes[i] - 8) != level) continue;
    pair.source[i] = static_cast<std::uint16_t>(pair.source[i] + numbers);
  }
}

}  // namespace gridscope::test
