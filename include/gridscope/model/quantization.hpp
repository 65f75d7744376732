#pragma once

// What the configuration claims about quantization. The tensors have the last word; see
// modules.hpp.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/core/json.hpp"
#include "gridscope/core/result.hpp"

namespace gridscope::model {

struct QuantizationConfig {
  // One group of a compressed-tensors config, or the whole of any other.
  struct Scheme {
    std::vector<std::string> targets;  // module names, class names or "re:" patterns
    std::string format;
    std::optional<std::uint32_t> bits;
    std::optional<std::int64_t> group_size;  // -1: a whole row
    std::optional<bool> symmetric;
    std::array<std::uint64_t, 2> block = {0, 0};  // rows, columns that share a scale
    bool divides_by_scale = false;
    std::optional<bool> act_order = {};  // GPTQ's desc_act: groups are not of neighbours
  };

  std::string method;  // as written, lower case: "compressed-tensors", "awq", "gptq", "mlx", ...
  std::string format;  // "pack-quantized", "gemm", "gptq_v2", "nf4", ...
  std::string version = {};           // of the library that wrote a compressed-tensors checkpoint
  std::optional<std::uint32_t> bits;  // when all schemes agree
  std::optional<std::int64_t> group_size;  // likewise
  std::optional<bool> symmetric;
  std::string
      config_source;  // file and key: "config.json quantization_config", "quantize_config.json"
  std::vector<Scheme> schemes;
  std::vector<std::string>
      ignore;  // modules left unquantized, as patterns of the method's own kind
};

// Side files that may hold the quantization config, in order of precedence after config.json.
[[nodiscard]] std::vector<std::string_view> quantization_side_files();

// Reads the claim from a config.json root: quantization_config, text_config.quantization_config,
// compression_config, quantization (MLX), in this order. Empty when there is none; a config without
// a method is returned with method "" (it counts only when tensors confirm it).
[[nodiscard]] std::optional<QuantizationConfig> quantization_from_config(const JsonValue& root);

// The same from one of the side files.
[[nodiscard]] std::optional<QuantizationConfig> quantization_from_side_file(std::string_view file,
                                                                            const JsonValue& root);

// Whether a compressed-tensors, AWQ, GPTQ, ... ignore list leaves `module` unquantized, by the
// rules of the method ("re:" regular expressions, substrings, globs). Names are compared in
// canonical form.
[[nodiscard]] bool is_ignored(const QuantizationConfig& config, std::string_view module);

}  // namespace gridscope::model
