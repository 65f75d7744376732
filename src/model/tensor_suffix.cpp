#include "gridscope/model/tensor_suffix.hpp"

#include <algorithm>
#include <array>

namespace gridscope::model {
namespace {

struct Spelling {
  std::string_view text;
  Suffix suffix;
};

// The first spelling of a suffix is the one that suffix_text gives.
constexpr std::array kSpellings = std::to_array<Spelling>({
    {"weight", Suffix::kWeight},
    {"bias", Suffix::kBias},
    {"weight_packed", Suffix::kWeightPacked},
    {"weight_scale", Suffix::kWeightScale},
    {"qscale_weight", Suffix::kWeightScale},
    {"weight_shape", Suffix::kWeightShape},
    {"weight_zero_point", Suffix::kWeightZeroPoint},
    {"weight_g_idx", Suffix::kWeightGroupIndex},
    {"weight_global_scale", Suffix::kWeightGlobalScale},
    {"scale_packed", Suffix::kScalePacked},
    {"meta", Suffix::kMeta},
    {"compressed", Suffix::kCompressed},
    {"bitmask", Suffix::kBitmask},
    {"row_offsets", Suffix::kRowOffsets},
    {"shape", Suffix::kShape},
    {"weight_scale_2", Suffix::kWeightScale2},
    {"pre_quant_scale", Suffix::kPreQuantScale},
    {"svdquant_lora_a", Suffix::kLowRank},
    {"svdquant_lora_b", Suffix::kLowRank},
    {"weight_scale_inv", Suffix::kWeightScaleInverse},
    {"scale", Suffix::kScale},
    {"SCB", Suffix::kScb},
    {"weight_scb", Suffix::kScb},
    {"weight_format", Suffix::kWeightFormat},
    {"weight_absmax", Suffix::kAbsmax},
    {"weight_quant_map", Suffix::kQuantMap},
    {"weight_quant_state", Suffix::kQuantState},
    {"weight_nested_absmax", Suffix::kNestedAbsmax},
    {"weight_nested_quant_map", Suffix::kNestedQuantMap},
    {"qweight", Suffix::kQweight},
    {"qzeros", Suffix::kQzeros},
    {"scales", Suffix::kScales},
    {"g_idx", Suffix::kGroupIndex},
    {"B", Suffix::kMarlinB},
    {"s", Suffix::kMarlinScales},
    {"workspace", Suffix::kWorkspace},
    {"blocks", Suffix::kBlocks},
    {"biases", Suffix::kBiases},
    {"_weight_qdata", Suffix::kQdata},
    {"_weight_scale", Suffix::kQdataScale},
    {"_weight_zero_point", Suffix::kQdataZeroPoint},
    {"trellis", Suffix::kTrellis},
    {"suh", Suffix::kTrellisSigns},
    {"svh", Suffix::kTrellisSigns},
    {"mcg", Suffix::kTrellisSigns},
    {"mul1", Suffix::kTrellisSigns},
    {"input_scale", Suffix::kActivation},
    {"input_global_scale", Suffix::kActivation},
    {"input_zero_point", Suffix::kActivation},
    {"output_scale", Suffix::kActivation},
    {"output_zero_point", Suffix::kActivation},
    {"activation_scale", Suffix::kActivation},
    {"qscale_act", Suffix::kActivation},
    {"q_scale", Suffix::kActivation},
    {"k_scale", Suffix::kActivation},
    {"v_scale", Suffix::kActivation},
    {"prob_output_scale", Suffix::kActivation},
});

// What follows "weight." in the names that bitsandbytes hangs below the weight.
constexpr std::array kBelowWeight = std::to_array<Spelling>({
    {"absmax", Suffix::kAbsmax},
    {"quant_map", Suffix::kQuantMap},
    {"nested_absmax", Suffix::kNestedAbsmax},
    {"nested_quant_map", Suffix::kNestedQuantMap},
});

// What follows "_proj_" where the parameter of stacked experts has no ".weight".
constexpr std::array kAfterProjection = std::to_array<Spelling>({
    {"blocks", Suffix::kBlocks},
    {"scales", Suffix::kScales},
    {"bias", Suffix::kBias},
    {"weight_packed", Suffix::kWeightPacked},
    {"weight_shape", Suffix::kWeightShape},
    {"weight_scale", Suffix::kWeightScale},
    {"weight_scale_2", Suffix::kWeightScale2},
    {"weight_scale_inv", Suffix::kWeightScaleInverse},
    {"scale_inv", Suffix::kWeightScaleInverse},
    {"weight_global_scale", Suffix::kWeightGlobalScale},
    {"pre_quant_scale", Suffix::kPreQuantScale},
    {"input_scale", Suffix::kActivation},
    {"input_global_scale", Suffix::kActivation},
    {"output_scale", Suffix::kActivation},
    {"activation_scale", Suffix::kActivation},
});

template <std::size_t N>
Suffix look_up(const std::array<Spelling, N>& spellings, std::string_view text) {
  const auto found = std::ranges::find(spellings, text, &Spelling::text);
  return found == spellings.end() ? Suffix::kNone : found->suffix;
}

SplitName split_below_weight(std::string_view tensor) {
  constexpr std::string_view kWeightDot = ".weight.";
  const std::size_t at = tensor.rfind(kWeightDot);
  if (at == std::string_view::npos) return {tensor, Suffix::kNone};
  const std::string_view below = tensor.substr(at + kWeightDot.size());
  const Suffix suffix = below.starts_with("quant_state.bitsandbytes__")
                            ? Suffix::kQuantState
                            : look_up(kBelowWeight, below);
  if (suffix == Suffix::kNone) return {tensor, Suffix::kNone};
  return {tensor.substr(0, at), suffix};
}

SplitName split_after_projection(std::string_view tensor, std::string_view last) {
  constexpr std::string_view kJoint = "_proj_";
  const std::size_t at = last.find(kJoint);
  if (at == std::string_view::npos) return {tensor, Suffix::kNone};
  const std::string_view after = last.substr(at + kJoint.size());
  const Suffix suffix = look_up(kAfterProjection, after);
  if (suffix == Suffix::kNone) return {tensor, Suffix::kNone};
  return {tensor.substr(0, tensor.size() - after.size() - 1), suffix};
}

}  // namespace

SplitName split_suffix(std::string_view tensor) {
  const std::size_t dot = tensor.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return {tensor, Suffix::kNone};
  const std::string_view last = tensor.substr(dot + 1);
  if (const Suffix suffix = look_up(kSpellings, last); suffix != Suffix::kNone) {
    return {tensor.substr(0, dot), suffix};
  }
  const SplitName below = split_below_weight(tensor);
  return below.suffix != Suffix::kNone ? below : split_after_projection(tensor, last);
}

std::string_view suffix_text(Suffix suffix) {
  const auto found = std::ranges::find(kSpellings, suffix, &Spelling::suffix);
  return found == kSpellings.end() ? std::string_view() : found->text;
}

}  // namespace gridscope::model
