#pragma once

// A whole model in the shape of Gemma 4, a few kilobytes a tensor, and builds of it in the formats
// that grid checks are made for. It has all that is odd about Gemma 4: a layer with full attention
// whose values are its keys, layers that use the keys and values of an earlier one, a layer with
// experts beside its dense block, an input for each layer, a tied head. Every quantizable weight is
// integer levels of four bits times a scale for each group of 32, so that a build can keep them
// all.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/core/dtype.hpp"
#include "gridscope/quant/pack.hpp"
#include "support/checkpoints.hpp"

namespace gridscope::test {

// ---- as values ----------------------------------------------------------------------------------

struct TinyLinear {
  std::string name;  // "layers.0.self_attn.q_proj", "layers.2.experts.1.gate_proj"
  quant::LeveledWeight weight;
};

// What builds leave alone.
struct TinyTable {
  std::string name;  // as stored, but for the prefix: "layers.0.input_layernorm.weight"
  Shape shape;
  std::vector<double> values;
};

struct TinyGemma {
  std::vector<TinyLinear> linears;
  std::vector<TinyTable> tables;

  // Throw when there is none.
  [[nodiscard]] quant::LeveledWeight& linear(std::string_view name);
  [[nodiscard]] const quant::LeveledWeight& linear(std::string_view name) const;
  [[nodiscard]] TinyTable& table(std::string_view name);
};
[[nodiscard]] TinyGemma make_tiny_gemma(std::uint64_t seed = 1);

// (level - zero) * scale, row by row.
[[nodiscard]] std::vector<double> exact_values(const quant::LeveledWeight& weight);

// As AWQ would leave it: a factor for each column of the weights behind the norms of a layer goes
// into them and out of the norm, then every weight is rounded to the nearest of sixteen levels
// between the smallest and the largest of its group, with F16 scales and zero points.
[[nodiscard]] TinyGemma smoothed(const TinyGemma& model);

// Whether QAT exports leave it out: the layer uses the keys and values of an earlier one.
[[nodiscard]] bool is_shared_away(std::string_view name);

// ---- as files -----------------------------------------------------------------------------------

struct TinyTensor {
  std::string name;
  Dtype dtype = Dtype::kBF16;
  Shape shape;
  Bytes data;
};

// A checkpoint before it is written: a test may spoil it.
struct TinyFile {
  enum class Container : std::uint8_t { kSafetensors, kGguf };
  Container container = Container::kSafetensors;
  std::string config;
  std::vector<TinyTensor> tensors;

  [[nodiscard]] TinyTensor& at(std::string_view name);  // throws when there is none
  // Into a new directory. Returns how a user would name the checkpoint.
  [[nodiscard]] std::string write(const std::filesystem::path& directory) const;
};

// BF16, experts stacked: "experts.gate_up_proj" [experts, 2 inner, hidden].
[[nodiscard]] TinyFile tiny_source(const TinyGemma& model);
// pack-quantized, experts one by one, BF16 scales.
[[nodiscard]] TinyFile tiny_compressed_tensors(const TinyGemma& model);
// GEMM, F16 scales, named as a text-only model.
[[nodiscard]] TinyFile tiny_awq(const TinyGemma& model);
// F16 scales. Of the two versions the second stores zero points as they are.
enum class GptqVersion : std::uint8_t { kFirst, kSecond };
[[nodiscard]] TinyFile tiny_gptq(const TinyGemma& model, GptqVersion version);
// Q4_0 with norms as F32 and embeddings as F16; keeps shared keys and values.
[[nodiscard]] TinyFile tiny_gguf(const TinyGemma& model);
// Affine, experts stacked by projection, biases of -8 scales.
[[nodiscard]] TinyFile tiny_mlx(const TinyGemma& model);

}  // namespace gridscope::test
