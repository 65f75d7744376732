#pragma once

// Weights on a grid, made as training with quantization would leave them.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "gridscope/quant/codec.hpp"

namespace gridscope::test {

inline float to_bf16_number(double value) {
  return static_cast<float>(quant::bf16_value(quant::to_bf16(value)));
}

inline std::vector<float> gaussian(std::mt19937& random, std::size_t size, double deviation) {
  std::normal_distribution<double> normal(0.0, deviation);
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(normal(random));
  return values;
}

// How a step is chosen from the weights: their extremes, the one of larger magnitude first.
struct Extremes {
  double largest = 0.0;  // with its sign
  double maximum = 0.0;
  double minimum = 0.0;
};

inline Extremes extremes_of(std::span<const float> values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const auto minimum = static_cast<double>(*low);
  const auto maximum = static_cast<double>(*high);
  return {
      .largest = -minimum > maximum ? minimum : maximum, .maximum = maximum, .minimum = minimum};
}

using StepRule = std::function<double(const Extremes&)>;

inline double over_minus_eight(const Extremes& of) {
  return of.largest / -8;
}
inline double over_seven(const Extremes& of) {
  return std::fabs(of.largest) / 7;
}
inline double over_seven_and_a_half(const Extremes& of) {
  return std::fabs(of.largest) / 7.5;
}
inline double both_sides(const Extremes& of) {
  return std::max(of.maximum / 7, of.minimum / -8);
}

struct Snapped {
  std::vector<float> values = {};  // BF16 numbers
  std::vector<std::int16_t> levels = {};
  double step = 0.0;
};

// Rounds weights to the grid whose step is what the rule says, as a number of `scale_dtype`.
inline Snapped snap(std::span<const float> values, const StepRule& rule, Dtype scale_dtype) {
  Snapped snapped{.step = quant::rounded_to(scale_dtype, rule(extremes_of(values)))};
  for (const float value : values) {
    const double level =
        std::clamp(std::nearbyint(static_cast<double>(value) / snapped.step), -8.0, 7.0);
    snapped.levels.push_back(static_cast<std::int16_t>(level));
    snapped.values.push_back(to_bf16_number(level * snapped.step));
  }
  return snapped;
}

}  // namespace gridscope::test
