#include "gridscope/quant/grid.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "gridscope/quant/codec.hpp"

// A stored weight v stands for all reals that round to it: the interval R(v) from the midpoint with
// the number before it to the midpoint with the number after it, ends included when the last bit of
// v is even. If v has level q, the step lies in R(v) / q. So: assume a level K for the largest
// weight, which fixes every other level by rounding v * K / max, and intersect R(v) / q over the
// group. K is feasible exactly when something is left.
//
// Rounding finds the right level, because max / K is off from the true step by at most half a unit
// of 8 significant bits, and so is v: together q * (2^-8 + 2^-8), 1/16 of a level at q = 8.
//
// Ends of intervals are fractions a / q of a number of at most 25 significant bits and a level of
// at most 5; a / q < b / p is decided as a * p < b * q, whose sides are exact in double.

namespace gridscope::quant {
namespace {

// How a type spaces its numbers.
struct Spacing {
  int significant_bits;
  int min_exponent;  // of the smallest normal number
};

Spacing spacing_of(Dtype dtype) {
  if (dtype == Dtype::kBF16) return {.significant_bits = 8, .min_exponent = -126};
  if (dtype == Dtype::kF16) return {.significant_bits = 11, .min_exponent = -14};
  return {.significant_bits = 24, .min_exponent = -126};
}

// at / level, an end of an interval of steps.
struct End {
  double at = 0.0;
  int level = 1;
  bool included = true;

  [[nodiscard]] double value() const { return at / level; }
};

bool is_less(const End& a, const End& b) {
  return a.at * b.level < b.at * a.level;
}

struct Interval {
  End low = {.at = 0.0};
  End high = {.at = std::numeric_limits<double>::infinity()};

  [[nodiscard]] bool is_empty() const {
    if (is_less(low, high)) return false;
    return is_less(high, low) || !low.included || !high.included;
  }

  void intersect(const Interval& other) {
    if (is_less(low, other.low)) {
      low = other.low;
    } else if (!is_less(other.low, low)) {
      low.included = low.included && other.low.included;
    }
    if (is_less(other.high, high)) {
      high = other.high;
    } else if (!is_less(high, other.high)) {
      high.included = high.included && other.high.included;
    }
  }
};

// R(magnitude) / level. Requires: magnitude > 0, a number of the type.
Interval steps_of(double magnitude, int level, const Spacing& spacing) {
  const int exponent = std::max(std::ilogb(magnitude), spacing.min_exponent);
  const double unit = std::ldexp(1.0, exponent - spacing.significant_bits + 1);
  const double units = magnitude / unit;
  // Below a power of two numbers lie twice as close, unless it is the smallest normal one.
  const bool is_power = units == std::ldexp(1.0, spacing.significant_bits - 1);
  const double below = is_power && exponent > spacing.min_exponent ? unit / 4 : unit / 2;
  const bool even = std::fmod(units, 2.0) == 0.0;
  return {.low = {.at = magnitude - below, .level = level, .included = even},
          .high = {.at = magnitude + unit / 2, .level = level, .included = even}};
}

// What is left of the steps when the largest magnitude has level `top`.
struct Candidate {
  int top = 0;
  Interval steps = {};
  bool positive = true;          // the levels are in range with a positive step
  bool negative = true;          // and with a negative one
  std::uint32_t magnitudes = 0;  // bit q: a weight has level q or -q

  [[nodiscard]] bool is_feasible() const { return (positive || negative) && !steps.is_empty(); }
};

// Requires: largest > 0.
int level_of(float value, double largest, int top) {
  return static_cast<int>(std::lround(std::fabs(static_cast<double>(value)) * top / largest));
}

bool in_range(int level, LevelRange range) {
  return range.lowest <= level && level <= range.highest;
}

Candidate try_top(std::span<const float> values, double largest, int top, LevelRange range,
                  const Spacing& spacing) {
  Candidate candidate{.top = top};
  for (const float value : values) {
    if (value == 0.0F) continue;
    const int magnitude = level_of(value, largest, top);
    if (magnitude == 0) return {.top = top, .positive = false, .negative = false};
    const int level = value < 0 ? -magnitude : magnitude;
    candidate.positive = candidate.positive && in_range(level, range);
    candidate.negative = candidate.negative && in_range(-level, range);
    candidate.magnitudes |= 1U << static_cast<unsigned>(magnitude);
    candidate.steps.intersect(steps_of(std::fabs(static_cast<double>(value)), magnitude, spacing));
    if (!candidate.is_feasible()) break;
  }
  return candidate;
}

GridFit describe(const Candidate& found, std::uint32_t feasible, bool top_is_negative) {
  constexpr int kEnoughMagnitudes = 3;
  const double sign = found.positive ? 1.0 : -1.0;
  const double low = found.steps.low.value();
  const double high = found.steps.high.value();
  const bool clear =
      std::popcount(found.magnitudes) >= kEnoughMagnitudes && std::popcount(feasible) == 1;
  return {.verdict = clear ? GridClass::kOnGrid : GridClass::kAmbiguous,
          .step = sign * (low + (high - low) / 2),
          .step_low = low,
          .step_high = high,
          .low_is_feasible = found.steps.low.included,
          .high_is_feasible = found.steps.high.included,
          .top_level = found.positive != top_is_negative ? found.top : -found.top,
          .feasible = feasible};
}

float largest_of(std::span<const float> values) {
  const auto largest =
      std::ranges::max_element(values, {}, [](float value) { return std::fabs(value); });
  return largest == values.end() ? 0.0F : *largest;
}

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

struct CodeRange {
  std::uint32_t (*code)(double);
  double (*value)(std::uint32_t);
};

// Positive numbers of a type as codes in the order of their values.
CodeRange codes_of(Dtype dtype) {
  if (dtype == Dtype::kBF16) {
    return {
        .code = [](double value) -> std::uint32_t { return to_bf16(value); },
        .value = [](std::uint32_t code) { return bf16_value(static_cast<std::uint16_t>(code)); }};
  }
  if (dtype == Dtype::kF16) {
    return {
        .code = [](double value) -> std::uint32_t { return to_f16(value); },
        .value = [](std::uint32_t code) { return f16_value(static_cast<std::uint16_t>(code)); }};
  }
  return {
      .code = [](double value) { return std::bit_cast<std::uint32_t>(static_cast<float>(value)); },
      .value = [](std::uint32_t code) { return static_cast<double>(std::bit_cast<float>(code)); }};
}

int repack_level(float value, float step) {
  return static_cast<int>(std::clamp(std::nearbyint(value / step), -8.0F, 7.0F));
}

bool repack_errors_are_within(std::span<const float> values, float step, float tolerance) {
  return std::ranges::all_of(values, [&](float value) {
    const auto nearest = static_cast<float>(repack_level(value, step)) * step;
    return std::fabs(value - nearest) <= tolerance;
  });
}

double least_squares_step(std::span<const float> values, float step) {
  double products = 0.0;
  double squares = 0.0;
  for (const float value : values) {
    const double level = repack_level(value, step);
    products += level * static_cast<double>(value);
    squares += level * level;
  }
  return products / squares;
}

}  // namespace

GridFit fit_grid(std::span<const float> values, Dtype dtype, LevelRange range,
                 std::span<std::int16_t> levels) {
  if (!all_finite(values)) return {.verdict = GridClass::kNonFinite};
  const float top_value = largest_of(values);
  if (top_value == 0.0F) return {.verdict = GridClass::kDead};
  const double largest = std::fabs(static_cast<double>(top_value));
  const Spacing spacing = spacing_of(dtype);
  std::uint32_t feasible = 0;
  Candidate found;
  for (int top = 1; top <= std::max(-range.lowest, range.highest); ++top) {
    const Candidate candidate = try_top(values, largest, top, range, spacing);
    if (!candidate.is_feasible()) continue;
    feasible |= 1U << static_cast<unsigned>(top);
    found = candidate;
  }
  if (feasible == 0) return {.verdict = GridClass::kOffGrid};
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const int magnitude = level_of(values[i], largest, found.top);
    levels[i] =
        static_cast<std::int16_t>((values[i] < 0) == found.positive ? -magnitude : magnitude);
  }
  return describe(found, feasible, top_value < 0);
}

bool allows_step(const GridFit& fit, double magnitude) {
  const bool above = fit.low_is_feasible ? magnitude >= fit.step_low : magnitude > fit.step_low;
  return above && (fit.high_is_feasible ? magnitude <= fit.step_high : magnitude < fit.step_high);
}

std::uint32_t step_candidates(const GridFit& fit, Dtype dtype, std::uint32_t limit) {
  const CodeRange codes = codes_of(dtype);
  // Rounding may have gone below the interval, or onto an end that does not belong to it.
  std::uint32_t code = codes.code(fit.step_low);
  while (codes.value(code) <= fit.step_low && !allows_step(fit, codes.value(code))) ++code;
  std::uint32_t count = 0;
  while (count < limit && allows_step(fit, codes.value(code))) {
    ++count;
    ++code;
  }
  return count;
}

std::vector<std::uint64_t> usual_group_sizes(std::uint64_t columns) {
  std::vector<std::uint64_t> sizes = {columns};
  for (const std::uint64_t size : std::to_array<std::uint64_t>({512, 256, 128, 64, 32, 16})) {
    if (size < columns && columns % size == 0) sizes.push_back(size);
  }
  return sizes;
}

RepackFit fit_repack_rule(std::span<const float> values, std::span<std::int16_t> levels) {
  constexpr int kMostLevels = 8;
  if (!all_finite(values)) return {};
  const float largest = std::fabs(largest_of(values));
  if (largest == 0.0F) {
    std::ranges::fill(levels, std::int16_t{0});
    return {.m = 1};
  }
  for (int m = 1; m <= kMostLevels; ++m) {
    const float step = largest / static_cast<float>(m);
    if (!repack_errors_are_within(values, step, largest / 128)) continue;
    for (std::size_t i = 0; i < levels.size(); ++i) {
      levels[i] = static_cast<std::int16_t>(repack_level(values[i], step));
    }
    return {.m = m, .step = static_cast<double>(step), .refined = least_squares_step(values, step)};
  }
  return {};
}

}  // namespace gridscope::quant
