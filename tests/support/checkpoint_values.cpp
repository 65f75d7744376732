#include "support/checkpoint_values.hpp"

#include <algorithm>
#include <utility>

namespace gridscope::test {

using model::Part;
using model::Role;
using model::Scheme;
using model::Storage;

Status SparseSource::read_at(std::uint64_t offset, std::span<std::byte> into) const {
  GRIDSCOPE_CHECK(io::check_range(*this, offset, into.size()));
  std::ranges::fill(into, std::byte{0});
  for (const auto& [start, bytes] : islands_) {
    const std::uint64_t begin = std::max(start, offset);
    const std::uint64_t end = std::min(start + bytes.size(), offset + into.size());
    for (std::uint64_t at = begin; at < end; ++at) into[at - offset] = bytes[at - start];
  }
  return {};
}

CheckpointBuilder::CheckpointBuilder() {
  value.repository = {.kind = store::ReferenceKind::kHub,
                      .reference = "org/model",
                      .location = "org/model",
                      .revision = "main",
                      .commit = "1234567890abcdef1234567890abcdef12345678"};
  value.container = format::Container::kSafetensors;
  value.config.source = "config.json";
}

CheckpointBuilder& CheckpointBuilder::file(std::string path, std::string component) {
  value.files.push_back({.path = std::move(path),
                         .component = std::move(component),
                         .bytes = kHeaderBytes,
                         .header_bytes = kHeaderBytes,
                         .source = nullptr});
  islands_.emplace_back();
  return *this;
}

CheckpointBuilder& CheckpointBuilder::module(ModuleSpec spec) {
  value.modules.modules.push_back({.name = std::move(spec.name),
                                   .scheme = spec.scheme,
                                   .bits = spec.bits,
                                   .group_size = spec.group_size,
                                   .parameters = 0,
                                   .tensors = {}});
  places_.push_back(spec.place);
  return *this;
}

CheckpointBuilder& CheckpointBuilder::tensor(const std::string& suffix, Dtype dtype,
                                             std::vector<std::uint64_t> shape, Storage storage,
                                             std::optional<std::uint64_t> parameters) {
  if (value.files.empty()) file("model.safetensors");
  model::Module& module = value.modules.modules.back();
  std::uint64_t elements = 1;
  for (const std::uint64_t n : shape) elements *= n;
  const DtypeInfo& type = dtype_info(dtype);
  const std::uint64_t bytes = elements / type.block_elements * type.block_bits / 8;
  const bool counts = storage == Storage::kWeight || storage == Storage::kBias;
  module.tensors.push_back(static_cast<std::uint32_t>(value.tensors.size()));
  value.tensors.push_back({.name = module.name + '.' + suffix,
                           .dtype = dtype,
                           .shape = std::move(shape),
                           .offset = value.files.back().bytes,
                           .bytes = bytes});
  value.files.back().bytes += bytes;
  value.file_of.push_back(static_cast<std::uint32_t>(value.files.size() - 1));
  value.names.push_back(places_.back());
  value.modules.module_of.push_back(static_cast<std::uint32_t>(value.modules.modules.size() - 1));
  value.modules.storage_of.push_back(storage);
  value.modules.parameters_of.push_back(parameters.value_or(counts ? elements : 0));
  module.parameters += value.modules.parameters_of.back();
  return *this;
}

CheckpointBuilder& CheckpointBuilder::data(std::vector<std::byte> bytes, std::uint64_t offset) {
  islands_.back()[value.tensors.back().offset + offset] = std::move(bytes);
  return *this;
}

CheckpointBuilder& CheckpointBuilder::int4_module(const std::string& name,
                                                  const model::NameInfo& place, std::uint64_t rows,
                                                  std::uint64_t columns) {
  module({.name = name,
          .place = place,
          .scheme = Scheme::kCtPackQuantized,
          .bits = 4,
          .group_size = 32});
  tensor("weight_shape", Dtype::kI64, {2}, Storage::kShape);
  tensor("weight_packed", Dtype::kI32, {rows, columns / 8}, Storage::kPackedWeight, rows * columns);
  return tensor("weight_scale", Dtype::kBF16, {rows, columns / 32}, Storage::kScale);
}

model::Checkpoint CheckpointBuilder::build() {
  for (std::size_t i = 0; i < value.files.size(); ++i) {
    model::CheckpointFile& file = value.files[i];
    file.source = std::make_shared<SparseSource>(file.path, file.bytes, std::move(islands_[i]));
  }
  return std::move(value);
}

namespace {

// One module for each tensor: `count` of them that take `bytes` together.
void add_plain(CheckpointBuilder& builder, const ModuleSpec& spec, std::uint64_t count,
               std::uint64_t bytes) {
  const std::uint64_t elements = bytes / 2;
  for (std::uint64_t i = 0; i < count; ++i) {
    ModuleSpec one = spec;
    one.name += '.' + std::to_string(i);
    const std::uint64_t rest = i == 0 ? elements % count : 0;
    builder.module(std::move(one)).tensor("weight", Dtype::kBF16, {elements / count + rest});
  }
}

// `count` int4 modules, one a layer, whose codes take `packed_bytes` together.
void add_int4(CheckpointBuilder& builder, const std::string& name, Role role, std::uint64_t count,
              std::uint64_t packed_bytes) {
  constexpr std::uint64_t kColumns = 32;  // one group, in 16 bytes of codes
  constexpr std::uint32_t kLayers = 35;
  const std::uint64_t rows = packed_bytes / 16;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto layer = static_cast<std::uint32_t>(i % kLayers);
    const std::uint64_t rest = i == 0 ? rows % count : 0;
    builder.int4_module("model.layers." + std::to_string(layer) + '.' + name + std::to_string(i),
                        {.part = Part::kTransformerBody, .role = role, .layer = layer},
                        rows / count + rest, kColumns);
  }
}

}  // namespace

CheckpointBuilder e2b_w4a16() {
  constexpr std::uint64_t kVocabulary = 262'144;
  CheckpointBuilder builder;
  builder.value.repository.reference = "google/gemma-4-E2B-it-qat-w4a16-ct";
  builder.value.config.model_type = "gemma4";
  builder.value.config.architectures = {"Gemma4ForConditionalGeneration"};
  builder.value.config.tie_word_embeddings = true;
  builder.value.quantization =
      model::QuantizationConfig{.method = "compressed-tensors",
                                .format = "pack-quantized",
                                .bits = 4,
                                .group_size = 32,
                                .symmetric = true,
                                .config_source = "config.json quantization_config",
                                .schemes = {},
                                .ignore = {}};
  builder.module({"lm_head", {Part::kVocabularyEmbedding, Role::kLmHead, {}}})
      .tensor("weight", Dtype::kBF16, {kVocabulary, 1536})
      .module({"model.embed_tokens", {Part::kVocabularyEmbedding, Role::kEmbedTokens, {}}})
      .tensor("weight", Dtype::kBF16, {kVocabulary, 1536})
      .module({"model.embed_tokens_per_layer",
               {Part::kPerLayerEmbedding, Role::kPerLayerEmbedding, {}}})
      .tensor("weight", Dtype::kBF16, {kVocabulary, 8960});
  add_int4(builder, "self_attn.proj", Role::kAttention, 100, 139'198'464);
  add_int4(builder, "mlp.proj", Role::kMlp, 105, 778'567'680);
  add_int4(builder, "per_layer_proj", Role::kOther, 71, 20'643'840);
  const auto plain = [&](std::string name, Part part, Role role, std::uint64_t count,
                         std::uint64_t bytes) {
    add_plain(builder, {std::move(name), {part, role, {}}}, count, bytes);
  };
  plain("model.norm", Part::kTransformerBody, Role::kNorm, 227, 571'904);
  plain("model.layer_scalar", Part::kTransformerBody, Role::kOther, 35, 70);
  plain("model.audio_tower.conv", Part::kAudioTower, Role::kConvolution, 752, 614'368'768);
  plain("model.vision_tower.mlp", Part::kVisionTower, Role::kMlp, 659, 337'089'408);
  return builder;
}

}  // namespace gridscope::test
