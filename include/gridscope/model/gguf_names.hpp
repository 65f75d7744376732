#pragma once

// The names that llama.cpp gives to weights, and what else its converter does to them. Source: its
// conversion scripts and the tensor name table of the gguf package.

#include <string>
#include <string_view>

namespace gridscope::model {

// The canonical name of a module of a GGUF file: "blk.3.attn_q" is "layers.3.self_attn.q_proj".
// `architecture` is general.architecture: a few names mean another module in some of them. A name
// that is not known keeps its last part.
[[nodiscard]] std::string canonical_gguf_name(std::string_view module,
                                              std::string_view architecture);

// Whether the rows of q_proj and k_proj are permuted within each head: the halves that rotate
// together are made neighbours.
[[nodiscard]] bool gguf_permutes_heads(std::string_view architecture);

// What is added to every value of a norm. `canonical` is the name of any weight; 0 for all that are
// no norms.
[[nodiscard]] double gguf_norm_offset(std::string_view architecture, std::string_view canonical);

// Whether the converter computes the tensor from the configuration.
[[nodiscard]] bool is_generated_by_gguf(std::string_view module);

}  // namespace gridscope::model
