#pragma once

// A build of 4-bit codes next to its BF16 source, in the forms that the fused and the plain
// functions take.

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "gridscope/core/endian.hpp"
#include "gridscope/quant/codec.hpp"
#include "gridscope/quant/error_sums.hpp"
#include "quant/grid_values.hpp"

namespace gridscope::test {

struct Int4Pair {
  std::uint64_t rows = 0;
  std::uint64_t group_size = 32;
  std::uint64_t groups = 0;                // of a row
  std::vector<std::uint8_t> codes = {};    // rows x groups x group_size
  std::vector<float> scales = {};          // rows x groups
  std::vector<std::int8_t> zeros = {};     // likewise, or empty
  std::vector<std::uint16_t> source = {};  // BF16, like codes

  [[nodiscard]] std::uint64_t columns() const { return groups * group_size; }

  [[nodiscard]] std::vector<std::byte> source_bytes() const {
    std::vector<std::byte> bytes(source.size() * 2);
    for (std::size_t i = 0; i < source.size(); ++i) {
      store_le(std::span(bytes).subspan(i * 2), source[i]);
    }
    return bytes;
  }

  // `gap`: unused bytes after each row.
  [[nodiscard]] quant::Int4Rows int4_rows(std::uint64_t gap = 0) const {
    quant::Int4Rows build{.first_row = 5,
                          .rows = rows,
                          .codes = {},
                          .row_bytes = columns() / 2 + gap,
                          .group_size = group_size,
                          .groups = groups,
                          .scales = scales,
                          .zeros = zeros,
                          .own = std::vector<std::byte>(rows * (columns() / 2 + gap))};
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const std::size_t column = i % columns();
      std::byte& pair = build.own[i / columns() * build.row_bytes + column / 2];
      pair |= static_cast<std::byte>(codes[i] << (column % 2 * 4));
    }
    build.codes = build.own;
    return build;
  }

  [[nodiscard]] quant::WeightLayout layout() const {
    return {.rows = rows,
            .columns = columns(),
            .groups = quant::GroupLayout::regular(columns(), group_size),
            .bits = 4,
            .lowest_level = -8,
            .highest_level = 7};
  }

  [[nodiscard]] quant::RowBlock row_block() const {
    quant::RowBlock block{.first_row = 5, .rows = rows, .columns = columns(), .stride = groups};
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const std::size_t group = i / group_size;
      const int level = codes[i] - 8;
      const int zero = zeros.empty() ? 0 : zeros[group];
      block.levels.push_back(static_cast<std::int16_t>(level));
      block.values.push_back((level - zero) * static_cast<double>(scales[group]));
    }
    block.scales.assign(scales.begin(), scales.end());
    block.zeros.assign(zeros.begin(), zeros.end());
    return block;
  }
};

enum class Build : std::uint8_t {
  kRepack,       // the levels of the source, its steps rounded to the type of the scales
  kStretched,    // the same with steps scaled up by up to 1/64 before
  kRequantized,  // groups of 32 of the source merged, levels found again
};

struct PairShape {
  std::uint64_t rows = 4;
  std::uint64_t columns = 256;
  std::uint64_t group_size = 32;  // of the build; that of the source is 32
  Build build = Build::kRepack;
  Dtype scale_dtype = Dtype::kBF16;
  bool zero_points = false;
};

// The step that a build takes for weights in range [low, high], and its zero point.
inline std::pair<float, std::int8_t> step_for(std::span<const float> values,
                                              const PairShape& shape) {
  const Extremes of = extremes_of(values);
  const double low = std::min(of.minimum, 0.0);
  const double high = std::max(of.maximum, 0.0);
  const double step = shape.zero_points ? (high - low) / 15 : std::fabs(of.largest) / 7.5;
  const auto stored = static_cast<float>(quant::rounded_to(shape.scale_dtype, step));
  if (!shape.zero_points || stored == 0.0F) return {stored, std::int8_t{0}};
  const double zero = std::nearbyint(-low / static_cast<double>(stored)) - 8;
  return {stored, static_cast<std::int8_t>(std::clamp(zero, -8.0, 7.0))};
}

// A source on a grid, and a build of it.
inline Int4Pair make_pair(const PairShape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> stretch(1.0, 1.0 + 1.0 / 64);
  Int4Pair pair{.rows = shape.rows,
                .group_size = shape.group_size,
                .groups = shape.columns / shape.group_size};
  std::vector<float> values;
  std::vector<std::int16_t> levels;
  std::vector<double> steps;
  for (std::uint64_t i = 0; i < shape.rows * shape.columns / 32; ++i) {
    const auto made = snap(gaussian(random, 32, 0.02), over_seven_and_a_half, Dtype::kF32);
    values.insert(values.end(), made.values.begin(), made.values.end());
    levels.insert(levels.end(), made.levels.begin(), made.levels.end());
    steps.push_back(made.step);
  }
  for (const float value : values) {
    pair.source.push_back(quant::to_bf16(static_cast<double>(value)));
  }
  for (std::size_t first = 0; first < values.size(); first += shape.group_size) {
    const auto group = std::span(values).subspan(first, shape.group_size);
    if (shape.build != Build::kRequantized) {
      const double factor = shape.build == Build::kStretched ? stretch(random) : 1.0;
      pair.scales.push_back(
          static_cast<float>(quant::rounded_to(shape.scale_dtype, steps[first / 32] * factor)));
      for (std::size_t i = first; i < first + shape.group_size; ++i) {
        pair.codes.push_back(static_cast<std::uint8_t>(levels[i] + 8));
      }
      continue;
    }
    const auto [step, zero] = step_for(group, shape);
    pair.scales.push_back(step);
    if (shape.zero_points) pair.zeros.push_back(zero);
    for (const float value : group) {
      const float level = std::nearbyint(value / step) + static_cast<float>(zero);
      pair.codes.push_back(static_cast<std::uint8_t>(std::clamp(level, -8.0F, 7.0F) + 8));
    }
  }
  return pair;
}

}  // namespace gridscope::test
