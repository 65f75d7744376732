#pragma once

// A source of BF16 weights on an exact grid, and a 4-bit build of it, as directories: one
// projection, one norm.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "gridscope/core/endian.hpp"
#include "gridscope/quant/codec.hpp"
#include "gridscope/quant/weight_spec.hpp"
#include "support/checkpoints.hpp"

namespace gridscope::test {

inline constexpr std::uint64_t kGridRows = 64;
inline constexpr std::uint64_t kGridColumns = 64;

// Levels -8 to 7 in every group of 32, in an order that differs from row to row.
inline int grid_level(std::uint64_t row, std::uint64_t column) {
  return static_cast<int>((5 * row + 3 * column) % 16) - 8;
}
inline double grid_scale(std::uint64_t row) {
  return quant::bf16_value(quant::to_bf16(0.01 * static_cast<double>(row % 8 + 1)));
}

inline Bytes bf16_bytes(const std::vector<double>& values) {
  Bytes bytes(values.size() * 2);
  quant::store_numbers(Dtype::kBF16, values, bytes);
  return bytes;
}

inline Bytes grid_source_bytes() {
  std::vector<double> values;
  for (std::uint64_t row = 0; row < kGridRows; ++row) {
    for (std::uint64_t column = 0; column < kGridColumns; ++column) {
      values.push_back(grid_level(row, column) * grid_scale(row));
    }
  }
  return bf16_bytes(values);
}

// Eight codes a word, the first in the lowest bits. One of the levels is raised by `raise`.
inline Bytes grid_codes(int raise) {
  Bytes bytes(kGridRows * kGridColumns / 2);
  for (std::uint64_t i = 0; i < kGridRows * kGridColumns; ++i) {
    int code = grid_level(i / kGridColumns, i % kGridColumns) + 8;
    if (i == 100) code += raise;
    bytes[i / 2] |= static_cast<std::byte>(code << (4 * (i % 2)));
  }
  return bytes;
}

inline constexpr const char* kProjection = "model.layers.0.self_attn.q_proj";
inline constexpr const char* kNorm = "model.layers.0.input_layernorm.weight";

inline SafetensorsBuilder with_norm(SafetensorsBuilder builder) {
  return builder.tensor(kNorm, Dtype::kBF16, {kGridColumns},
                        bf16_bytes(std::vector<double>(kGridColumns, 1.5)));
}

inline void write_grid_source(const std::filesystem::path& directory) {
  SafetensorsBuilder builder;
  builder.tensor(std::string(kProjection) + ".weight", Dtype::kBF16, {kGridRows, kGridColumns},
                 grid_source_bytes());
  write_checkpoint(directory, {.config = R"({"model_type": "gemma4_text"})",
                               .shards = {{"model.safetensors", with_norm(builder)}}});
}

// compressed-tensors, the source's own levels and scales; with `raise` one weight is moved.
inline void write_grid_build(const std::filesystem::path& directory, int raise = 0) {
  std::vector<double> scales;
  for (std::uint64_t i = 0; i < kGridRows * 2; ++i) scales.push_back(grid_scale(i / 2));
  Bytes shape(16);
  store_le<std::uint64_t>(std::span(shape).first(8), kGridRows);
  store_le<std::uint64_t>(std::span(shape).last(8), kGridColumns);
  const std::string name = kProjection;
  SafetensorsBuilder builder;
  builder.tensor(name + ".weight_packed", Dtype::kI32, {kGridRows, kGridColumns / 8},
                 grid_codes(raise));
  builder.tensor(name + ".weight_scale", Dtype::kBF16, {kGridRows, 2}, bf16_bytes(scales));
  builder.tensor(name + ".weight_shape", Dtype::kI64, {2}, shape);
  write_checkpoint(directory, {.config = R"({"model_type": "gemma4_text", "quantization_config":
      {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0":
       {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "symmetric": true,
        "group_size": 32, "strategy": "group"}}}}})",
                               .shards = {{"model.safetensors", with_norm(builder)}}});
}

}  // namespace gridscope::test
