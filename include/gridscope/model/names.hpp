#pragma once

// What a tensor's name says: which part of the model it belongs to, what it does there, which
// layer. Names come in families (prefixes of transformers, vLLM, MLX, GGUF); all are brought to one
// form first.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gridscope/format/container.hpp"
#include "gridscope/format/tensor_table.hpp"

namespace gridscope::model {

enum class Part : std::uint8_t {
  kPerLayerEmbedding,
  kVocabularyEmbedding,  // embed_tokens and lm_head
  kTransformerBody,
  kAudioTower,   // with its projector
  kVisionTower,  // with its projector
  kMtp,          // multi-token prediction layers
  kOther,
};
[[nodiscard]] std::string_view part_key(Part part);    // "per_layer_embedding"
[[nodiscard]] std::string_view part_title(Part part);  // "per-layer embedding"

enum class Role : std::uint8_t {
  kEmbedTokens,
  kLmHead,
  kPerLayerEmbedding,
  kAttention,
  kMlp,
  kRoutedExperts,
  kSharedExperts,
  kRouter,
  kNorm,
  kProjector,
  kConvolution,
  kPositionEmbedding,
  kOther,
};
[[nodiscard]] std::string_view role_key(Role role);    // "routed_experts"
[[nodiscard]] std::string_view role_title(Role role);  // "routed experts"

struct NameInfo {
  Part part = Part::kOther;
  Role role = Role::kOther;
  std::optional<std::uint32_t> layer;  // of the decoder, or of the tower
};

// What is known of a model whose names are read.
struct NameContext {
  // Decoder layers with this number or a higher one are MTP layers (num_hidden_layers of models
  // that append them), when known.
  std::optional<std::uint64_t> mtp_from = {};
  // Only GGUF calls its towers "a", "v" and "mm".
  format::Container container = format::Container::kUnknown;
};

[[nodiscard]] NameInfo classify_name(std::string_view tensor, const NameContext& context = {});

// What only all names together tell: a multi_modal_projector belongs to the audio tower when there
// is no other vision tensor but an audio tower, and the encoder of a speech model (it starts with
// convolutions) is an audio tower. `names` are those of `tensors`, and are corrected.
void settle_parts(std::span<const format::TensorInfo> tensors, std::span<NameInfo> names);

// The module name without family prefix and runtime wrappers: "layers.0.self_attn.q_proj",
// "embed_tokens", "lm_head", "vision_tower....". GGUF names are left as they are.
[[nodiscard]] std::string canonical_module(std::string_view module);

}  // namespace gridscope::model
