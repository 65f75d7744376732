#include "gridscope/model/norms_before.hpp"

#include <algorithm>
#include <array>

#include "gridscope/model/canonical_names.hpp"

namespace gridscope::model {
namespace {

using Names = std::array<std::string_view, 3>;  // the last ones may be empty

struct Reader {
  std::string_view family;  // of projections, without the layer
  Names norms;              // of the same layer, in order of preference
};

// A layer with a norm before and after its feed-forward block has a post_attention_layernorm that
// belongs to attention; one with two blocks has a norm for the experts.
constexpr Names kAttention = {"input_layernorm"};
constexpr Names kFeedForward = {"pre_feedforward_layernorm", "post_attention_layernorm"};
constexpr Names kExperts = {"pre_feedforward_layernorm_2", "pre_feedforward_layernorm",
                            "post_attention_layernorm"};
// Gemma 4's router scales what it normalises itself.
constexpr Names kRouter = {"router.scale", "pre_feedforward_layernorm", "post_attention_layernorm"};
constexpr Names kQueryRank = {"self_attn.q_a_layernorm"};
constexpr Names kKeyValueRank = {"self_attn.kv_a_layernorm"};

constexpr auto kReaders = std::to_array<Reader>({
    {"self_attn.qkv_proj", kAttention},
    {"self_attn.q_a_proj", kAttention},
    {"self_attn.kv_a_proj_with_mqa", kAttention},
    {"linear_attn.in_proj_qkvz", kAttention},
    {"linear_attn.in_proj_qkv", kAttention},
    {"linear_attn.in_proj_ba", kAttention},
    {"linear_attn.in_proj_z", kAttention},
    {"linear_attn.in_proj_a", kAttention},
    {"linear_attn.in_proj_b", kAttention},
    {"self_attn.q_b_proj", kQueryRank},
    {"self_attn.kv_b_proj", kKeyValueRank},
    {"mlp.gate_up_proj", kFeedForward},
    {"shared_expert.gate_up_proj", kFeedForward},
    {"shared_expert_gate", kFeedForward},
    {"experts.gate_up_proj", kExperts},
    {"router", kRouter},
});

std::vector<std::string> with_prefix(std::string_view prefix, Names names) {
  std::vector<std::string> all;
  for (const std::string_view name : names) {
    if (!name.empty()) all.push_back(std::string(prefix) + std::string(name));
  }
  return all;
}

// "h.3.attn.c_attn" and "h.3.mlp.c_fc" of GPT-2.
std::vector<std::string> gpt2_norms(std::string_view canonical) {
  constexpr std::string_view kAttn = "attn.c_attn";
  constexpr std::string_view kMlp = "mlp.c_fc";
  if (!canonical.starts_with("h.")) return {};
  const bool attention = canonical.ends_with(kAttn);
  if (!attention && !canonical.ends_with(kMlp)) return {};
  const std::size_t module = attention ? kAttn.size() : kMlp.size();
  return with_prefix(canonical.substr(0, canonical.size() - module),
                     Names{attention ? "ln_1" : "ln_2"});
}

}  // namespace

std::vector<std::string> norms_before(std::string_view canonical) {
  if (canonical == "lm_head") return {"norm", "ln_f"};
  const std::string_view layer = layer_prefix(canonical);
  if (layer.empty()) return gpt2_norms(canonical);
  const std::string family = projection_family(canonical);
  const std::string_view module = std::string_view(family).substr(layer.size());
  const auto found = std::ranges::find(kReaders, module, &Reader::family);
  if (found == kReaders.end()) return {};
  return with_prefix(layer, found->norms);
}

}  // namespace gridscope::model
