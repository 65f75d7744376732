#pragma once

// One small matrix that every integer format can hold, for the claim that all encodings of it mean
// the same weights: level L[n][k] = (5n + 3k) mod 16 - 8, scale RNE_bf16(0.01 (n + 1)).

#include <cstdint>
#include <vector>

#include "gridscope/core/endian.hpp"
#include "gridscope/quant/codec.hpp"
#include "gridscope/quant/pack.hpp"
#include "support/matchers.hpp"

namespace gridscope::quant {

inline LeveledWeight cross_weight() {
  LeveledWeight weight = {.rows = 8, .columns = 32, .bits = 4, .group_size = 32};
  for (int n = 0; n < 8; ++n) {
    for (int k = 0; k < 32; ++k) {
      weight.levels.push_back(static_cast<std::int16_t>((5 * n + 3 * k) % 16 - 8));
    }
    weight.scales.push_back(rounded_to(Dtype::kBF16, 0.01 * (n + 1)));
  }
  return weight;
}

// The same with zero point n + 3 (unsigned) in row n.
inline LeveledWeight asymmetric_cross_weight() {
  LeveledWeight weight = cross_weight();
  for (int n = 0; n < 8; ++n) weight.zeros.push_back(static_cast<std::int16_t>(n + 3 - 8));
  return weight;
}

// (level - zero) * scale, row by row.
inline std::vector<double> weights_of(const LeveledWeight& weight) {
  std::vector<double> values;
  const std::uint64_t groups = weight.columns / weight.group_size;
  for (std::uint64_t i = 0; i < weight.levels.size(); ++i) {
    const std::uint64_t column = i % weight.columns;
    const std::uint64_t group = weight.group_of_column.empty() ? column / weight.group_size
                                                               : weight.group_of_column[column];
    const std::uint64_t term = i / weight.columns * groups + group;
    const int zero = weight.zeros.empty() ? 0 : weight.zeros[term];
    values.push_back((weight.levels[i] - zero) * weight.scales[term]);
  }
  return values;
}

// What pack() makes of it.
inline WeightSpec packed(const LeveledWeight& weight, const WeightSpec& like) {
  auto spec = pack(weight, like);
  EXPECT_THAT(spec, test::IsOk());
  return spec ? *std::move(spec) : WeightSpec{};
}

// The stored bytes as 32-bit words.
inline std::vector<std::uint32_t> words_of(const StoredTensor& tensor) {
  std::vector<std::uint32_t> words;
  for (std::size_t i = 0; i + 4 <= tensor.data.size(); i += 4) {
    words.push_back(load_le<std::uint32_t>(std::span(tensor.data).subspan(i)));
  }
  return words;
}

template <typename Stored>
StoredTensor tensor_of(Dtype dtype, std::vector<std::uint64_t> shape,
                       const std::vector<Stored>& values) {
  StoredTensor tensor = {.dtype = dtype, .shape = std::move(shape)};
  tensor.data.resize(values.size() * sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    store_le(std::span(tensor.data).subspan(i * sizeof(Stored)), values[i]);
  }
  return tensor;
}

inline StoredTensor floats_of(Dtype dtype, std::vector<std::uint64_t> shape,
                              const std::vector<double>& values) {
  StoredTensor tensor = {.dtype = dtype, .shape = std::move(shape)};
  tensor.data.resize(values.size() * dtype_info(dtype).block_bits / 8);
  store_numbers(dtype, values, tensor.data);
  return tensor;
}

}  // namespace gridscope::quant
