#include "gridscope/model/weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "gridscope/core/text.hpp"
#include "gridscope/model/canonical_names.hpp"
#include "gridscope/model/gguf_names.hpp"
#include "gridscope/model/module_matcher.hpp"
#include "gridscope/model/tensor_suffix.hpp"
#include "gridscope/model/weight_claim.hpp"
#include "gridscope/model/weight_shape.hpp"
#include "gridscope/model/weight_stacks.hpp"

// One pass over the modules gives each tensor its part; what only the whole list tells, the order
// of dimensions and the side scales of GGUF, is settled afterwards.

namespace gridscope::model {
namespace {

using format::TensorInfo;
using quant::Companion;
using quant::StoredTensor;

// Companions that are read whole have at most a number for each row or column.
constexpr std::uint64_t kMaxCompanionBytes = 64 * 1024 * 1024;

std::optional<Companion> companion_of(Suffix suffix) {
  switch (suffix) {
    case Suffix::kWeight:
    case Suffix::kWeightPacked:
    case Suffix::kCompressed:
    case Suffix::kQweight:
    case Suffix::kMarlinB:
    case Suffix::kBlocks:
    case Suffix::kQdata:
    case Suffix::kTrellis:
      return Companion::kCodes;
    case Suffix::kWeightScale:
    case Suffix::kWeightScaleInverse:
    case Suffix::kScalePacked:
    case Suffix::kScale:
    case Suffix::kScb:
    case Suffix::kAbsmax:
    case Suffix::kScales:
    case Suffix::kMarlinScales:
    case Suffix::kQdataScale:
      return Companion::kScale;
    case Suffix::kWeightZeroPoint:
    case Suffix::kQzeros:
    case Suffix::kQdataZeroPoint:
      return Companion::kZeroPoint;
    case Suffix::kBiases:
      return Companion::kOffset;
    case Suffix::kWeightGroupIndex:
    case Suffix::kGroupIndex:
      return Companion::kGroupIndex;
    case Suffix::kWeightShape:
    case Suffix::kShape:
      return Companion::kShape;
    case Suffix::kWeightGlobalScale:
    case Suffix::kWeightScale2:
      return Companion::kGlobalScale;
    case Suffix::kPreQuantScale:
      return Companion::kPreQuantScale;
    case Suffix::kQuantMap:
      return Companion::kQuantMap;
    case Suffix::kQuantState:
      return Companion::kQuantState;
    case Suffix::kNestedAbsmax:
      return Companion::kNestedScale;
    case Suffix::kNestedQuantMap:
      return Companion::kNestedQuantMap;
    case Suffix::kWeightFormat:
      return Companion::kWeightFormat;
    case Suffix::kBitmask:
      return Companion::kBitmask;
    case Suffix::kRowOffsets:
      return Companion::kRowOffsets;
    default:
      return std::nullopt;
  }
}

std::string obstacle_of(const Weight& weight) {
  const StoredTensor* codes = weight.spec.find(Companion::kCodes);
  if (codes == nullptr) return "the tensor that holds its codes is missing";
  const std::string_view reason = quant::identify_only(weight.spec.scheme);
  if (!reason.empty()) return fmt::format("recognised, but not decoded: {}", reason);
  if (weight.spec.scheme == Scheme::kPlain && !is_plain_float(codes->dtype)) {
    return fmt::format("{} values without a scale", dtype_name(codes->dtype));
  }
  if (weight.rows() == 0 || weight.columns() == 0) return "it holds no weights";
  return {};
}

ModuleClass class_of(Role role) {
  const bool embeds = role == Role::kEmbedTokens || role == Role::kPerLayerEmbedding;
  return embeds ? ModuleClass::kEmbedding : ModuleClass::kLinear;
}

class Listing {
 public:
  explicit Listing(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {
    const auto& claim = checkpoint.quantization;
    if (claim && !claim->config_source.empty()) {
      config_ = &*claim;
      matcher_.emplace(*claim);
    }
  }

  std::vector<Weight> run() && {
    const auto& modules = checkpoint_.modules.modules;
    for (std::uint32_t i = 0; i < modules.size(); ++i) add_module(i);
    attach_side_scales();
    std::vector<Weight> weights = settle_orders(std::move(weights_), checkpoint_.config.model_type);
    std::ranges::sort(weights, {}, &Weight::name);
    return weights;
  }

 private:
  void add_module(std::uint32_t number) {
    const Module& module = checkpoint_.modules.modules[number];
    if (module.tensors.empty()) return;
    Weight weight = named(module.name, number);
    bool low_rank = false;
    std::optional<std::uint32_t> codes;
    for (const std::uint32_t tensor : module.tensors) {
      const TensorInfo& info = checkpoint_.tensors[tensor];
      const bool alone = info.name == module.name;
      const Suffix suffix = alone ? Suffix::kWeight : split_suffix(info.name).suffix;
      if (suffix == Suffix::kBias) add_bias(module, number, tensor);
      low_rank |= suffix == Suffix::kLowRank;
      const std::optional<Companion> companion = companion_of(suffix);
      if (!companion || (alone && !holds_numbers(module, tensor))) continue;
      if (companion == Companion::kCodes) codes = tensor;
      attach(weight, *companion, tensor);
    }
    const bool has_any = std::ranges::any_of(weight.places, [](const auto& p) { return !!p; });
    if (!has_any) return;
    weight.spec.scheme = module.scheme;
    if (codes) describe(weight, module, *codes);
    weight.obstacle = low_rank ? "a low-rank term is added to it" : obstacle_of(weight);
    weights_.push_back(std::move(weight));
  }

  // Of tensors that stand alone: parameters and packings that nobody knows, but no buffers.
  [[nodiscard]] bool holds_numbers(const Module& module, std::uint32_t tensor) const {
    return module.scheme != Scheme::kPlain ||
           checkpoint_.modules.storage_of[tensor] == Storage::kWeight;
  }

  [[nodiscard]] Weight named(std::string_view module, std::uint32_t number) const {
    const bool gguf = checkpoint_.container == format::Container::kGguf;
    Weight weight;
    weight.name = module;
    weight.canonical = gguf ? canonical_gguf_name(module, checkpoint_.config.model_type)
                            : canonical_weight(module);
    weight.module = number;
    const std::uint32_t first = checkpoint_.modules.modules[number].tensors.front();
    const std::string& component = checkpoint_.files[checkpoint_.file_of[first]].component;
    if (!component.empty()) {
      weight.name = component + "/" + weight.name;
      weight.canonical = component + "/" + weight.canonical;
    }
    weight.info = checkpoint_.names[first];
    return weight;
  }

  // Of two tensors that would play the same part the first counts.
  void attach(Weight& weight, Companion companion, std::uint32_t tensor) const {
    const TensorInfo& info = checkpoint_.tensors[tensor];
    auto& place = weight.places[static_cast<std::size_t>(companion)];
    if (place) return;
    place = StoredPlace{
        .file = checkpoint_.file_of[tensor], .offset = info.offset, .bytes = info.bytes};
    weight.spec[companion] = StoredTensor{.dtype = info.dtype, .shape = info.shape};
  }

  // Everything that follows from the scheme and the codes.
  void describe(Weight& weight, const Module& module, std::uint32_t codes) {
    weight.info = checkpoint_.names[codes];
    if (config_ != nullptr && matcher_ && is_quantized(module.scheme)) {
      const bool ignored = matcher_->ignores(module.name);
      const auto* claim =
          ignored ? nullptr : matcher_->scheme_for(module.name, class_of(weight.info.role));
      apply_claim(*config_, claim, weight.spec);
    }
    const std::uint64_t parameters = checkpoint_.modules.parameters_of[codes];
    LogicalShape logical = logical_shape(weight.spec, parameters, module.bits);
    weight.shape = std::move(logical.shape);
    weight.padding = logical.padding;
    weight.is_flat = logical.is_flat;
    if (is_bias(weight.canonical)) stand_up(weight);
    weight.spec.name = weight.name;
  }

  void add_bias(const Module& module, std::uint32_t number, std::uint32_t tensor) {
    if (checkpoint_.modules.storage_of[tensor] != Storage::kBias) return;  // an attention mask
    Weight bias = named(module.name, number);
    bias.name += ".bias";
    bias.canonical = canonical_bias(bias.canonical);
    bias.info = checkpoint_.names[tensor];
    attach(bias, Companion::kCodes, tensor);
    bias.shape = checkpoint_.tensors[tensor].shape;
    stand_up(bias);
    bias.spec.name = bias.name;
    bias.obstacle = obstacle_of(bias);
    weights_.push_back(std::move(bias));
  }

  // A bias as a column of numbers.
  static void stand_up(Weight& bias) {
    bias.shape.push_back(1);
    if (auto& codes = bias.spec[Companion::kCodes]) codes->shape.push_back(1);
  }

  // NVFP4 blocks of GGUF may have a further scale, in a tensor that looks like a weight.
  void attach_side_scales() {
    std::unordered_map<std::string_view, Weight*> nvfp4;
    for (Weight& weight : weights_) {
      const StoredTensor* codes = weight.spec.find(Companion::kCodes);
      if (codes != nullptr && codes->dtype == Dtype::kNVFP4) nvfp4.emplace(weight.name, &weight);
    }
    if (nvfp4.empty()) return;
    constexpr std::string_view kScale = ".scale";
    std::unordered_set<const Weight*> taken;
    for (const Weight& side : weights_) {
      if (!side.name.ends_with(kScale)) continue;
      const std::string_view owner =
          std::string_view(side.name).substr(0, side.name.size() - kScale.size());
      const auto found = nvfp4.find(owner);
      if (found == nvfp4.end()) continue;
      const auto codes = static_cast<std::size_t>(Companion::kCodes);
      const auto global = static_cast<std::size_t>(Companion::kGlobalScale);
      found->second->spec.tensors[global] = side.spec.tensors[codes];
      found->second->places[global] = side.places[codes];
      taken.insert(&side);
    }
    std::erase_if(weights_, [&](const Weight& weight) { return taken.contains(&weight); });
  }

  const Checkpoint& checkpoint_;
  const QuantizationConfig* config_ = nullptr;
  std::optional<ModuleMatcher> matcher_;
  std::vector<Weight> weights_;
};

// A companion that is read whole, and the bytes to be filled.
struct WholeRead {
  std::uint32_t file = 0;
  io::ReadRequest request;
};

Result<std::vector<WholeRead>> plan_reads(const Weight& weight, quant::WeightSpec& spec) {
  std::vector<WholeRead> reads;
  for (std::size_t i = 0; i < quant::kCompanionCount; ++i) {
    const std::optional<StoredPlace>& place = weight.places[i];
    std::optional<StoredTensor>& tensor = spec.tensors[i];
    if (!place || !tensor || !quant::is_read_whole(static_cast<Companion>(i))) continue;
    if (place->bytes > kMaxCompanionBytes) {
      return fail(ErrorCode::kLimit,
                  fmt::format("weight {}: its {} has {}, more than {}", quote(weight.name),
                              quant::companion_name(static_cast<Companion>(i)),
                              format_bytes(place->bytes), format_bytes(kMaxCompanionBytes)),
                  "export the checkpoint again: it has at most one number for a row or column");
    }
    tensor->data.resize(place->bytes);
    reads.push_back({.file = place->file,
                     .request = {.offset = place->offset, .into = std::span(tensor->data)}});
  }
  return reads;
}

// One request for each file: companions may lie in different shards.
Status read_whole(const Checkpoint& checkpoint, std::span<WholeRead> reads) {
  std::ranges::sort(reads, {},
                    [](const WholeRead& r) { return std::pair(r.file, r.request.offset); });
  std::vector<io::ReadRequest> requests;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    requests.push_back(reads[i].request);
    if (i + 1 < reads.size() && reads[i + 1].file == reads[i].file) continue;
    const CheckpointFile& file = checkpoint.files[reads[i].file];
    if (file.source == nullptr) {
      return fail(ErrorCode::kUnsupported, fmt::format("{} cannot be read", printable(file.path)));
    }
    GRIDSCOPE_CHECK(file.source->read_many(requests));
    requests.clear();
  }
  return {};
}

}  // namespace

std::uint64_t Weight::rows() const {
  std::uint64_t rows = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return rows;
}

std::uint64_t Weight::columns() const {
  return shape.empty() ? 1 : shape.back();
}

std::vector<Weight> list_weights(const Checkpoint& checkpoint) {
  return Listing(checkpoint).run();
}

Result<std::unique_ptr<const quant::WeightDecoder>> open_weight(const Checkpoint& checkpoint,
                                                                const Weight& weight) {
  quant::WeightSpec spec = weight.spec;
  GRIDSCOPE_TRY(std::vector<WholeRead> reads, plan_reads(weight, spec));
  GRIDSCOPE_CHECK(read_whole(checkpoint, reads));
  return quant::make_decoder(std::move(spec));
}

}  // namespace gridscope::model
