#include "gridscope/model/weight_stacks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "gridscope/model/canonical_names.hpp"
#include "gridscope/model/weight_shape.hpp"

// With E experts, H inputs and I inner units a stack of outputs by inputs is gate_up [E, 2I, H] and
// down [E, H, I], the other order gate_up [E, H, 2I] and down [E, I, H]. Shapes alone tell the two
// apart: no numbers but zero fit both. Of NVFP4, which packs along the inputs in either order,
// codes and scales of one stack tell by themselves.

namespace gridscope::model {
namespace {

using quant::Companion;
using quant::Scheme;
using quant::StoredTensor;

constexpr auto kInputMajorModels =
    std::to_array<std::string_view>({"gpt_oss", "llama4", "llama4_text"});
constexpr auto kConv1dModules =
    std::to_array<std::string_view>({"c_attn", "c_proj", "c_fc", "q_attn"});

// Decoders that take [experts, outputs, inputs] as one matrix; the others know two dimensions only.
constexpr auto kStackable = std::to_array<Scheme>(
    {Scheme::kPlain, Scheme::kCtPackQuantized, Scheme::kCtNvfp4, Scheme::kCtMxfp4,
     Scheme::kMlxAffine, Scheme::kMlxFp, Scheme::kGptOssMxfp4, Scheme::kModelOptNvfp4,
     Scheme::kModelOptInt4Awq, Scheme::kPackedFp4, Scheme::kGgufBlock});

// Schemes whose stacks are listed as they are stored, in whichever order.
constexpr auto kEitherOrder = std::to_array<Scheme>(
    {Scheme::kPlain, Scheme::kModelOptNvfp4, Scheme::kModelOptFp8, Scheme::kCtFloat});

bool has_either_order(const Weight& weight) {
  return std::ranges::find(kEitherOrder, weight.spec.scheme) != kEitherOrder.end();
}

bool is_stack(const Weight& weight) {
  return weight.shape.size() == 3 && !is_bias(weight.canonical) &&
         matrix_of_stack(weight.canonical, 0).has_value();
}

using ByName = std::unordered_map<std::string_view, const Weight*>;

ByName index_stacks(const std::vector<Weight>& weights) {
  ByName stacks;
  for (const Weight& weight : weights) {
    if (is_stack(weight)) stacks.emplace(weight.canonical, &weight);
  }
  return stacks;
}

const Weight* find_sibling(const ByName& stacks, const Weight& weight, std::string_view from,
                           std::string_view to) {
  const auto name = with_projection(weight.canonical, from, to);
  const auto found = name ? stacks.find(*name) : stacks.end();
  return found == stacks.end() || !has_either_order(*found->second) ? nullptr : found->second;
}

bool is_nvfp4_input_major(const Weight& stack) {
  const StoredTensor* codes = stack.spec.find(Companion::kCodes);
  const StoredTensor* scale = stack.spec.find(Companion::kScale);
  return codes != nullptr && scale != nullptr && is_input_major_nvfp4(codes->shape, scale->shape);
}

// Whether the stack is stored [experts, inputs, outputs].
bool is_input_major(const Weight& stack, const ByName& stacks, std::string_view model_type) {
  if (stack.spec.scheme == Scheme::kModelOptNvfp4) return is_nvfp4_input_major(stack);
  if (!has_either_order(stack)) return false;
  const bool is_gate_up = with_projection(stack.canonical, "gate_up_proj", "").has_value();
  const bool is_down = with_projection(stack.canonical, "down_proj", "").has_value();
  if (!is_gate_up && !is_down) return false;
  const Weight* gate_up =
      is_gate_up ? &stack : find_sibling(stacks, stack, "down_proj", "gate_up_proj");
  const Weight* down = is_down ? &stack : find_sibling(stacks, stack, "gate_up_proj", "down_proj");
  if (gate_up == nullptr || down == nullptr) {
    return std::ranges::find(kInputMajorModels, model_type) != kInputMajorModels.end();
  }
  return gate_up->shape[1] == down->shape[2] && gate_up->shape[2] == 2 * down->shape[1];
}

// Matrix `index` of a companion that has one for each; others are shared by all.
void take_matrix(Weight& weight, std::size_t companion, std::uint64_t index, std::uint64_t count) {
  std::optional<StoredTensor>& tensor = weight.spec.tensors[companion];
  std::optional<StoredPlace>& place = weight.places[companion];
  if (!tensor || !place || tensor->shape.empty() || tensor->shape.front() != count) return;
  tensor->shape.erase(tensor->shape.begin());
  place->bytes /= count;
  place->offset += index * place->bytes;
}

Weight matrix_of(const Weight& stack, std::uint64_t index) {
  Weight weight = stack;
  weight.name += fmt::format("[{}]", index);
  weight.canonical = matrix_of_stack(stack.canonical, index).value_or(stack.canonical);
  weight.spec.name = weight.name;
  const std::uint64_t count = weight.shape.front();
  weight.shape.erase(weight.shape.begin());
  for (std::size_t i = 0; i < quant::kCompanionCount; ++i) take_matrix(weight, i, index, count);
  return weight;
}

void turn(Weight& weight) {
  std::swap(weight.shape[0], weight.shape[1]);
  weight.spec.order = quant::WeightSpec::Order::kInputMajor;
}

bool is_conv1d(const Weight& weight) {
  const std::string_view name = weight.canonical;
  const std::string_view module = name.substr(name.rfind('.') + 1);
  return name.starts_with("h.") && weight.spec.scheme == Scheme::kPlain &&
         weight.shape.size() == 2 &&
         std::ranges::find(kConv1dModules, module) != kConv1dModules.end();
}

// StarCoder uses the same names for ordinary linear layers; where the model does not say what it
// is, the fused projection is three times as wide as high.
bool has_conv1d(const std::vector<Weight>& weights, std::string_view model_type) {
  if (!model_type.empty()) return model_type == "gpt2";
  return std::ranges::any_of(weights, [](const Weight& weight) {
    return is_conv1d(weight) && weight.canonical.ends_with("c_attn") &&
           weight.shape[1] == 3 * weight.shape[0];
  });
}

struct Treatment {
  bool take_apart = false;
  bool turn = false;
};

std::vector<Treatment> treatments_of(const std::vector<Weight>& weights,
                                     std::string_view model_type) {
  const ByName stacks = index_stacks(weights);
  const bool conv1d = has_conv1d(weights, model_type);
  std::vector<Treatment> treatments(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Weight& weight = weights[i];
    const bool stack = is_stack(weight);
    const bool stackable = std::ranges::find(kStackable, weight.spec.scheme) != kStackable.end();
    const bool input_major = stack && is_input_major(weight, stacks, model_type);
    treatments[i].take_apart = stack && (input_major || !stackable);
    treatments[i].turn = input_major || (conv1d && is_conv1d(weight));
  }
  return treatments;
}

}  // namespace

std::vector<Weight> settle_orders(std::vector<Weight> weights, std::string_view model_type) {
  const std::vector<Treatment> treatments = treatments_of(weights, model_type);
  std::vector<Weight> settled;
  settled.reserve(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Treatment treatment = treatments[i];
    if (!treatment.take_apart) {
      settled.push_back(std::move(weights[i]));
      if (treatment.turn) turn(settled.back());
      continue;
    }
    for (std::uint64_t matrix = 0; matrix < weights[i].shape.front(); ++matrix) {
      settled.push_back(matrix_of(weights[i], matrix));
      if (treatment.turn) turn(settled.back());
    }
  }
  return settled;
}

}  // namespace gridscope::model
