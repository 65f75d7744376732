#include "gridscope/model/config.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace gridscope::model {
namespace {

// Where wrappers of several models keep the language model's own configuration.
constexpr std::array<std::string_view, 4> kTextConfigs = {"text_config", "llm_config",
                                                          "language_config", "text_cfg"};

using Keys = std::initializer_list<std::string_view>;

const std::string* string_of(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  return value == nullptr ? nullptr : value->string();
}

std::optional<std::uint64_t> number_of(const JsonValue& object, Keys keys) {
  for (const std::string_view key : keys) {
    const JsonValue* value = object.find(key);
    if (value != nullptr && value->unsigned_integer() != nullptr) return *value->unsigned_integer();
  }
  return std::nullopt;
}

std::optional<bool> flag_of(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  if (value == nullptr || value->boolean() == nullptr) return std::nullopt;
  return *value->boolean();
}

std::vector<std::string> architectures_of(const JsonValue& root) {
  std::vector<std::string> names;
  const JsonValue* list = root.find("architectures");
  if (list != nullptr && list->array() != nullptr) {
    for (const JsonValue& item : *list->array()) {
      if (item.string() != nullptr) names.push_back(*item.string());
    }
  }
  // A diffusers pipeline names its class instead.
  const std::string* pipeline = string_of(root, "_class_name");
  if (names.empty() && pipeline != nullptr) names.push_back(*pipeline);
  return names;
}

// The text model has the last word: that is where newer loaders look. transformers' Gemma classes
// tie when nobody says anything. Mistral's params.json has a word of its own.
std::optional<bool> ties(const ModelConfig& config) {
  if (const auto text = flag_of(config.text(), "tie_word_embeddings")) return text;
  if (const auto top = flag_of(config.root, "tie_word_embeddings")) return top;
  if (const auto native = flag_of(config.root, "tied_embeddings")) return native;
  if (config.model_type.starts_with("gemma")) return true;
  return std::nullopt;
}

// A head's width where nobody says it: the heads share the model's.
std::optional<std::uint64_t> share_of_heads(std::optional<std::uint64_t> hidden_size,
                                            std::optional<std::uint64_t> heads) {
  if (!hidden_size || !heads || *heads == 0) return std::nullopt;
  return *hidden_size / *heads;
}

// Of the model that this part of a configuration describes; the second names are those of Mistral's
// params.json and of GPT-2.
std::optional<std::uint64_t> hidden_size_of(const JsonValue& part) {
  return number_of(part, {"hidden_size", "dim", "n_embd", "d_model"});
}
std::optional<std::uint64_t> head_dim_of(const JsonValue& part) {
  if (const auto said = number_of(part, {"head_dim"})) return said;
  return share_of_heads(hidden_size_of(part),
                        number_of(part, {"num_attention_heads", "n_heads", "n_head"}));
}

std::optional<std::uint64_t> vision_head_dim_of(const JsonValue& root) {
  for (const std::string_view key : {"vision_config", "vision_encoder"}) {
    const JsonValue* part = root.find(key);
    if (part != nullptr && part->object() != nullptr) return head_dim_of(*part);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_count(const std::string* text) {
  if (text == nullptr) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

}  // namespace

const JsonValue& ModelConfig::text() const {
  const JsonValue* thinker = root.find("thinker_config");
  const JsonValue& outer = thinker != nullptr ? *thinker : root;
  for (const std::string_view key : kTextConfigs) {
    const JsonValue* inner = outer.find(key);
    if (inner != nullptr && inner->object() != nullptr) return *inner;
  }
  return root;
}

Result<ModelConfig> parse_config(std::string_view json, std::string source) {
  auto root = parse_json(json);
  if (!root) return tl::make_unexpected(with_context(std::move(root).error(), source));
  if (root->object() == nullptr) {
    return fail(ErrorCode::kCorrupt, fmt::format("{}: not a JSON object", source),
                "fetch the file again");
  }
  ModelConfig config;
  config.source = std::move(source);
  config.root = *std::move(root);
  if (const std::string* type = string_of(config.root, "model_type")) config.model_type = *type;
  config.architectures = architectures_of(config.root);
  config.tie_word_embeddings = ties(config);
  const JsonValue& text = config.text();
  config.hidden_size = hidden_size_of(text);
  config.vocab_size = number_of(text, {"vocab_size"});
  config.num_hidden_layers = number_of(text, {"num_hidden_layers", "n_layers", "n_layer"});
  config.num_kv_shared_layers = number_of(text, {"num_kv_shared_layers"});
  config.head_dim = head_dim_of(text);
  config.vision_head_dim = vision_head_dim_of(config.root);
  return config;
}

ModelConfig config_from_gguf(const format::TensorTable& table) {
  ModelConfig config;
  config.source = "GGUF metadata";
  if (const std::string* architecture = table.find_metadata("general.architecture")) {
    config.model_type = *architecture;
  }
  const auto count = [&](std::string_view key) {
    return parse_count(table.find_metadata(config.model_type + std::string(key)));
  };
  config.hidden_size = count(".embedding_length");
  config.vocab_size = count(".vocab_size");
  config.num_kv_shared_layers = count(".attention.shared_kv_layers");
  config.num_hidden_layers = count(".block_count");
  config.head_dim = count(".attention.key_length");
  if (!config.head_dim) {
    config.head_dim = share_of_heads(config.hidden_size, count(".attention.head_count"));
  }
  // Here the block count includes the layers that predict further tokens.
  const std::uint64_t predicting = count(".nextn_predict_layers").value_or(0);
  if (config.num_hidden_layers && predicting <= *config.num_hidden_layers) {
    *config.num_hidden_layers -= predicting;
  }
  return config;
}

}  // namespace gridscope::model
