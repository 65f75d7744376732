#include "gridscope/model/absences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "gridscope/core/text.hpp"
#include "gridscope/model/canonical_names.hpp"
#include "gridscope/model/gguf_names.hpp"
#include "gridscope/model/tensor_suffix.hpp"

namespace gridscope::model {
namespace {

// Dropped as a whole by exporters that keep the language model alone.
constexpr auto kOptionalParts =
    std::to_array<Part>({Part::kVisionTower, Part::kAudioTower, Part::kMtp});

constexpr auto kKeysAndValues =
    std::to_array<std::string_view>({"k_proj", "v_proj", "k_norm", "v_norm"});

const bool* flag_of(const Checkpoint& checkpoint, std::string_view key) {
  const JsonValue* value = checkpoint.config.text().find(key);
  return value == nullptr ? nullptr : value->boolean();
}

std::vector<bool> full_attention_layers(const Checkpoint& checkpoint) {
  std::vector<bool> layers;
  const JsonValue* types = checkpoint.config.text().find("layer_types");
  if (types == nullptr || types->array() == nullptr) return layers;
  for (const JsonValue& type : *types->array()) {
    layers.push_back(type.string() != nullptr && *type.string() == "full_attention");
  }
  return layers;
}

std::optional<std::uint64_t> first_kv_shared(const ModelConfig& config) {
  const std::uint64_t shared = config.num_kv_shared_layers.value_or(0);
  const std::uint64_t layers = config.num_hidden_layers.value_or(0);
  if (shared == 0 || layers < shared) return std::nullopt;
  return layers - shared;
}

std::optional<std::uint64_t> layer_of(std::string_view canonical) {
  const std::string_view prefix = layer_prefix(canonical);
  const std::size_t dot = prefix.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  std::uint64_t layer = 0;
  const char* const end = prefix.data() + prefix.size();
  const auto [at, error] = std::from_chars(prefix.data() + dot + 1, end, layer);
  if (error != std::errc()) return std::nullopt;
  return layer;
}

bool is_attention_part(std::string_view canonical, std::span<const std::string_view> parts) {
  constexpr std::string_view kAttention = "self_attn.";
  const std::string_view rest = canonical.substr(layer_prefix(canonical).size());
  if (!rest.starts_with(kAttention)) return false;
  const std::string_view module = rest.substr(kAttention.size());
  return std::ranges::find(parts, module.substr(0, module.find('.'))) != parts.end();
}

// Frequencies that are computed from the configuration.
bool is_computed(const Weight& weight) {
  return is_generated_by_gguf(weight.name) || weight.name.ends_with("rotary_emb.inv_freq");
}

}  // namespace

SharingFacts sharing_facts(const Checkpoint& source, const Checkpoint& build) {
  SharingFacts facts;
  const auto& source_ties = source.config.tie_word_embeddings;
  const auto& build_ties = build.config.tie_word_embeddings;
  facts.tied_head = source_ties.value_or(build_ties.value_or(false));
  for (const Checkpoint* side : {&build, &source}) {
    if (const bool* flag = flag_of(*side, "attention_k_eq_v")) facts.values_are_keys = *flag;
    auto layers = full_attention_layers(*side);
    if (!layers.empty()) facts.full_attention = std::move(layers);
    const auto first = first_kv_shared(side->config);
    if (first) facts.first_kv_shared = first;
  }
  return facts;
}

bool values_are_keys(const SharingFacts& facts, std::string_view canonical) {
  static constexpr std::array<std::string_view, 1> kValues = {"v_proj"};
  const std::optional<std::uint64_t> layer = layer_of(canonical);
  if (!facts.values_are_keys || !layer || !is_attention_part(canonical, kValues)) return false;
  if (facts.full_attention.empty()) return true;
  return *layer < facts.full_attention.size() && facts.full_attention[*layer];
}

AbsenceRules::AbsenceRules(const Checkpoint& checkpoint, std::span<const Weight> weights,
                           SharingFacts facts)
    : facts_(std::move(facts)) {
  for (const Weight& weight : weights) parts_.insert(weight.info.part);
  for (const auto& [left_out, kept] : checkpoint.aliases) {
    aliases_.emplace_back(canonical_weight(split_suffix(left_out).module), kept);
  }
}

std::optional<std::string> AbsenceRules::explain(const Weight& weight,
                                                 std::string_view canonical) const {
  const auto alias =
      std::ranges::find(aliases_, canonical, &std::pair<std::string, std::string>::first);
  if (alias != aliases_.end()) {
    return fmt::format("it is the same tensor as {}", quote(alias->second));
  }
  if (weight.info.role == Role::kLmHead && canonical == "lm_head" && facts_.tied_head) {
    return "the output layer is tied to the embedding";
  }
  if (values_are_keys(facts_, canonical)) return "the values of this layer are its keys";
  const std::optional<std::uint64_t> layer = layer_of(canonical);
  if (facts_.first_kv_shared && layer.value_or(0) >= *facts_.first_kv_shared &&
      is_attention_part(canonical, kKeysAndValues)) {
    return "this layer uses the keys and values of an earlier one";
  }
  if (is_computed(weight)) return "it is computed from the configuration";
  const Part part = weight.info.part;
  const bool optional = std::ranges::find(kOptionalParts, part) != kOptionalParts.end();
  if (optional && !parts_.contains(part)) {
    return fmt::format("nothing of the {} is there", part_title(part));
  }
  return std::nullopt;
}

}  // namespace gridscope::model
