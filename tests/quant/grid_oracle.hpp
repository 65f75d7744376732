#pragma once

// The definition of a grid, decided without any cleverness: every step at which anything can change
// is tried, in integers, and at each of them every level for every weight.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <span>
#include <vector>

#include "gridscope/quant/codec.hpp"
#include "gridscope/quant/grid.hpp"

namespace gridscope::test {

// A step as a fraction of positive integers, none above 2^31 for weights below 2^9.
struct Fraction {
  std::int64_t over = 0;
  std::int64_t under = 1;
};

inline bool is_less(const Fraction& a, const Fraction& b) {
  return a.over * b.under < b.over * a.under;
}

// All reals that round to one BF16 magnitude, in units of 2^-12: exact for numbers from 2^-2 on.
struct RoundingSet {
  std::int64_t low = 0;
  std::int64_t high = 0;
  bool closed = false;

  explicit RoundingSet(std::uint16_t code) : closed(code % 2 == 0) {
    const auto units = [](std::uint16_t bf16) {
      return static_cast<std::int64_t>(quant::bf16_value(bf16) * 4096);
    };
    const auto before = static_cast<std::uint16_t>(code - 1);
    const auto after = static_cast<std::uint16_t>(code + 1);
    low = (units(before) + units(code)) / 2;
    high = (units(code) + units(after)) / 2;
  }

  [[nodiscard]] bool holds(int level, const Fraction& step) const {
    const Fraction value{.over = step.over * level, .under = step.under};
    const Fraction first{.over = low};
    const Fraction last{.over = high};
    if (closed) return !is_less(value, first) && !is_less(last, value);
    return is_less(first, value) && is_less(value, last);
  }
};

struct OracleWeight {
  RoundingSet set;
  bool negative;
};

// Every end of R(v) / q, and a step between each two.
inline std::vector<Fraction> steps_to_try(std::span<const OracleWeight> weights, int most) {
  std::vector<Fraction> ends;
  for (const OracleWeight& weight : weights) {
    for (int level = 1; level <= most; ++level) {
      ends.push_back({.over = weight.set.low, .under = level});
      ends.push_back({.over = weight.set.high, .under = level});
    }
  }
  std::sort(ends.begin(), ends.end(), is_less);
  std::vector<Fraction> steps = ends;
  for (std::size_t i = 1; i < ends.size(); ++i) {
    const Fraction& a = ends[i - 1];
    const Fraction& b = ends[i];
    steps.push_back({.over = a.over * b.under + b.over * a.under, .under = 2 * a.under * b.under});
  }
  return steps;
}

// The level that a weight must have at that step, or 0 when there is none.
inline int level_at(const OracleWeight& weight, const Fraction& step, bool negative_step,
                    quant::LevelRange range) {
  const bool negative = weight.negative != negative_step;
  const int most = negative ? -range.lowest : range.highest;
  for (int level = 1; level <= most; ++level) {
    if (weight.set.holds(level, step)) return negative ? -level : level;
  }
  return 0;
}

// The levels of the weights that are not zero, for each |level| that the largest weight can have;
// positive steps win over negative ones. Requires: at least one such weight, all from 2^-2 on.
inline std::map<int, std::vector<int>> all_grids(std::span<const float> values,
                                                 quant::LevelRange range) {
  std::vector<OracleWeight> weights;
  std::size_t top = 0;
  float largest = 0.0F;
  for (const float value : values) {
    if (value == 0.0F) continue;
    const std::uint16_t code = quant::to_bf16(static_cast<double>(value)) & 0x7fffU;
    if (std::abs(value) > largest) {
      largest = std::abs(value);
      top = weights.size();
    }
    weights.push_back({.set = RoundingSet(code), .negative = value < 0});
  }
  std::map<int, std::vector<int>> grids;
  const int most = std::max(-range.lowest, range.highest);
  for (const bool negative_step : {false, true}) {
    for (const Fraction& step : steps_to_try(weights, most)) {
      std::vector<int> levels;
      for (const OracleWeight& weight : weights) {
        levels.push_back(level_at(weight, step, negative_step, range));
      }
      if (std::ranges::find(levels, 0) == levels.end()) {
        grids.emplace(std::abs(levels[top]), levels);
      }
    }
  }
  return grids;
}

}  // namespace gridscope::test
