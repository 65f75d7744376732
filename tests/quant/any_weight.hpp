#pragma once

// Weights of any levels, for properties: what is packed decodes to the same.

#include <rapidcheck.h>

#include <cstdint>
#include <vector>

#include "gridscope/quant/pack.hpp"

namespace gridscope::quant {

struct WeightShape {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint32_t bits = 4;
  std::uint64_t group_size = 32;
};

enum class Zeros : std::uint8_t { kNone, kAny };

// Scales are multiples of 1/64 up to 2, both signs: exact in every float type, products with codes
// of four bits too.
inline LeveledWeight any_weight(const WeightShape& shape, Zeros zeros) {
  const int middle = 1 << (shape.bits - 1);
  const std::uint64_t terms = shape.rows * (shape.columns / shape.group_size);
  const auto level = rc::gen::inRange<std::int16_t>(static_cast<std::int16_t>(-middle),
                                                    static_cast<std::int16_t>(middle));
  LeveledWeight weight = {.rows = shape.rows,
                          .columns = shape.columns,
                          .bits = shape.bits,
                          .group_size = shape.group_size};
  weight.levels = *rc::gen::container<std::vector<std::int16_t>>(shape.rows * shape.columns, level);
  for (std::uint64_t i = 0; i < terms; ++i) {
    weight.scales.push_back(*rc::gen::inRange(-128, 128) / 64.0);
  }
  if (zeros == Zeros::kAny) {
    weight.zeros = *rc::gen::container<std::vector<std::int16_t>>(terms, level);
  }
  return weight;
}

// The same with the columns of all groups mixed.
inline LeveledWeight any_mapped_weight(const WeightShape& shape, Zeros zeros) {
  LeveledWeight weight = any_weight(shape, zeros);
  const auto groups = static_cast<std::uint32_t>(shape.columns / shape.group_size);
  weight.group_of_column = *rc::gen::container<std::vector<std::uint32_t>>(
      shape.columns, rc::gen::inRange<std::uint32_t>(0, groups));
  return weight;
}

}  // namespace gridscope::quant
