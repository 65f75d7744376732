#pragma once

// What config.json (or a GGUF header) says about a model, in one shape.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/core/json.hpp"
#include "gridscope/core/result.hpp"
#include "gridscope/format/tensor_table.hpp"

namespace gridscope::model {

struct ModelConfig {
  std::string source;  // "config.json", "params.json", "GGUF metadata"; empty when there is none
  std::string model_type;
  std::vector<std::string> architectures;
  // Empty when nobody says. Looked up in text_config, then at the top; Gemma models tie by default.
  std::optional<bool> tie_word_embeddings;
  std::optional<std::uint64_t> hidden_size;
  std::optional<std::uint64_t> vocab_size;
  std::optional<std::uint64_t> num_hidden_layers;
  std::optional<std::uint64_t> num_kv_shared_layers;
  std::optional<std::uint64_t> head_dim;         // of attention
  std::optional<std::uint64_t> vision_head_dim;  // of attention in the vision tower
  JsonValue root;                                // the whole document

  // The object that describes the language model: text_config (or its like), else the root.
  [[nodiscard]] const JsonValue& text() const;
};

// Errors: kCorrupt, kLimit.
[[nodiscard]] Result<ModelConfig> parse_config(std::string_view json, std::string source);

// The same from the metadata of a GGUF header; the root stays empty.
[[nodiscard]] ModelConfig config_from_gguf(const format::TensorTable& table);

}  // namespace gridscope::model
