#pragma once

// Tensors grouped into modules, each with the way its weight is stored. Detection goes by tensor
// suffixes, types and shapes; the configuration is asked only for what they leave open, and held
// against them.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/core/finding.hpp"
#include "gridscope/core/result.hpp"
#include "gridscope/format/tensor_table.hpp"
#include "gridscope/model/quantization.hpp"
#include "gridscope/quant/scheme.hpp"

namespace gridscope::model {

using quant::Scheme;
using quant::scheme_key;

// What one tensor is to its module.
enum class Storage : std::uint8_t {
  kWeight,  // plain, or the quantized values themselves where they are not packed
  kPackedWeight,
  kScale,
  kZeroPoint,
  kGroupIndex,
  kShape,
  kBias,
  kBuffer,  // everything else: activation scales, quantization tables, positions
};
[[nodiscard]] std::string_view storage_key(Storage storage);    // "packed_weights"
[[nodiscard]] std::string_view storage_title(Storage storage);  // "packed weights"

struct Module {
  std::string name;  // the common prefix: "model.layers.0.self_attn.q_proj"
  Scheme scheme = Scheme::kPlain;
  std::uint32_t bits = 0;              // of one stored code; 0 when plain
  std::int64_t group_size = 0;         // weights that share a scale; -1 a row, 0 not applicable
  std::uint64_t parameters = 0;        // logical: weights (and biases), never scales and their like
  std::vector<std::uint32_t> tensors;  // indexes into the table that was given
};

struct ModuleTable {
  std::vector<Module> modules;           // in order of first tensor
  std::vector<std::uint32_t> module_of;  // per tensor
  std::vector<Storage> storage_of;       // per tensor
  std::vector<std::uint64_t>
      parameters_of;  // per tensor: what it contributes to its module's count
  // COMPANION_MISSING, COMPANION_MISMATCH, and those of check_quantization.
  std::vector<Finding> findings;
};

// Whether the scheme stores anything else than the weights in a float type.
[[nodiscard]] bool is_quantized(Scheme scheme);

// `config` may be null. The tensors of all files together, in any order, each name once.
[[nodiscard]] ModuleTable detect_modules(std::span<const format::TensorInfo> tensors,
                                         const QuantizationConfig* config);

// "int4 g32 (I32 packed, BF16 scales)", "BF16", "Q4_0": how a module's weight is stored, for a
// person.
[[nodiscard]] std::string describe_storage(const Module& module,
                                           std::span<const format::TensorInfo> tensors);

}  // namespace gridscope::model
