#pragma once

// One name for a weight, whoever stored it: beyond the prefixes of canonical_module, the places and
// spellings of mixtures of experts and of fused projections, and the names under which OpenAI,
// Mistral and Meta publish what others have converted.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gridscope::model {

// "model.layers.0.block_sparse_moe.experts.3.w1" is "layers.0.experts.3.gate_proj", and
// "language_model.model.layers.0.mlp.switch_mlp.up_proj" is "layers.0.experts.up_proj". For modules
// of any file but GGUF.
[[nodiscard]] std::string canonical_weight(std::string_view module);

// Whether the module holds queries or keys as Mistral and Meta publish them: in each head the rows
// of the two halves that are rotated together alternate. Elsewhere one half follows the other.
[[nodiscard]] bool alternates_rotary_halves(std::string_view module);

// The name of the bias that belongs to a module; of a parameter that is itself one, its own name.
[[nodiscard]] std::string canonical_bias(std::string_view canonical);
[[nodiscard]] bool is_bias(std::string_view canonical);

// The name of one matrix of a stack, "layers.0.experts.3.down_proj" for
// "layers.0.experts.down_proj"; empty when the name is no stack's.
[[nodiscard]] std::optional<std::string> matrix_of_stack(std::string_view canonical,
                                                         std::uint64_t index);

// The name with the last segment ("gate_up_proj", before ".bias" if there is one) replaced; empty
// when its last segment is another one.
[[nodiscard]] std::optional<std::string> with_projection(std::string_view canonical,
                                                         std::string_view from,
                                                         std::string_view to);

// One name for all projections that an exporter may fuse or stack: they have the same inputs.
// "layers.0.experts.3.up_proj" and "layers.0.experts.gate_proj" are of
// "layers.0.experts.gate_up_proj".
[[nodiscard]] std::string projection_family(std::string_view canonical);

// "layers.12." of "layers.12.mlp.up_proj"; empty outside of a decoder layer.
[[nodiscard]] std::string_view layer_prefix(std::string_view canonical);

}  // namespace gridscope::model
