#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "gridscope/quant/codec.hpp"
#include "support/tiny_gemma.hpp"

namespace gridscope::test {
namespace {

using quant::Companion;
using quant::LeveledWeight;
using quant::Scheme;
using quant::WeightSpec;

// ---- configurations -----------------------------------------------------------------------------

constexpr std::string_view kTextConfig = R"({
    "attention_k_eq_v": true,
    "enable_moe_block": true,
    "global_head_dim": 64,
    "head_dim": 32,
    "hidden_size": 64,
    "hidden_size_per_layer_input": 32,
    "intermediate_size": 96,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention",
                    "sliding_attention", "full_attention"],
    "model_type": "gemma4_text",
    "moe_intermediate_size": 32,
    "num_attention_heads": 2,
    "num_experts": 4,
    "num_hidden_layers": 5,
    "num_key_value_heads": 1,
    "num_kv_shared_layers": 2,
    "tie_word_embeddings": true,
    "top_k_experts": 2,
    "vocab_size": 48,
    "vocab_size_per_layer_input": 48
  })";

// `quantization`: further members, each with a comma before it.
std::string config_with(std::string_view quantization) {
  return fmt::format(R"({{
  "architectures": ["Gemma4ForConditionalGeneration"],
  "dtype": "bfloat16",
  "model_type": "gemma4",
  "text_config": {},
  "tie_word_embeddings": true{}
}}
)",
                     kTextConfig, quantization);
}

constexpr std::string_view kCompressedTensors = R"(,
  "quantization_config": {
    "config_groups": {
      "group_0": {
        "format": "pack-quantized",
        "input_activations": null,
        "targets": ["Linear"],
        "weights": {"actorder": null, "dynamic": false, "group_size": 32, "num_bits": 4,
                    "strategy": "group", "symmetric": true, "type": "int"}
      }
    },
    "format": "pack-quantized",
    "ignore": ["lm_head", "model.language_model.layers.2.router.proj"],
    "quant_method": "compressed-tensors",
    "quantization_status": "compressed"
  })";

constexpr std::string_view kAwq = R"(,
  "quantization_config": {"bits": 4, "group_size": 32, "modules_to_not_convert": ["router"],
                          "quant_method": "awq", "version": "gemm", "zero_point": true})";

constexpr std::string_view kGptq = R"(,
  "quantization_config": {{"bits": 4, "checkpoint_format": "{}", "desc_act": false,
                          "group_size": 32, "quant_method": "gptq", "sym": true}})";

constexpr std::string_view kMlx = R"(,
  "quantization": {"bits": 4, "group_size": 32, "mode": "affine"})";

// ---- tensors ------------------------------------------------------------------------------------

TinyTensor numbers(std::string name, Dtype dtype, Shape shape, std::span<const double> values) {
  TinyTensor tensor{.name = std::move(name), .dtype = dtype, .shape = std::move(shape), .data = {}};
  tensor.data.resize(values.size() * dtype_info(dtype).block_bits / 8);
  quant::store_numbers(dtype, values, tensor.data);
  return tensor;
}

// How a build stores its weights.
struct Style {
  std::string prefix;
  WeightSpec like;
  Dtype scale_dtype = Dtype::kBF16;
  std::vector<std::pair<Companion, std::string>> suffixes;
};

// One weight, or `stack` of them one below the other.
void add_weight(const std::string& name, LeveledWeight weight, std::uint64_t stack,
                const Style& style, TinyFile& file) {
  for (double& scale : weight.scales) scale = quant::rounded_to(style.scale_dtype, scale);
  WeightSpec like = style.like;
  like[Companion::kScale] = quant::StoredTensor{.dtype = style.scale_dtype};
  auto spec = quant::pack(weight, like);
  if (!spec) throw std::logic_error(describe(spec.error()));
  for (const auto& [companion, suffix] : style.suffixes) {
    const quant::StoredTensor* const stored = spec->find(companion);
    if (stored == nullptr) throw std::logic_error(name + " has no " + suffix);
    Shape shape = stored->shape;
    if (stack > 0) {
      shape.front() /= stack;
      shape.insert(shape.begin(), stack);
    }
    file.tensors.push_back({.name = style.prefix + name + suffix,
                            .dtype = stored->dtype,
                            .shape = std::move(shape),
                            .data = stored->data});
  }
}

void append(LeveledWeight& above, const LeveledWeight& below) {
  if (above.levels.empty()) {
    above = below;
    return;
  }
  above.rows += below.rows;
  above.levels.insert(above.levels.end(), below.levels.begin(), below.levels.end());
  above.scales.insert(above.scales.end(), below.scales.begin(), below.scales.end());
  above.zeros.insert(above.zeros.end(), below.zeros.begin(), below.zeros.end());
}

// "layers.2.experts." and "gate_proj" of "layers.2.experts.1.gate_proj".
struct ExpertName {
  std::string prefix;
  std::string projection;
};
std::optional<ExpertName> expert_name(std::string_view name) {
  constexpr std::string_view kExperts = "experts.";
  const std::size_t at = name.find(kExperts);
  if (at == std::string_view::npos) return std::nullopt;
  return ExpertName{.prefix = std::string(name.substr(0, at + kExperts.size())),
                    .projection = std::string(name.substr(name.rfind('.') + 1))};
}

// All experts of one projection below each other, by "layers.2.experts." and the projection.
struct Stack {
  LeveledWeight weight;
  std::uint64_t experts = 0;
};
std::map<std::pair<std::string, std::string>, Stack> stacks_of(const TinyGemma& model) {
  std::map<std::pair<std::string, std::string>, Stack> stacks;
  for (const TinyLinear& linear : model.linears) {
    const auto expert = expert_name(linear.name);
    if (!expert) continue;
    Stack& stack = stacks[{expert->prefix, expert->projection}];
    append(stack.weight, linear.weight);
    ++stack.experts;
  }
  return stacks;
}

void add_tables(const TinyGemma& model, const std::string& prefix, TinyFile& file) {
  for (const TinyTable& table : model.tables) {
    if (is_shared_away(table.name)) continue;
    file.tensors.push_back(numbers(prefix + table.name, Dtype::kBF16, table.shape, table.values));
  }
}

// A build in safetensors with experts one by one.
TinyFile flat_build(const TinyGemma& model, const Style& style, std::string config) {
  TinyFile file{.config = std::move(config), .tensors = {}};
  add_tables(model, style.prefix, file);
  for (const TinyLinear& linear : model.linears) {
    if (!is_shared_away(linear.name)) add_weight(linear.name, linear.weight, 0, style, file);
  }
  return file;
}

WeightSpec int4(Scheme scheme, std::string format = {}) {
  return {
      .name = "tiny", .scheme = scheme, .bits = 4, .group_size = 32, .format = std::move(format)};
}

// ---- GGUF ---------------------------------------------------------------------------------------

constexpr auto kGgufNames = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"embed_tokens", "token_embd"},
    {"embed_tokens_per_layer", "per_layer_token_embd"},
    {"per_layer_model_projection", "per_layer_model_proj"},
    {"per_layer_projection_norm", "per_layer_proj_norm"},
    {"norm", "output_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"per_layer_input_gate", "inp_gate"},
    {"per_layer_projection", "proj"},
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "post_attention_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {"post_per_layer_input_norm", "post_norm"},
    {"pre_feedforward_layernorm_2", "pre_ffw_norm_2"},
    {"post_feedforward_layernorm_1", "post_ffw_norm_1"},
    {"post_feedforward_layernorm_2", "post_ffw_norm_2"},
    {"layer_scalar", "layer_output_scale"},
    {"experts.gate_proj", "ffn_gate_exps"},
    {"experts.up_proj", "ffn_up_exps"},
    {"experts.down_proj", "ffn_down_exps"},
    {"router.proj", "ffn_gate_inp"},
    {"router.scale", "ffn_gate_inp.scale"},
    {"router.per_expert_scale", "ffn_down_exps.scale"},
});

// "layers.3.self_attn.q_proj" -> "blk.3.attn_q.weight"; names that end in ".scale" stay like that.
std::string gguf_name(std::string_view module) {
  constexpr std::string_view kWeight = ".weight";
  constexpr std::string_view kLayers = "layers.";
  if (module.ends_with(kWeight)) module.remove_suffix(kWeight.size());
  std::string block;
  if (module.starts_with(kLayers)) {
    const std::size_t dot = module.find('.', kLayers.size());
    block = fmt::format("blk.{}.", module.substr(kLayers.size(), dot - kLayers.size()));
    module.remove_prefix(dot + 1);
  }
  const auto* const found =
      std::ranges::find(kGgufNames, module, [](const auto& entry) { return entry.first; });
  if (found == kGgufNames.end()) throw std::logic_error(fmt::format("no GGUF name of {}", module));
  const bool is_scale = found->second.ends_with(".scale");
  return fmt::format("{}{}{}", block, found->second, is_scale ? "" : kWeight);
}

Bytes gguf_bytes(const std::vector<TinyTensor>& tensors) {
  GgufBuilder builder;
  builder.key("general.architecture", std::string("gemma4"))
      .key("gemma4.block_count", std::uint32_t{5})
      .key("gemma4.embedding_length", std::uint32_t{64})
      .key("gemma4.attention.head_count", std::uint32_t{2})
      .key("gemma4.attention.shared_kv_layers", std::uint32_t{2});
  for (const TinyTensor& tensor : tensors) {
    const Shape dims(tensor.shape.rbegin(), tensor.shape.rend());
    builder.tensor(tensor.name, tensor.dtype, dims, tensor.data);
  }
  return builder.build();
}

}  // namespace

TinyTensor& TinyFile::at(std::string_view name) {
  const auto found = std::ranges::find(tensors, name, &TinyTensor::name);
  if (found == tensors.end()) throw std::logic_error(fmt::format("the file has no {}", name));
  return *found;
}

std::string TinyFile::write(const std::filesystem::path& directory) const {
  if (container == Container::kGguf) {
    const auto path = directory / "tiny-q4_0.gguf";
    write_file(path, gguf_bytes(tensors));
    return path.string();
  }
  SafetensorsBuilder builder;
  for (const TinyTensor& tensor : tensors) {
    builder.tensor(tensor.name, tensor.dtype, tensor.shape, tensor.data);
  }
  write_checkpoint(directory, {.config = config, .shards = {{"model.safetensors", builder}}});
  return directory.string();
}

TinyFile tiny_source(const TinyGemma& model) {
  const std::string prefix = "model.language_model.";
  TinyFile file{.config = config_with(""), .tensors = {}};
  for (const TinyTable& table : model.tables) {
    file.tensors.push_back(numbers(prefix + table.name, Dtype::kBF16, table.shape, table.values));
  }
  std::map<std::string, std::pair<Shape, std::vector<double>>> stacks;
  for (const TinyLinear& linear : model.linears) {
    const Shape shape = {linear.weight.rows, linear.weight.columns};
    const std::vector<double> values = exact_values(linear.weight);
    const auto expert = expert_name(linear.name);
    if (!expert) {
      file.tensors.push_back(
          numbers(prefix + linear.name + ".weight", Dtype::kBF16, shape, values));
      continue;
    }
    // Gate and up of one expert follow each other, here as in the list.
    const bool fused = expert->projection != "down_proj";
    auto& [whole, all] = stacks[expert->prefix + (fused ? "gate_up_proj" : "down_proj")];
    all.insert(all.end(), values.begin(), values.end());
    const std::uint64_t rows = fused ? 2 * shape[0] : shape[0];
    whole = {all.size() / (rows * shape[1]), rows, shape[1]};
  }
  for (const auto& [name, stack] : stacks) {
    file.tensors.push_back(numbers(prefix + name, Dtype::kBF16, stack.first, stack.second));
  }
  return file;
}

TinyFile tiny_compressed_tensors(const TinyGemma& model) {
  const Style style{.prefix = "model.language_model.",
                    .like = int4(Scheme::kCtPackQuantized, "pack-quantized"),
                    .suffixes = {{Companion::kCodes, ".weight_packed"},
                                 {Companion::kScale, ".weight_scale"},
                                 {Companion::kShape, ".weight_shape"}}};
  return flat_build(model, style, config_with(kCompressedTensors));
}

TinyFile tiny_awq(const TinyGemma& model) {
  const Style style{.prefix = "model.",
                    .like = int4(Scheme::kAwqGemm),
                    .scale_dtype = Dtype::kF16,
                    .suffixes = {{Companion::kCodes, ".qweight"},
                                 {Companion::kScale, ".scales"},
                                 {Companion::kZeroPoint, ".qzeros"}}};
  return flat_build(model, style, config_with(kAwq));
}

TinyFile tiny_gptq(const TinyGemma& model, GptqVersion version) {
  const bool first = version == GptqVersion::kFirst;
  WeightSpec like = int4(Scheme::kGptq, first ? "gptq" : "gptq_v2");
  if (!first) like.gptq_zeros = WeightSpec::GptqZeros::kAsStored;
  const Style style{.prefix = "model.language_model.",
                    .like = like,
                    .scale_dtype = Dtype::kF16,
                    .suffixes = {{Companion::kCodes, ".qweight"},
                                 {Companion::kScale, ".scales"},
                                 {Companion::kZeroPoint, ".qzeros"},
                                 {Companion::kGroupIndex, ".g_idx"}}};
  return flat_build(model, style, config_with(fmt::format(fmt::runtime(kGptq), like.format)));
}

TinyFile tiny_gguf(const TinyGemma& model) {
  TinyFile file{.container = TinyFile::Container::kGguf, .config = {}, .tensors = {}};
  for (const TinyTable& table : model.tables) {
    const Dtype dtype = table.name.starts_with("embed_tokens") ? Dtype::kF16 : Dtype::kF32;
    file.tensors.push_back(numbers(gguf_name(table.name), dtype, table.shape, table.values));
  }
  const Style style{.prefix = "",
                    .like = int4(Scheme::kGgufBlock, "Q4_0"),
                    .scale_dtype = Dtype::kF16,
                    .suffixes = {{Companion::kCodes, ""}}};
  for (const TinyLinear& linear : model.linears) {
    if (expert_name(linear.name)) continue;
    add_weight(gguf_name(linear.name), linear.weight, 0, style, file);
  }
  for (const auto& [name, stack] : stacks_of(model)) {
    add_weight(gguf_name(name.first + name.second), stack.weight, stack.experts, style, file);
  }
  return file;
}

TinyFile tiny_mlx(const TinyGemma& model) {
  const Style style{.prefix = "language_model.model.",
                    .like = int4(Scheme::kMlxAffine),
                    .suffixes = {{Companion::kCodes, ".weight"},
                                 {Companion::kScale, ".scales"},
                                 {Companion::kOffset, ".biases"}}};
  TinyFile file{.config = config_with(kMlx), .tensors = {}};
  add_tables(model, style.prefix, file);
  for (const TinyLinear& linear : model.linears) {
    if (expert_name(linear.name) || is_shared_away(linear.name)) continue;
    add_weight(linear.name, linear.weight, 0, style, file);
  }
  for (const auto& [name, stack] : stacks_of(model)) {
    add_weight(name.first + "switch_glu." + name.second, stack.weight, stack.experts, style, file);
  }
  return file;
}

}  // namespace gridscope::test
