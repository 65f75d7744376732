#include "gridscope/model/names.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "gridscope/model/tensor_suffix.hpp"

// A name is cut at its dots, freed of wrappers and of the prefix of its family, and then read from
// the front: a tower's name decides at once, otherwise what stands before the layer number tells
// vocabulary from body, and what follows it tells the role. All by equality or containment of
// single segments: no allocation, one pass.

namespace gridscope::model {
namespace {

using Words = std::span<const std::string_view>;

// Names deeper than this are read as far as it goes.
constexpr std::size_t kMaxSegments = 24;

// What training and adapter wrappers leave in names, wherever it stands.
constexpr std::array<std::string_view, 4> kWrappers = {"_orig_mod", "_checkpoint_wrapped_module",
                                                       "_fsdp_wrapped_module", "base_layer"};
constexpr std::array<std::string_view, 2> kLeadingWrappers = {"module", "base_model"};

// Prefixes of the language model, families A to D.
constexpr std::array<std::string_view, 2> kTextFamilies = {"model", "language_model"};
// Further ones, which say nothing about the part but are not brought to one form.
constexpr std::array<std::string_view, 6> kOtherFamilies = {
    "thinker", "text_model", "llm", "transformer", "gpt_neox", "backbone"};

constexpr std::array<std::string_view, 29> kVisionNames = {"vision_tower",
                                                           "vision_model",
                                                           "vision_encoder",
                                                           "vision_embedder",
                                                           "vision_backbone",
                                                           "vision_embed_tokens",
                                                           "vision_language_adapter",
                                                           "vision_adapter",
                                                           "vision_proj",
                                                           "vision_projection",
                                                           "vision_resampler",
                                                           "visual",
                                                           "visual_projection",
                                                           "visual_model",
                                                           "visual_tokenizer",
                                                           "embed_vision",
                                                           "multi_modal_projector",
                                                           "mm_projector",
                                                           "connector",
                                                           "image_newline",
                                                           "image_encoder",
                                                           "image_embed",
                                                           "image_projection",
                                                           "img_projector",
                                                           "patch_merger",
                                                           "pre_mm_projector_norm",
                                                           "resampler",
                                                           "vpm",
                                                           "vit"};
// These mean a tower only at the very front: the projector of InternVL, and GGUF's own names.
constexpr std::array<std::string_view, 1> kFrontVisionNames = {"mlp1"};
constexpr std::array<std::string_view, 2> kGgufVisionNames = {"v", "mm"};
constexpr std::array<std::string_view, 18> kAudioNames = {"audio_tower",
                                                          "audio_model",
                                                          "audio_encoder",
                                                          "audio_embedder",
                                                          "embed_audio",
                                                          "audio_projector",
                                                          "audio_projection",
                                                          "audio_embed",
                                                          "audio_adapter",
                                                          "audio_language_projection",
                                                          "mm_whisper_embeddings",
                                                          "whisper_encoder",
                                                          "speech_encoder",
                                                          "speech_projector",
                                                          "wav2vec2",
                                                          "hubert",
                                                          "wavlm",
                                                          "apm"};
// Within a tower: what brings its output to the width of the language model.
constexpr std::array<std::string_view, 20> kProjectorNames = {"multi_modal_projector",
                                                              "mm_projector",
                                                              "embed_vision",
                                                              "embed_audio",
                                                              "connector",
                                                              "vision_language_adapter",
                                                              "vision_proj",
                                                              "vision_projection",
                                                              "visual_projection",
                                                              "image_projection",
                                                              "img_projector",
                                                              "audio_projector",
                                                              "audio_projection",
                                                              "audio_language_projection",
                                                              "speech_projector",
                                                              "patch_merger",
                                                              "merger",
                                                              "mlp1",
                                                              "resampler",
                                                              "mm"};

constexpr std::array<std::string_view, 12> kInputEmbeddings = {
    "embed_tokens", "tok_embeddings",  "token_embd", "wte",    "word_embeddings", "word_embedding",
    "embed_in",     "token_embedding", "embedding",  "shared", "embed",           "embeddings"};
constexpr std::array<std::string_view, 8> kOutputEmbeddings = {
    "lm_head",     "output", "output_layer", "embed_out",
    "unembedding", "head",   "proj_out",     "predictions"};
constexpr std::array<std::string_view, 2> kPerLayerEmbeddings = {"embed_tokens_per_layer",
                                                                 "per_layer_token_embd"};
// Names that mean the vocabulary only as the whole module, at the very front.
constexpr std::array<std::string_view, 8> kOnlyAlone = {
    "output", "head", "embedding", "embed", "shared", "unembedding", "proj_out", "embeddings"};

constexpr std::array<std::string_view, 10> kBodyNames = {
    "encoder",    "decoder",       "pooler", "embeddings", "wpe",
    "rope_freqs", "position_embd", "enc",    "dec",        "token_types"};
constexpr std::array<std::string_view, 7> kLayerLists = {"layers", "layer", "h",        "blocks",
                                                         "block",  "blk",   "resblocks"};
constexpr std::array<std::string_view, 4> kMtpMarks = {"eh_proj", "enorm", "hnorm", "shared_head"};

bool is_one_of(std::string_view word, Words words) {
  return std::ranges::find(words, word) != words.end();
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::optional<std::uint32_t> parse_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The segments of a name, without wrappers.
class Path {
 public:
  explicit Path(std::string_view name) {
    while (!name.empty() && count_ < kMaxSegments) {
      const std::size_t dot = name.find('.');
      add(name.substr(0, dot));
      name = dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
    }
  }

  [[nodiscard]] Words segments() const { return Words(segments_).subspan(first_, count_ - first_); }
  // Drops leading segments of these names while something follows.
  void drop_leading(Words names) {
    while (count_ - first_ > 1 && is_one_of(segments_[first_], names)) ++first_;
  }

 private:
  void add(std::string_view segment) {
    if (is_one_of(segment, kWrappers)) return;
    if (count_ == 0 && is_one_of(segment, kLeadingWrappers)) return;
    segments_[count_++] = segment;
  }

  std::array<std::string_view, kMaxSegments> segments_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

bool is_layer_list(std::string_view segment) {
  return is_one_of(segment, kLayerLists) || segment.ends_with("_layers") ||
         segment.ends_with("_blocks");
}

// Where the first layer list stands that a number follows; the number of segments when none does.
std::size_t find_layer_list(Words path) {
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    if (is_layer_list(path[i]) && parse_number(path[i + 1])) return i;
  }
  return path.size();
}

// A module's name read once; everything is decided from it.
struct Reading {
  Words path;
  std::size_t layer_list = 0;
  std::optional<std::uint32_t> layer;

  [[nodiscard]] std::string_view leaf() const { return path.empty() ? "" : path.back(); }
  [[nodiscard]] std::string_view owner() const {
    return path.size() < 2 ? "" : path[path.size() - 2];
  }
};

Reading read_path(Words path) {
  Reading reading{.path = path, .layer_list = find_layer_list(path), .layer = {}};
  if (reading.layer_list < path.size()) reading.layer = parse_number(path[reading.layer_list + 1]);
  return reading;
}

bool has_any(Words path, Words names) {
  return std::ranges::any_of(path, [&](std::string_view s) { return is_one_of(s, names); });
}

std::optional<Part> tower_of(const Reading& name, format::Container container) {
  // What names a tower stands in front of the tower's layers; a language model's layers may well
  // hold a projection with such a name.
  const Words front = name.path.first(std::min<std::size_t>(name.layer_list, 4));
  if (front.empty()) return std::nullopt;
  // A tower holds something; a tensor called "a" or "v" is just that.
  const bool has_more = name.path.size() > 1;
  const bool gguf = has_more && container == format::Container::kGguf;
  if (has_any(front, kAudioNames) || (gguf && front[0] == "a")) {
    return is_one_of("tok_embeddings", front) ? Part::kVocabularyEmbedding : Part::kAudioTower;
  }
  if (has_any(front, kVisionNames) || (has_more && is_one_of(front[0], kFrontVisionNames)) ||
      (gguf && is_one_of(front[0], kGgufVisionNames))) {
    return front.size() > 1 && front[0] == "mm" && front[1] == "a" ? Part::kAudioTower
                                                                   : Part::kVisionTower;
  }
  return std::nullopt;
}

bool is_mtp(const Reading& name, std::optional<std::uint64_t> mtp_from) {
  const Words front = name.path.first(std::min<std::size_t>(name.path.size(), 3));
  const auto names_it = [](std::string_view s) {
    return s.starts_with("mtp") || s.starts_with("nextn");
  };
  if (std::ranges::any_of(front, names_it) || has_any(name.path, kMtpMarks)) return true;
  const bool of_decoder = name.layer_list == 0 && name.layer.has_value();
  return of_decoder && mtp_from && *name.layer >= *mtp_from;
}

bool is_vocabulary(const Reading& name) {
  if (name.layer) return false;
  const auto means_vocabulary = [&](std::string_view segment) {
    if (!is_one_of(segment, kInputEmbeddings) && !is_one_of(segment, kOutputEmbeddings))
      return false;
    return !is_one_of(segment, kOnlyAlone) || name.path.size() == 1;
  };
  return std::ranges::any_of(name.path, means_vocabulary);
}

bool is_norm(std::string_view leaf) {
  return contains(leaf, "norm") || contains(leaf, "Norm") || leaf.starts_with("ln_") ||
         leaf.starts_with("patch_ln") || leaf == "ln" || leaf == "ln1" || leaf == "ln2";
}

Part part_of(const Reading& name, const NameContext& context) {
  if (name.path.empty()) return Part::kOther;
  if (const auto tower = tower_of(name, context.container)) return *tower;
  if (is_mtp(name, context.mtp_from)) return Part::kMtp;
  if (has_any(name.path, kPerLayerEmbeddings)) return Part::kPerLayerEmbedding;
  if (is_vocabulary(name)) return Part::kVocabularyEmbedding;
  const std::string_view first = name.path[0];
  const bool body = name.layer || is_one_of(first, kBodyNames) || is_norm(first) ||
                    first.starts_with("per_layer_") || first.starts_with("altup_") ||
                    has_any(name.path, std::array<std::string_view, 1>{"pooler"});
  return body ? Part::kTransformerBody : Part::kOther;
}

bool is_position(std::string_view s) {
  static constexpr std::array<std::string_view, 9> kMarks = {
      "position_embed", "pos_embed", "pos_emb",    "embed_positions",         "position_embd",
      "rotary",         "inv_freq",  "rope_freqs", "relative_attention_bias",
  };
  return s == "wpe" || std::ranges::any_of(kMarks, [&](auto mark) { return contains(s, mark); });
}

bool is_router(const Reading& name) {
  static constexpr std::array<std::string_view, 6> kRouters = {
      "router",      "shared_expert_gate",     "ffn_gate_inp", "ffn_gate_inp_shexp",
      "exp_probs_b", "e_score_correction_bias"};
  static constexpr std::array<std::string_view, 5> kMoeBlocks = {"mlp", "block_sparse_moe", "moe",
                                                                 "feed_forward", "ffn"};
  return has_any(name.path, kRouters) ||
         (name.leaf() == "gate" && is_one_of(name.owner(), kMoeBlocks));
}

bool is_shared_expert(std::string_view s) {
  return s == "shared_experts" || s == "shared_expert" || s == "shared_mlp" ||
         contains(s, "_shexp");
}

bool is_routed_expert(std::string_view s) {
  // gpt-oss has nothing but routed experts in its blocks and calls them so.
  static constexpr std::array<std::string_view, 4> kGptOss = {"mlp1_weight", "mlp1_bias",
                                                              "mlp2_weight", "mlp2_bias"};
  return is_one_of(s, kGptOss) || s == "experts" || s == "local_experts" || s == "switch_glu" ||
         s == "switch_mlp" || contains(s, "_exps");
}

bool is_convolution(std::string_view s) {
  return contains(s, "conv") || s == "patch_embed" || s == "patch_embedding" || s == "patch_embd";
}

bool is_attention(std::string_view s) {
  static constexpr std::array<std::string_view, 6> kProjections = {"q_proj", "k_proj", "v_proj",
                                                                   "o_proj", "qkv",    "qkv_proj"};
  return contains(s, "attn") || contains(s, "ttention") || is_one_of(s, kProjections);
}

bool is_mlp(std::string_view s) {
  static constexpr std::array<std::string_view, 10> kWords = {
      "fc1",     "fc2",       "c_fc",           "intermediate",  "gate_proj",
      "up_proj", "down_proj", "DenseReluDense", "dense_h_to_4h", "dense_4h_to_h"};
  return contains(s, "mlp") || contains(s, "ffn") || contains(s, "ffw") ||
         contains(s, "feed_forward") || contains(s, "feedforward") || is_one_of(s, kWords);
}

Role vocabulary_role(const Reading& name) {
  return has_any(name.path, kOutputEmbeddings) ? Role::kLmHead : Role::kEmbedTokens;
}

Role role_of(const Reading& name, Part part) {
  if (part == Part::kVocabularyEmbedding) return vocabulary_role(name);
  if (part == Part::kPerLayerEmbedding) return Role::kPerLayerEmbedding;
  const auto any = [&](auto predicate) { return std::ranges::any_of(name.path, predicate); };
  const bool in_tower = part == Part::kVisionTower || part == Part::kAudioTower;
  if (is_norm(name.leaf())) return Role::kNorm;
  if (any(is_position)) return Role::kPositionEmbedding;
  if (is_router(name)) return Role::kRouter;
  if (any(is_shared_expert)) return Role::kSharedExperts;
  if (any(is_routed_expert)) return Role::kRoutedExperts;
  if (in_tower && has_any(name.path, kProjectorNames)) return Role::kProjector;
  if (any(is_convolution)) return Role::kConvolution;
  if (any(is_attention)) return Role::kAttention;
  // BERT calls the second half of its feed-forward block "layer.N.output".
  const bool bert_output = name.layer && name.owner() == "output";
  return any(is_mlp) || bert_output ? Role::kMlp : Role::kOther;
}

// The module of a tensor, without the prefix of any family.
Path module_path(std::string_view tensor) {
  Path path(split_suffix(tensor).module);
  path.drop_leading(kTextFamilies);
  path.drop_leading(kOtherFamilies);
  path.drop_leading(kTextFamilies);
  return path;
}

struct Label {
  std::string_view key;
  std::string_view title;
};

constexpr std::array<Label, 7> kParts = {{{"per_layer_embedding", "per-layer embedding"},
                                          {"vocabulary_embedding", "vocabulary embedding"},
                                          {"transformer_body", "transformer body"},
                                          {"audio_tower", "audio tower"},
                                          {"vision_tower", "vision tower"},
                                          {"mtp", "multi-token prediction"},
                                          {"other", "other"}}};
constexpr std::array<Label, 13> kRoles = {{{"embed_tokens", "token embedding"},
                                           {"lm_head", "output layer"},
                                           {"per_layer_embedding", "per-layer embedding"},
                                           {"attention", "attention"},
                                           {"mlp", "MLP"},
                                           {"routed_experts", "routed experts"},
                                           {"shared_experts", "shared experts"},
                                           {"router", "router"},
                                           {"norms", "norms"},
                                           {"projector", "projector"},
                                           {"convolution", "convolution"},
                                           {"position_embedding", "position embedding"},
                                           {"other", "other"}}};

}  // namespace

std::string_view part_key(Part part) {
  return kParts.at(static_cast<std::size_t>(part)).key;
}
std::string_view part_title(Part part) {
  return kParts.at(static_cast<std::size_t>(part)).title;
}
std::string_view role_key(Role role) {
  return kRoles.at(static_cast<std::size_t>(role)).key;
}
std::string_view role_title(Role role) {
  return kRoles.at(static_cast<std::size_t>(role)).title;
}

NameInfo classify_name(std::string_view tensor, const NameContext& context) {
  const Path path = module_path(tensor);
  const Reading name = read_path(path.segments());
  NameInfo info;
  info.part = part_of(name, context);
  info.role = role_of(name, info.part);
  info.layer = name.layer;
  return info;
}

void settle_parts(std::span<const format::TensorInfo> tensors, std::span<NameInfo> names) {
  bool sees = false;
  bool hears = false;
  bool encodes_audio = false;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    sees |= names[i].part == Part::kVisionTower && names[i].role != Role::kProjector;
    hears |= names[i].part == Part::kAudioTower;
    encodes_audio |= tensors[i].name.ends_with("encoder.conv1.weight") &&
                     module_path(tensors[i].name).segments().size() == 2;
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const bool projector = names[i].part == Part::kVisionTower && hears && !sees;
    const bool encoder =
        encodes_audio && module_path(tensors[i].name).segments().front() == "encoder";
    if (projector || encoder) names[i].part = Part::kAudioTower;
  }
}

std::string canonical_module(std::string_view module) {
  Path path(module);
  path.drop_leading(kTextFamilies);
  std::string name;
  name.reserve(module.size());
  for (const std::string_view segment : path.segments()) {
    if (!name.empty()) name += '.';
    name += segment;
  }
  // Gemma 4 wraps the linear layers of its towers; builds name either the wrapper or what is in it.
  constexpr std::string_view kWrapped = ".linear";
  const bool in_tower = name.starts_with("vision_tower.") || name.starts_with("audio_tower.");
  if (in_tower && name.ends_with(kWrapped)) name.resize(name.size() - kWrapped.size());
  return name;
}

}  // namespace gridscope::model
