#include "gridscope/model/quantization.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "gridscope/model/module_matcher.hpp"

// Every method has its own words for the same few facts. One reader per method turns them into
// schemes; what all schemes agree on is then lifted to the top.

namespace gridscope::model {
namespace {

using Scheme = QuantizationConfig::Scheme;
using Keys = std::initializer_list<std::string_view>;

// The first member of one of these names that is there and not null.
const JsonValue* find_any(const JsonValue& object, Keys keys) {
  for (const std::string_view key : keys) {
    const JsonValue* value = object.find(key);
    if (value != nullptr && !value->is_null()) return value;
  }
  return nullptr;
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string text_of(const JsonValue& object, Keys keys) {
  const JsonValue* value = find_any(object, keys);
  return value != nullptr && value->string() != nullptr ? lower(*value->string()) : std::string();
}

std::optional<std::uint32_t> bits_of(const JsonValue& object, Keys keys) {
  const JsonValue* value = find_any(object, keys);
  if (value == nullptr || value->unsigned_integer() == nullptr) return std::nullopt;
  const std::uint64_t bits = *value->unsigned_integer();
  if (bits == 0 || bits > 64) return std::nullopt;
  return static_cast<std::uint32_t>(bits);
}

std::optional<std::int64_t> group_of(const JsonValue& object, Keys keys) {
  constexpr std::uint64_t kMostWeights = 1U << 30U;  // beyond any row: not a group size
  const JsonValue* value = find_any(object, keys);
  if (value == nullptr) return std::nullopt;
  if (const std::uint64_t* size = value->unsigned_integer(); size != nullptr) {
    if (*size == 0 || *size > kMostWeights) return std::nullopt;
    return static_cast<std::int64_t>(*size);
  }
  const std::int64_t* negative = value->negative_integer();
  if (negative == nullptr || *negative != -1) return std::nullopt;
  return -1;
}

std::optional<bool> flag_of(const JsonValue& object, Keys keys) {
  const JsonValue* value = find_any(object, keys);
  if (value == nullptr || value->boolean() == nullptr) return std::nullopt;
  return *value->boolean();
}

std::vector<std::string> strings_of(const JsonValue* value) {
  std::vector<std::string> strings;
  if (value == nullptr || value->array() == nullptr) return strings;
  for (const JsonValue& item : *value->array()) {
    if (item.string() != nullptr) strings.push_back(*item.string());
  }
  return strings;
}

// "[128, 128]": rows and columns of a block; {0, 0} for anything else.
std::array<std::uint64_t, 2> block_of(const JsonValue* value) {
  if (value == nullptr || value->array() == nullptr || value->array()->size() != 2) return {};
  constexpr std::uint64_t kMostWeights = 1U << 30U;
  std::array<std::uint64_t, 2> block = {};
  for (std::size_t i = 0; i < block.size(); ++i) {
    const std::uint64_t* side = (*value->array())[i].unsigned_integer();
    if (side == nullptr || *side == 0 || *side > kMostWeights) return {};
    block[i] = *side;
  }
  return block;
}

// The columns of a block are what shares a scale within a row.
std::optional<std::int64_t> block_columns(const JsonValue* value) {
  const std::uint64_t columns = block_of(value)[1];
  if (columns == 0) return std::nullopt;
  return static_cast<std::int64_t>(columns);
}

// What is common to most methods, under all of its names.
Scheme common_scheme(const JsonValue& object) {
  Scheme scheme;
  scheme.format = text_of(object, {"checkpoint_format", "format", "version"});
  scheme.bits = bits_of(object, {"bits", "w_bit", "wbits"});
  scheme.group_size = group_of(object, {"group_size", "q_group_size"});
  scheme.symmetric = flag_of(object, {"sym"});
  scheme.act_order = flag_of(object, {"desc_act"});
  if (const auto zero_point = flag_of(object, {"zero_point"}); zero_point && !scheme.symmetric) {
    scheme.symmetric = !*zero_point;
  }
  return scheme;
}

// ---- compressed-tensors -------------------------------------------------------------------------

// Formats that a group may leave unsaid, from its arguments (compressed-tensors' own order).
std::string infer_format(const JsonValue& group, const JsonValue& weights) {
  const bool is_float = text_of(weights, {"type"}) == "float";
  const std::uint32_t bits = bits_of(weights, {"num_bits"}).value_or(8);
  const std::int64_t group_size = group_of(weights, {"group_size"}).value_or(0);
  const bool activations = find_any(group, {"input_activations"}) != nullptr;
  if (is_float && bits == 4)
    return group_size == 32 ? "mxfp4-pack-quantized" : "nvfp4-pack-quantized";
  if (is_float) return activations ? "float-quantized" : "naive-quantized";
  return activations ? "int-quantized" : "pack-quantized";
}

std::optional<std::int64_t> ct_group_size(const JsonValue& weights) {
  const std::string strategy = text_of(weights, {"strategy"});
  if (strategy == "channel") return -1;
  if (strategy == "tensor") return 0;
  if (strategy == "block") return block_columns(find_any(weights, {"block_structure"}));
  return group_of(weights, {"group_size"});
}

// A preset's name says it all: "W4A16", "W8A8", "FP8", "NVFP4A16", "MXFP4".
Scheme preset_scheme(std::string_view preset) {
  Scheme scheme;
  const std::string name = lower(std::string(preset));
  if (name.starts_with("fp8") || name.starts_with("w8") || name.starts_with("int8") ||
      name.starts_with("mxfp8")) {
    scheme.bits = 8;
  } else if (name.starts_with("w4") || name.starts_with("nvfp4") || name.starts_with("mxfp4")) {
    scheme.bits = 4;
  }
  return scheme;
}

std::optional<Scheme> ct_scheme(std::string_view name, const JsonValue& group) {
  if (group.array() != nullptr) {
    Scheme scheme = preset_scheme(name);
    scheme.targets = strings_of(&group);
    return scheme;
  }
  const JsonValue* weights = find_any(group, {"weights"});
  if (weights == nullptr || weights->object() == nullptr) return std::nullopt;
  Scheme scheme;
  scheme.targets = strings_of(group.find("targets"));
  scheme.format = text_of(group, {"format"});
  if (scheme.format.empty()) scheme.format = infer_format(group, *weights);
  scheme.bits = bits_of(*weights, {"num_bits"}).value_or(8);
  scheme.group_size = ct_group_size(*weights);
  scheme.symmetric = flag_of(*weights, {"symmetric"}).value_or(true);
  scheme.block = block_of(find_any(*weights, {"block_structure"}));
  return scheme;
}

void read_config_groups(const JsonValue& object, QuantizationConfig& config) {
  const JsonValue* groups = object.find("config_groups");
  if (groups == nullptr || groups->object() == nullptr) return;
  for (const auto& [name, group] : *groups->object()) {
    if (auto scheme = ct_scheme(name, group)) config.schemes.push_back(*std::move(scheme));
  }
}

void read_compressed_tensors(const JsonValue& object, QuantizationConfig& config) {
  config.format = text_of(object, {"format"});
  config.version = text_of(object, {"version"});
  config.ignore = strings_of(object.find("ignore"));
  // "dense" says that the weights were written out plain.
  if (config.format != "dense") read_config_groups(object, config);
}

// ---- AWQ, GPTQ, AutoRound -----------------------------------------------------------------------

void read_awq(const JsonValue& object, QuantizationConfig& config) {
  config.schemes.push_back(common_scheme(object));
  config.format = text_of(object, {"version", "format"});
  config.ignore = strings_of(object.find("modules_to_not_convert"));
}

// GPTQModel's per-module rules: "-:regex" leaves a module out, "+:regex" or "regex" overrides.
void read_dynamic(const JsonValue& object, QuantizationConfig& config) {
  const JsonValue* dynamic = object.find("dynamic");
  if (dynamic == nullptr || dynamic->object() == nullptr) return;
  const Scheme base = config.schemes.front();
  for (const auto& [key, rule] : *dynamic->object()) {
    if (key.starts_with("-:")) {
      config.ignore.push_back("re:" + key.substr(2));
      continue;
    }
    Scheme scheme = common_scheme(rule);
    scheme.targets = {"re:" + (key.starts_with("+:") ? key.substr(2) : key)};
    scheme.format = base.format;
    if (!scheme.bits) scheme.bits = base.bits;
    if (!scheme.group_size) scheme.group_size = base.group_size;
    if (!scheme.symmetric) scheme.symmetric = base.symmetric;
    if (!scheme.act_order) scheme.act_order = base.act_order;
    config.schemes.push_back(std::move(scheme));
  }
}

void read_gptq(const JsonValue& object, QuantizationConfig& config) {
  config.schemes.push_back(common_scheme(object));
  config.format = text_of(object, {"checkpoint_format", "format"});
  read_dynamic(object, config);
}

void read_auto_round(const JsonValue& object, QuantizationConfig& config) {
  const Scheme base = common_scheme(object);
  config.schemes.push_back(base);
  config.format = text_of(object, {"packing_format", "backend"});
  const JsonValue* overrides = object.find("extra_config");
  if (overrides == nullptr || overrides->object() == nullptr) return;
  for (const auto& [module, rule] : *overrides->object()) {
    Scheme scheme = common_scheme(rule);
    if (scheme.bits.value_or(0) >= 16) {
      config.ignore.push_back(module);
      continue;
    }
    scheme.targets = {module};
    if (!scheme.bits) scheme.bits = base.bits;
    if (!scheme.group_size) scheme.group_size = base.group_size;
    if (!scheme.symmetric) scheme.symmetric = base.symmetric;
    if (!scheme.act_order) scheme.act_order = base.act_order;
    config.schemes.push_back(std::move(scheme));
  }
}

// ---- bitsandbytes, FP8, MXFP4, ModelOpt, MLX, torchao -------------------------------------------

void read_bitsandbytes(const JsonValue& object, QuantizationConfig& config) {
  config.ignore = strings_of(object.find("llm_int8_skip_modules"));
  if (flag_of(object, {"load_in_4bit", "_load_in_4bit"}).value_or(false)) {
    config.format = text_of(object, {"bnb_4bit_quant_type"});
    config.schemes.push_back(
        {.targets = {}, .format = config.format, .bits = 4, .group_size = {}, .symmetric = {}});
  } else if (flag_of(object, {"load_in_8bit", "_load_in_8bit"}).value_or(false)) {
    config.format = "int8";
    config.schemes.push_back(
        {.targets = {}, .format = config.format, .bits = 8, .group_size = -1, .symmetric = true});
  }
}

void read_fp8(const JsonValue& object, QuantizationConfig& config) {
  config.format = text_of(object, {"fmt"});
  config.ignore = strings_of(find_any(object, {"modules_to_not_convert", "ignored_layers"}));
  const JsonValue* block = object.find("weight_block_size");
  config.schemes.push_back(
      {.targets = {},
       .format = config.format,
       .bits = 8,
       .group_size = block_columns(block),
       .symmetric = {},
       .block = block_of(block),
       .divides_by_scale = text_of(object, {"weight_scale_semantics"}) == "inverse"});
}

void read_mxfp4(const JsonValue& object, QuantizationConfig& config) {
  config.ignore = strings_of(object.find("modules_to_not_convert"));
  config.schemes.push_back(
      {.targets = {}, .format = "mxfp4", .bits = 4, .group_size = 32, .symmetric = {}});
}

// What ModelOpt's algorithm names mean for weights. None for names that say nothing about them.
std::optional<Scheme> modelopt_scheme(const JsonValue& object) {
  const std::string algorithm = text_of(object, {"quant_algo"});
  if (algorithm.empty() || algorithm == "mixed_precision") return std::nullopt;
  Scheme scheme;
  scheme.format = algorithm;
  scheme.group_size = group_of(object, {"group_size"});
  const auto has = [&](std::string_view part) { return algorithm.find(part) != std::string::npos; };
  if (has("fp4") || has("w4")) {
    scheme.bits = 4;
    if (!scheme.group_size && has("nvfp4")) scheme.group_size = 16;
    if (!scheme.group_size && has("mxfp4")) scheme.group_size = 32;
  } else if (has("fp8") || has("w8") || has("int8")) {
    scheme.bits = 8;
    if (has("mxfp8")) scheme.group_size = 32;
  }
  return scheme;
}

void read_modelopt(const JsonValue& outer, QuantizationConfig& config) {
  const JsonValue* nested = outer.find("quantization");
  const JsonValue& object = nested != nullptr && nested->object() != nullptr ? *nested : outer;
  config.format = text_of(object, {"quant_algo"});
  config.ignore = strings_of(find_any(object, {"exclude_modules", "ignore"}));
  const JsonValue* layers = object.find("quantized_layers");
  if (layers != nullptr && layers->object() != nullptr) {
    for (const auto& [module, rule] : *layers->object()) {
      auto scheme = modelopt_scheme(rule);
      if (!scheme) continue;
      scheme->targets = {module};
      config.schemes.push_back(*std::move(scheme));
    }
  } else if (auto scheme = modelopt_scheme(object)) {
    config.schemes.push_back(*std::move(scheme));
  } else {
    read_config_groups(object, config);
  }
}

void read_mlx(const JsonValue& object, QuantizationConfig& config) {
  const auto mlx_scheme = [](const JsonValue& rule) {
    Scheme scheme = common_scheme(rule);
    scheme.format = text_of(rule, {"mode"});
    if (scheme.format.empty()) scheme.format = "affine";
    return scheme;
  };
  config.schemes.push_back(mlx_scheme(object));
  config.format = config.schemes.front().format;
  for (const auto& [module, rule] : *object.object()) {
    if (rule.boolean() != nullptr && !*rule.boolean()) config.ignore.push_back(module);
    if (rule.object() == nullptr) continue;
    Scheme scheme = mlx_scheme(rule);
    scheme.targets = {module};
    config.schemes.push_back(std::move(scheme));
  }
}

// torchao names a class ("Int4WeightOnlyConfig") and its arguments.
void read_torchao(const JsonValue& object, QuantizationConfig& config) {
  config.ignore = strings_of(object.find("modules_to_not_convert"));
  const JsonValue* type = object.find("quant_type");
  if (type != nullptr && type->find("default") != nullptr) type = type->find("default");
  Scheme scheme;
  if (type != nullptr) {
    scheme.format = type->string() != nullptr ? lower(*type->string()) : text_of(*type, {"_type"});
    if (const JsonValue* data = type->find("_data")) {
      scheme.group_size = group_of(*data, {"group_size"});
    }
  }
  const auto has = [&](std::string_view part) {
    return scheme.format.find(part) != std::string::npos;
  };
  if (has("int4")) {
    scheme.bits = 4;
  } else if (has("int8") || has("float8") || has("fp8")) {
    scheme.bits = 8;
  }
  config.format = scheme.format;
  config.schemes.push_back(std::move(scheme));
}

// Any other method: what it says in the usual words.
void read_other(const JsonValue& object, QuantizationConfig& config) {
  config.schemes.push_back(common_scheme(object));
  config.format = config.schemes.front().format;
  config.ignore = strings_of(find_any(object, {"modules_to_not_convert", "ignore"}));
}

struct Method {
  std::string_view name;
  void (*read)(const JsonValue&, QuantizationConfig&);
};
constexpr std::array kMethods = std::to_array<Method>({
    {"compressed-tensors", read_compressed_tensors},
    {"awq", read_awq},
    {"gptq", read_gptq},
    {"gptqmodel", read_gptq},
    {"auto-round", read_auto_round},
    {"intel/auto-round", read_auto_round},
    {"bitsandbytes", read_bitsandbytes},
    {"fp8", read_fp8},
    {"mxfp4", read_mxfp4},
    {"modelopt", read_modelopt},
    {"modelopt_fp4", read_modelopt},
    {"modelopt_mixed", read_modelopt},
    {"mlx", read_mlx},
    {"torchao", read_torchao},
});

// The value that all schemes share; empty when they differ or there is none.
template <typename T>
std::optional<T> agreed(const std::vector<Scheme>& schemes, std::optional<T> Scheme::* member) {
  if (schemes.empty()) return std::nullopt;
  const std::optional<T> first = schemes.front().*member;
  const bool same =
      std::ranges::all_of(schemes, [&](const Scheme& scheme) { return scheme.*member == first; });
  return same ? first : std::nullopt;
}

QuantizationConfig read_method(const JsonValue& object, std::string method, std::string source) {
  QuantizationConfig config;
  config.method = std::move(method);
  config.config_source = std::move(source);
  const auto* known = std::ranges::find(kMethods, config.method, &Method::name);
  (known == kMethods.end() ? read_other : known->read)(object, config);
  config.bits = agreed(config.schemes, &Scheme::bits);
  config.group_size = agreed(config.schemes, &Scheme::group_size);
  config.symmetric = agreed(config.schemes, &Scheme::symmetric);
  return config;
}

std::string method_of(const JsonValue& object) {
  return text_of(object, {"quant_method", "method"});
}

bool is_object(const JsonValue* value) {
  return value != nullptr && value->object() != nullptr && !value->object()->empty();
}

std::optional<QuantizationConfig> from_mistral_params(const JsonValue& root) {
  const JsonValue* object = root.find("quantization");
  if (!is_object(object)) return std::nullopt;
  if (is_object(object->find("config_groups"))) {
    return read_method(*object, "compressed-tensors", "params.json quantization");
  }
  const bool fp8 = text_of(*object, {"qformat_weight"}).starts_with("fp8");
  return read_method(*object, fp8 ? "fp8" : method_of(*object), "params.json quantization");
}

}  // namespace

std::vector<std::string_view> quantization_side_files() {
  return {"quantize_config.json", "quant_config.json", "hf_quant_config.json",
          "quantization_config.json", "params.json"};
}

std::optional<QuantizationConfig> quantization_from_config(const JsonValue& root) {
  const JsonValue* mlx = root.find("quantization");
  const auto read = [&](const JsonValue& object, std::string_view key) {
    std::string method = method_of(object);
    // MLX repeats its own key under the usual one, where it has no method.
    if (method.empty() && is_object(mlx)) {
      return read_method(*mlx, "mlx", "config.json quantization");
    }
    return read_method(object, std::move(method), "config.json " + std::string(key));
  };
  if (const auto* value = root.find("quantization_config"); is_object(value)) {
    return read(*value, "quantization_config");
  }
  if (const JsonValue* text = root.find("text_config"); text != nullptr) {
    const JsonValue* value = text->find("quantization_config");
    if (is_object(value)) return read(*value, "text_config.quantization_config");
  }
  if (const auto* value = root.find("compression_config"); is_object(value)) {
    return read_method(*value, "compressed-tensors", "config.json compression_config");
  }
  if (is_object(mlx)) {
    std::string method = method_of(*mlx);
    return read_method(*mlx, method.empty() ? "mlx" : std::move(method),
                       "config.json quantization");
  }
  return std::nullopt;
}

std::optional<QuantizationConfig> quantization_from_side_file(std::string_view file,
                                                              const JsonValue& root) {
  if (root.object() == nullptr) return std::nullopt;
  if (file == "params.json") return from_mistral_params(root);
  std::string method = method_of(root);
  if (method.empty() && file == "quantize_config.json") method = "gptq";
  if (method.empty() && file == "quant_config.json") method = "awq";
  if (file == "hf_quant_config.json") method = "modelopt";
  return read_method(root, std::move(method), std::string(file));
}

bool is_ignored(const QuantizationConfig& config, std::string_view module) {
  return ModuleMatcher(config).ignores(module);
}

}  // namespace gridscope::model
