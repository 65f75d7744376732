#include "gridscope/model/canonical_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "gridscope/model/names.hpp"

// A decoder layer's part of the name is cut at its dots and brought to the form of Gemma 4: experts
// and router stand right in the layer, the dense feed-forward block is "mlp".

namespace gridscope::model {
namespace {

using Segments = std::vector<std::string_view>;

struct Rename {
  std::string_view from;
  std::string_view to;
};

constexpr auto kFeedForward =
    std::to_array<std::string_view>({"mlp", "block_sparse_moe", "feed_forward", "moe", "ffn"});
constexpr auto kExperts =
    std::to_array<std::string_view>({"experts", "local_experts", "switch_mlp", "switch_glu"});
constexpr auto kSharedExperts =
    std::to_array<std::string_view>({"shared_expert", "shared_experts", "shared_mlp"});
// What may stand between a router's name and its weight.
constexpr auto kRouterParts =
    std::to_array<std::string_view>({"proj", "linear", "layer", "gate", "wg"});
constexpr auto kProjections =
    std::to_array<Rename>({{"w1", "gate_proj"}, {"w2", "down_proj"}, {"w3", "up_proj"}});
// Experts kept in a list under the name of the projection.
constexpr auto kProjectionLists = std::to_array<Rename>({{"gate_up_projs", "gate_up_proj"},
                                                         {"gate_projs", "gate_proj"},
                                                         {"up_projs", "up_proj"},
                                                         {"down_projs", "down_proj"}});

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string_view renamed(std::string_view word, std::span<const Rename> table) {
  const auto found = std::ranges::find(table, word, &Rename::from);
  return found == table.end() ? word : found->to;
}

Segments split(std::string_view text) {
  Segments segments;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t dot = std::min(text.find('.', at), text.size());
    segments.push_back(text.substr(at, dot - at));
    at = dot + 1;
  }
  return segments;
}

std::string join(std::string_view prefix, const Segments& segments) {
  return fmt::format("{}{}", prefix, fmt::join(segments, "."));
}

// "experts.switch_glu.up_proj" and "experts.up_projs.3" to "experts.up_proj", "experts.3.up_proj".
void settle_experts(Segments& path) {
  path.front() = "experts";
  if (path.size() > 2 && is_one_of(path[1], kExperts)) path.erase(path.begin() + 1);
  if (path.size() == 3 && is_number(path[2])) {
    const std::string_view projection = renamed(path[1], kProjectionLists);
    if (projection != path[1]) path = {path[0], path[2], projection};
  }
  path.back() = renamed(path.back(), kProjections);
}

// "gate", "router.proj" to "router"; what else hangs on a router keeps its own name below it.
void settle_router(Segments& path) {
  path.front() = "router";
  if (path.size() == 2 && is_one_of(path[1], kRouterParts)) path.pop_back();
}

bool is_router(const Segments& path) {
  if (path.front() == "router") return true;
  const bool below = path.size() == 2 && path[1] == "e_score_correction_bias";
  return path.front() == "gate" && (path.size() == 1 || below);
}

// `path` is what follows "layers.N.".
void settle_layer(Segments& path) {
  const bool in_block = path.size() > 1 && is_one_of(path.front(), kFeedForward);
  if (in_block) path.erase(path.begin());
  if (is_one_of(path.front(), kExperts) && path.size() > 1) return settle_experts(path);
  if (is_one_of(path.front(), kSharedExperts)) {
    path.front() = "shared_expert";
    path.back() = renamed(path.back(), kProjections);
    return;
  }
  const bool gate_alone = !in_block && path.front() == "gate";
  if (is_router(path) && !gate_alone) return settle_router(path);
  if (!in_block || path.front() == "shared_expert_gate") return;
  path.back() = renamed(path.back(), kProjections);
  path.insert(path.begin(), "mlp");
}

// The original names of gpt-oss, what follows "block.N." and outside of blocks.
constexpr auto kGptOssInBlock = std::to_array<Rename>({
    {"attn.norm.scale", "input_layernorm"},
    {"attn.qkv", "self_attn.qkv_proj"},
    {"attn.out", "self_attn.o_proj"},
    {"attn.sinks", "self_attn.sinks"},
    {"mlp.norm.scale", "post_attention_layernorm"},
    {"mlp.gate", "router"},
    {"mlp.mlp1_weight", "experts.gate_up_proj"},
    {"mlp.mlp1_bias", "experts.gate_up_proj.bias"},
    {"mlp.mlp2_weight", "experts.down_proj"},
    {"mlp.mlp2_bias", "experts.down_proj.bias"},
});
// Those of Mistral and Meta, what follows "layers.N."; feed-forward blocks are settled like others.
constexpr auto kNativeInLayer = std::to_array<Rename>({
    {"attention.wq", "self_attn.q_proj"},
    {"attention.wk", "self_attn.k_proj"},
    {"attention.wv", "self_attn.v_proj"},
    {"attention.wo", "self_attn.o_proj"},
    {"attention.wq_a", "self_attn.q_a_proj"},
    {"attention.wq_b", "self_attn.q_b_proj"},
    {"attention.wkv_a_with_mqa", "self_attn.kv_a_proj_with_mqa"},
    {"attention.wkv_b", "self_attn.kv_b_proj"},
    {"attention.q_a_norm", "self_attn.q_a_layernorm"},
    {"attention.kv_a_norm", "self_attn.kv_a_layernorm"},
    {"attention_norm", "input_layernorm"},
    {"ffn_norm", "post_attention_layernorm"},
});
// Of either, outside of layers.
constexpr auto kTopLevel = std::to_array<Rename>({
    {"embedding", "embed_tokens"},
    {"unembedding", "lm_head"},
    {"norm.scale", "norm"},
    {"tok_embeddings", "embed_tokens"},
    {"output", "lm_head"},
});

// How the names of Mistral's vision tower and projector begin, and how its projections end.
constexpr auto kVisionFronts = std::to_array<Rename>({
    {"vision_encoder.", "vision_tower."},
    {"vision_language_adapter.w_in", "multi_modal_projector.linear_1"},
    {"vision_language_adapter.w_out", "multi_modal_projector.linear_2"},
    {"patch_merger.merging_layer", "multi_modal_projector.patch_merger.merging_layer"},
    {"pre_mm_projector_norm", "multi_modal_projector.norm"},
});
constexpr auto kVisionProjections = std::to_array<Rename>({
    {"wq", "q_proj"},
    {"wk", "k_proj"},
    {"wv", "v_proj"},
    {"wo", "o_proj"},
    {"w1", "gate_proj"},
    {"w2", "down_proj"},
    {"w3", "up_proj"},
});
constexpr std::string_view kNativeVisionLayers = "vision_encoder.transformer.";

// Outside of the decoder's layers.
std::string settle_outside(std::string_view name) {
  const auto* const front = std::ranges::find_if(
      kVisionFronts, [&](const Rename& rename) { return name.starts_with(rename.from); });
  if (front == kVisionFronts.end()) return std::string(renamed(name, kTopLevel));
  std::string settled = fmt::format("{}{}", front->to, name.substr(front->from.size()));
  if (!name.starts_with(kNativeVisionLayers)) return settled;
  const std::size_t last = settled.rfind('.') + 1;
  const std::string projection(renamed(std::string_view(settled).substr(last), kVisionProjections));
  return settled.replace(last, std::string::npos, projection);
}

// "layers.3.input_layernorm" for "block.3.attn.norm.scale"; empty when the name is none of these.
std::string from_gpt_oss(std::string_view name) {
  constexpr std::string_view kBlock = "block.";
  const std::size_t dot = name.find('.', kBlock.size());
  if (!name.starts_with(kBlock) || dot == std::string_view::npos) return {};
  const std::string_view number = name.substr(kBlock.size(), dot - kBlock.size());
  const auto* const found = std::ranges::find(kGptOssInBlock, name.substr(dot + 1), &Rename::from);
  if (!is_number(number) || found == kGptOssInBlock.end()) return {};
  return fmt::format("layers.{}.{}", number, found->to);
}

constexpr auto kFusedInto = std::to_array<Rename>({{"gate_proj", "gate_up_proj"},
                                                   {"up_proj", "gate_up_proj"},
                                                   {"q_proj", "qkv_proj"},
                                                   {"k_proj", "qkv_proj"},
                                                   {"v_proj", "qkv_proj"}});

// The name without its last segment if that is "bias".
std::string_view without_bias(std::string_view canonical) {
  constexpr std::string_view kBias = ".bias";
  if (canonical.ends_with(kBias)) canonical.remove_suffix(kBias.size());
  return canonical;
}

}  // namespace

std::string canonical_weight(std::string_view module) {
  std::string name = canonical_module(module);
  constexpr std::string_view kTransformer = "transformer.";
  if (name.starts_with(kTransformer)) name.erase(0, kTransformer.size());
  if (std::string renamed_block = from_gpt_oss(name); !renamed_block.empty()) return renamed_block;
  const std::string_view layer = layer_prefix(name);
  if (layer.empty()) return settle_outside(name);
  std::string_view in_layer = renamed(std::string_view(name).substr(layer.size()), kNativeInLayer);
  // Mistral's experts and their router stand right in a layer that stands in nothing.
  if (in_layer == "gate" && module.starts_with(layer)) in_layer = "router";
  Segments path = split(in_layer);
  settle_layer(path);
  return join(layer, path);
}

bool alternates_rotary_halves(std::string_view module) {
  const std::string name = canonical_module(module);
  std::string_view stem = without_bias(name);
  if (stem.starts_with(kNativeVisionLayers)) stem.remove_prefix(kNativeVisionLayers.size());
  const std::size_t layer = layer_prefix(stem).size();
  return layer != 0 &&
         (stem.substr(layer) == "attention.wq" || stem.substr(layer) == "attention.wk");
}

std::string canonical_bias(std::string_view canonical) {
  std::string name(canonical);
  if (!is_bias(canonical)) name += ".bias";
  return name;
}

bool is_bias(std::string_view canonical) {
  return canonical.ends_with(".bias") || canonical.ends_with("_bias");
}

std::optional<std::string> matrix_of_stack(std::string_view canonical, std::uint64_t index) {
  constexpr std::string_view kExpertsDot = "experts.";
  const std::string_view layer = layer_prefix(canonical);
  const std::string_view rest = canonical.substr(layer.size());
  if (!layer.empty() && rest.starts_with(kExpertsDot)) {
    const std::string_view matrix = rest.substr(kExpertsDot.size());
    if (is_number(matrix.substr(0, matrix.find('.')))) return std::nullopt;
    return fmt::format("{}experts.{}.{}", layer, index, matrix);
  }
  const bool altup = canonical == "altup_projections" || canonical == "altup_unembed_projections";
  if (!altup) return std::nullopt;
  return fmt::format("{}.{}", canonical, index);
}

std::optional<std::string> with_projection(std::string_view canonical, std::string_view from,
                                           std::string_view to) {
  const std::string_view stem = without_bias(canonical);
  const std::size_t start = stem.rfind('.') + 1;  // 0 when there is no dot
  if (stem.substr(start) != from) return std::nullopt;
  return fmt::format("{}{}{}", stem.substr(0, start), to, canonical.substr(stem.size()));
}

std::string projection_family(std::string_view canonical) {
  const std::string_view layer = layer_prefix(canonical);
  Segments path = split(canonical.substr(layer.size()));
  if (path.size() > 2 && path.front() == "experts" && is_number(path[1])) {
    path.erase(path.begin() + 1);
  }
  const bool has_bias = path.size() > 1 && path.back() == "bias";
  std::string_view& projection = path[path.size() - (has_bias ? 2 : 1)];
  projection = renamed(projection, kFusedInto);
  return join(layer, path);
}

std::string_view layer_prefix(std::string_view canonical) {
  constexpr std::string_view kLayers = "layers.";
  if (!canonical.starts_with(kLayers)) return {};
  const std::size_t dot = canonical.find('.', kLayers.size());
  if (dot == std::string_view::npos || dot + 1 == canonical.size()) return {};
  const std::string_view number = canonical.substr(kLayers.size(), dot - kLayers.size());
  return is_number(number) ? canonical.substr(0, dot + 1) : std::string_view();
}

}  // namespace gridscope::model
