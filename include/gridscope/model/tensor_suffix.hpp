#pragma once

// The last part of a tensor's name: what the tensor is to its module. "q_proj.weight_scale" is the
// scale of module "q_proj"; quantized formats differ in little else than these suffixes.

#include <cstdint>
#include <string_view>

namespace gridscope::model {

enum class Suffix : std::uint8_t {
  kNone,  // no suffix that any format uses: the tensor stands for itself
  kWeight,
  kBias,
  // compressed-tensors
  kWeightPacked,
  kWeightScale,
  kWeightShape,
  kWeightZeroPoint,
  kWeightGroupIndex,
  kWeightGlobalScale,
  kScalePacked,
  kMeta,
  kCompressed,
  kBitmask,
  kRowOffsets,
  kShape,
  // ModelOpt
  kWeightScale2,
  kPreQuantScale,
  kLowRank,
  // FP8
  kWeightScaleInverse,
  kScale,
  // bitsandbytes
  kScb,
  kWeightFormat,
  kAbsmax,
  kQuantMap,
  kQuantState,
  kNestedAbsmax,
  kNestedQuantMap,
  // AWQ, GPTQ, Marlin
  kQweight,
  kQzeros,
  kScales,
  kGroupIndex,
  kMarlinB,
  kMarlinScales,
  kWorkspace,
  // gpt-oss, MLX, torchao, EXL3
  kBlocks,
  kBiases,
  kQdata,
  kQdataScale,
  kQdataZeroPoint,
  kTrellis,
  kTrellisSigns,
  // Scales of activations and of the KV cache, in whichever format.
  kActivation,
};
inline constexpr std::size_t kSuffixCount = static_cast<std::size_t>(Suffix::kActivation) + 1;

struct SplitName {
  std::string_view module;  // a view of the name that was split; the whole of it for kNone
  Suffix suffix = Suffix::kNone;
};

// Goes by the name alone. Companions that hang on a parameter's name by an underscore
// ("experts.gate_up_proj_blocks") are split there; suffixes that ordinary parameters bear too
// ("router.scale") are reported as they look, and whoever sees the whole module has to decide.
[[nodiscard]] SplitName split_suffix(std::string_view tensor);

// The suffix as formats write it: "weight_packed".
[[nodiscard]] std::string_view suffix_text(Suffix suffix);

}  // namespace gridscope::model
