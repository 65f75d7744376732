#include "gridscope/model/gguf_names.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

namespace gridscope::model {
namespace {

struct Rename {
  std::string_view gguf;
  std::string_view canonical;
};
struct ArchitectureRename {
  std::string_view architecture;
  Rename rename;
};

constexpr auto kTopLevel = std::to_array<Rename>({
    {"token_embd", "embed_tokens"},
    {"output", "lm_head"},
    {"output_norm", "norm"},
    {"per_layer_token_embd", "embed_tokens_per_layer"},
    {"per_layer_model_proj", "per_layer_model_projection"},
    {"per_layer_proj_norm", "per_layer_projection_norm"},
    {"altup_proj", "altup_projections"},
    {"altup_unembd_proj", "altup_unembed_projections"},
});

// What follows "blk.N.".
constexpr auto kInLayer = std::to_array<Rename>({
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_qkv", "self_attn.qkv_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"attn_sinks", "self_attn.sinks"},
    {"attn_q_a", "self_attn.q_a_proj"},
    {"attn_q_b", "self_attn.q_b_proj"},
    {"attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"},
    {"attn_kv_b", "self_attn.kv_b_proj"},
    {"attn_q_a_norm", "self_attn.q_a_layernorm"},
    {"attn_kv_a_norm", "self_attn.kv_a_layernorm"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"pre_ffw_norm_2", "pre_feedforward_layernorm_2"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
    {"post_ffw_norm_1", "post_feedforward_layernorm_1"},
    {"post_ffw_norm_2", "post_feedforward_layernorm_2"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
    {"ffn_gate_exps", "experts.gate_proj"},
    {"ffn_up_exps", "experts.up_proj"},
    {"ffn_gate_up_exps", "experts.gate_up_proj"},
    {"ffn_down_exps", "experts.down_proj"},
    {"ffn_down_exps.scale", "router.per_expert_scale"},
    {"ffn_gate_shexp", "shared_expert.gate_proj"},
    {"ffn_up_shexp", "shared_expert.up_proj"},
    {"ffn_down_shexp", "shared_expert.down_proj"},
    {"ffn_gate_inp", "router"},
    {"ffn_gate_inp.scale", "router.scale"},
    {"ffn_gate_inp_shexp", "shared_expert_gate"},
    {"exp_probs_b", "router.e_score_correction_bias"},
    {"layer_output_scale", "layer_scalar"},
    {"inp_gate", "per_layer_input_gate"},
    {"proj", "per_layer_projection"},
    {"post_norm", "post_per_layer_input_norm"},
    {"laurel_l", "laurel.linear_left"},
    {"laurel_r", "laurel.linear_right"},
    {"laurel_post_norm", "laurel.post_laurel_norm"},
    {"altup_router", "altup.modality_router"},
    {"altup_router_norm", "altup.router_norm"},
    {"altup_predict_coef", "altup.prediction_coefs"},
    {"altup_correct_coef", "altup.correction_coefs"},
    {"altup_correct_scale", "altup.correct_output_scale"},
    {"nextn.eh_proj", "eh_proj"},
    {"nextn.embed_tokens", "embed_tokens"},
    {"nextn.enorm", "enorm"},
    {"nextn.hnorm", "hnorm"},
    {"nextn.shared_head_head", "shared_head.head"},
    {"nextn.shared_head_norm", "shared_head.norm"},
});

// Where an architecture means something else by a name, in a layer or outside.
constexpr auto kExceptions = std::to_array<ArchitectureRename>({
    {"gemma2", {"ffn_norm", "pre_feedforward_layernorm"}},
    {"gemma3", {"ffn_norm", "pre_feedforward_layernorm"}},
    {"gemma3n", {"ffn_norm", "pre_feedforward_layernorm"}},
    {"gemma4", {"ffn_norm", "pre_feedforward_layernorm"}},
    {"phi3", {"ffn_up", "mlp.gate_up_proj"}},
    {"glm4", {"ffn_up", "mlp.gate_up_proj"}},
    {"glm4", {"post_attention_norm", "post_self_attn_layernorm"}},
    {"glm4", {"post_ffw_norm", "post_mlp_layernorm"}},
    {"gpt2", {"token_embd", "wte"}},
    {"gpt2", {"position_embd", "wpe"}},
    {"gpt2", {"output_norm", "ln_f"}},
    {"gpt2", {"attn_norm", "ln_1"}},
    {"gpt2", {"attn_qkv", "attn.c_attn"}},
    {"gpt2", {"attn_output", "attn.c_proj"}},
    {"gpt2", {"ffn_norm", "ln_2"}},
    {"gpt2", {"ffn_up", "mlp.c_fc"}},
    {"gpt2", {"ffn_down", "mlp.c_proj"}},
});

constexpr auto kPermuted = std::to_array<std::string_view>(
    {"llama", "mistral3", "arcee", "deci", "granite", "granitemoe", "minicpm", "smollm3",
     "internlm2", "baichuan", "xverse", "olmo", "chameleon", "bailingmoe"});

// Norms that multiply by one more than what is stored: here the one is put in.
constexpr auto kShifted = std::to_array<std::string_view>({"gemma", "gemma2", "gemma3"});

std::string_view look_up(std::string_view name, std::string_view architecture,
                         std::span<const Rename> table) {
  const auto is_exception = [&](const ArchitectureRename& exception) {
    return exception.architecture == architecture && exception.rename.gguf == name;
  };
  const auto* exception = std::ranges::find_if(kExceptions, is_exception);
  if (exception != kExceptions.end()) return exception->rename.canonical;
  const auto found = std::ranges::find(table, name, &Rename::gguf);
  return found == table.end() ? name : found->canonical;
}

}  // namespace

std::string canonical_gguf_name(std::string_view module, std::string_view architecture) {
  constexpr std::string_view kBlock = "blk.";
  const std::size_t dot = module.find('.', kBlock.size());
  if (!module.starts_with(kBlock) || dot == std::string_view::npos) {
    return std::string(look_up(module, architecture, kTopLevel));
  }
  std::string name(architecture == "gpt2" ? "h" : "layers");
  name += module.substr(kBlock.size() - 1, dot - kBlock.size() + 2);
  name += look_up(module.substr(dot + 1), architecture, kInLayer);
  return name;
}

bool gguf_permutes_heads(std::string_view architecture) {
  return std::ranges::find(kPermuted, architecture) != kPermuted.end();
}

double gguf_norm_offset(std::string_view architecture, std::string_view canonical) {
  const bool shifted = std::ranges::find(kShifted, architecture) != kShifted.end();
  return shifted && canonical.ends_with("norm") ? 1.0 : 0.0;
}

bool is_generated_by_gguf(std::string_view module) {
  return module == "rope_freqs" || module.starts_with("rope_factors_");
}

}  // namespace gridscope::model
