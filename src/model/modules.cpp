#include "gridscope/model/modules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "gridscope/core/text.hpp"
#include "gridscope/model/consistency.hpp"
#include "gridscope/model/module_matcher.hpp"
#include "gridscope/model/module_view.hpp"
#include "gridscope/model/name_table.hpp"
#include "gridscope/model/names.hpp"
#include "gridscope/model/packing.hpp"
#include "gridscope/model/scheme_detection.hpp"

// Names are split into module and suffix, tensors of one module gathered, and each module is judged
// as a whole. Tensors that merely look like companions ("router.scale" beside a plain weight) then
// leave it and stand for themselves.

namespace gridscope::model {
namespace {

using format::TensorInfo;

struct Label {
  std::string_view key;
  std::string_view title;
};

constexpr std::array<Label, 8> kStorages = {{{"weights", "weights"},
                                             {"packed_weights", "packed weights"},
                                             {"scales", "scales"},
                                             {"zero_points", "zero points"},
                                             {"group_indices", "group indices"},
                                             {"shapes", "shapes"},
                                             {"biases", "biases"},
                                             {"buffers", "buffers"}}};

// The causal mask that GPT-2 and its kin keep as "attn.bias", a byte or a float an element, and the
// value that they mask with.
bool is_attention_mask(const TensorInfo& tensor) {
  const auto& shape = tensor.shape;
  const bool square = shape.size() == 4 && shape[0] == 1 && shape[1] == 1 && shape[2] == shape[3];
  return square || tensor.name.ends_with(".masked_bias");
}

// Of unknown packing, then.
bool is_integer_matrix(const TensorInfo& tensor) {
  static constexpr std::array kIntegers = {Dtype::kU8,  Dtype::kI8,  Dtype::kI16,
                                           Dtype::kU16, Dtype::kI32, Dtype::kU32};
  return tensor.shape.size() > 1 && !is_attention_mask(tensor) &&
         std::ranges::find(kIntegers, tensor.dtype) != kIntegers.end();
}

bool holds_parameters(const TensorInfo& tensor) {
  const Dtype dtype = tensor.dtype;
  const bool is_float = is_plain_float(dtype) || is_block_type(dtype) || dtype == Dtype::kF8E4M3 ||
                        dtype == Dtype::kF8E5M2 || dtype == Dtype::kC64;
  return is_float && !is_attention_mask(tensor);
}

// Linear and Embedding are what targets name; norms have one dimension, convolutions more than two.
ModuleClass class_of(const ModuleView& module, std::string_view name) {
  const Role role = classify_name(name).role;
  const bool embeds = role == Role::kEmbedTokens || role == Role::kPerLayerEmbedding ||
                      role == Role::kPositionEmbedding;
  if (embeds) return ModuleClass::kEmbedding;
  const TensorInfo* weight = module.find(Suffix::kWeight);
  const bool flat = weight != nullptr && is_plain_float(weight->dtype) && weight->shape.size() != 2;
  return flat || role == Role::kNorm || role == Role::kConvolution ? ModuleClass::kOther
                                                                   : ModuleClass::kLinear;
}

// Findings that concern many modules in the same way become one, with the first as the example.
class FindingsByReason {
 public:
  struct Fault {
    std::string_view code;
    std::string reason;
    std::string example = {};
    std::string_view remedy;
  };

  void add(Fault fault, const TensorInfo& tensor) {
    const auto [at, is_new] = findings_.try_emplace(std::move(fault.reason));
    Finding& finding = at->second;
    if (is_new) {
      finding.code = fault.code;
      finding.severity = Severity::kError;
      finding.message = std::move(fault.example);
      finding.remedy = fault.remedy;
    }
    finding.add_tensor(tensor.name);
    finding.bytes += tensor.bytes;
  }

  void append_to(std::vector<Finding>& findings) && {
    for (auto& [reason, finding] : findings_) {
      const std::string example = finding.message.empty() ? "" : ": " + finding.message;
      finding.message =
          fmt::format("{} {}{}", count_of(finding.tensor_count, "module"), reason, example);
      findings.push_back(std::move(finding));
    }
  }

 private:
  std::map<std::string, Finding> findings_;
};

constexpr std::string_view kLookElsewhere =
    "look for it in a missing shard, or export the checkpoint again";

class Detection {
 public:
  Detection(std::span<const TensorInfo> tensors, const QuantizationConfig* config)
      : tensors_(tensors), config_(config) {
    if (config != nullptr) matcher_.emplace(*config);
    table_.module_of.resize(tensors.size());
    table_.storage_of.resize(tensors.size(), Storage::kBuffer);
    table_.parameters_of.resize(tensors.size());
  }

  ModuleTable run() && {
    gather();
    table_.modules.reserve(groups_.size());
    for (Group& group : groups_) judge(group);
    groups_ = {};
    put_in_order();
    flag_unscaled_f8();
    std::move(faults_).append_to(table_.findings);
    auto disagreements = check_quantization(tensors_, table_, config_);
    std::ranges::move(disagreements, std::back_inserter(table_.findings));
    return std::move(table_);
  }

 private:
  struct Group {
    std::string_view name;
    std::vector<std::uint32_t> tensors;
  };

  void gather() {
    NameTable group_of(tensors_.size());
    const auto name_of = [&](std::uint32_t group) { return groups_[group].name; };
    suffixes_.reserve(tensors_.size());
    for (std::uint32_t i = 0; i < tensors_.size(); ++i) {
      const SplitName split = split_suffix(tensors_[i].name);
      suffixes_.push_back(split.suffix);
      // Most tensors follow another one of their module.
      const bool same = !groups_.empty() && groups_.back().name == split.module;
      if (!same) {
        const auto next = static_cast<std::uint32_t>(groups_.size());
        const std::uint32_t group = group_of.find_or_add(split.module, next, name_of);
        if (group == next) groups_.push_back({.name = split.module, .tensors = {}});
        groups_[group].tensors.push_back(i);
        continue;
      }
      groups_.back().tensors.push_back(i);
    }
  }

  // The parameter of stacked experts has no ".weight"; scales that are named after it tell that it
  // is one.
  void find_bare_weight(const Group& group) {
    const auto has = [&](Suffix suffix) {
      return std::ranges::any_of(group.tensors,
                                 [&](std::uint32_t tensor) { return suffixes_[tensor] == suffix; });
    };
    const bool scaled = has(Suffix::kWeightScale) || has(Suffix::kWeightScaleInverse);
    if (!scaled || has(Suffix::kWeight)) return;
    for (const std::uint32_t tensor : group.tensors) {
      if (suffixes_[tensor] == Suffix::kNone) suffixes_[tensor] = Suffix::kWeight;
    }
  }

  void judge(Group& group) {
    find_bare_weight(group);
    ModuleView view;
    for (const std::uint32_t tensor : group.tensors) view.add(suffixes_[tensor], tensors_[tensor]);
    if (matcher_) {
      view.method = config_->method;
      if (!matcher_->ignores(group.name)) {
        view.claim = matcher_->scheme_for(group.name, class_of(view, group.name));
      }
    }
    const Scheme scheme = detect_scheme(view);
    Module module{.name = std::string(group.name),
                  .scheme = scheme,
                  .bits = 0,
                  .group_size = 0,
                  .parameters = 0,
                  .tensors = {}};
    measure(view, module);
    std::erase_if(group.tensors, [&](std::uint32_t tensor) {
      const Suffix suffix = suffixes_[tensor];
      const bool alone = suffix == Suffix::kNone || !belongs_to(scheme, suffix);
      if (alone) stand_alone(tensor);
      return alone;
    });
    if (group.tensors.empty()) return;
    for (const std::uint32_t tensor : group.tensors) include(tensor, module);
    module.tensors = std::move(group.tensors);
    table_.modules.push_back(std::move(module));
  }

  // Bits, group size and the weight's own share of the parameters; complains about companions.
  void measure(const ModuleView& view, Module& module) {
    const Suffix suffix = weight_suffix(module.scheme, view);
    const TensorInfo* weight = view.find(suffix);
    if (weight == nullptr) {
      flag_orphans(view);
      return;
    }
    const Packing packing = measure_packing(module.scheme, view);
    module.bits = packing.bits;
    module.group_size = packing.group_size;
    table_.parameters_of[index_of(*weight)] = packing.parameters;
    if (!packing.fault.empty()) {
      faults_.add({.code = "COMPANION_MISMATCH",
                   .reason = fmt::format("({}) with tensors that do not fit each other",
                                         scheme_key(module.scheme)),
                   .example = fmt::format("{} has {}", quote(module.name), packing.fault),
                   .remedy = "export the checkpoint again; such a module cannot be decoded"},
                  *weight);
    }
    for (const Suffix missing : missing_companions(module.scheme, view)) {
      faults_.add({.code = "COMPANION_MISSING",
                   .reason = fmt::format("({}) without {}", scheme_key(module.scheme),
                                         suffix_text(missing)),
                   .remedy = kLookElsewhere},
                  *weight);
    }
  }

  // Scales and the like of weights that are not there.
  void flag_orphans(const ModuleView& view) {
    for (const Suffix suffix : {Suffix::kWeightScale, Suffix::kWeightShape, Suffix::kQzeros,
                                Suffix::kWeightScaleInverse, Suffix::kAbsmax}) {
      const TensorInfo* orphan = view.find(suffix);
      if (orphan == nullptr) continue;
      faults_.add({.code = "COMPANION_MISSING",
                   .reason = fmt::format("with {} but no weight", suffix_text(suffix)),
                   .remedy = kLookElsewhere},
                  *orphan);
      return;
    }
  }

  void include(std::uint32_t tensor, Module& module) {
    const Suffix suffix = suffixes_[tensor];
    if (suffix == Suffix::kBias && is_attention_mask(tensors_[tensor])) return;
    table_.storage_of[tensor] = storage_of_suffix(module.scheme, suffix);
    if (suffix == Suffix::kBias) table_.parameters_of[tensor] = tensors_[tensor].elements();
    module.parameters += table_.parameters_of[tensor];
  }

  // A tensor that is its own module: a parameter when it is a float and no mask, else a buffer.
  void stand_alone(std::uint32_t tensor) {
    const TensorInfo& info = tensors_[tensor];
    Module module{.name = info.name,
                  .scheme = Scheme::kPlain,
                  .bits = 0,
                  .group_size = 0,
                  .parameters = 0,
                  .tensors = {tensor}};
    if (holds_parameters(info)) {
      ModuleView view;
      view.add(Suffix::kWeight, info);
      module.scheme = is_block_type(info.dtype) ? Scheme::kGgufBlock : Scheme::kPlain;
      const Packing packing = measure_packing(module.scheme, view);
      module.bits = packing.bits;
      module.group_size = packing.group_size;
      module.parameters = packing.parameters;
      table_.storage_of[tensor] = storage_of_suffix(module.scheme, Suffix::kWeight);
    } else if (is_integer_matrix(info)) {
      module.scheme = Scheme::kUnknown;
    }
    table_.parameters_of[tensor] = module.parameters;
    table_.modules.push_back(std::move(module));
  }

  // Only tensors that stand alone are out of order.
  void put_in_order() {
    const auto first = [](const Module& m) { return m.tensors.front(); };
    if (!std::ranges::is_sorted(table_.modules, {}, first)) {
      std::ranges::sort(table_.modules, {}, first);
    }
    for (std::uint32_t i = 0; i < table_.modules.size(); ++i) {
      for (const std::uint32_t tensor : table_.modules[i].tensors) table_.module_of[tensor] = i;
    }
  }

  // A checkpoint cast to FP8 as a whole has no scales; where scales are claimed or others have
  // them, a weight without one is incomplete.
  void flag_unscaled_f8() {
    const auto scaled = [](const Module& m) {
      return m.scheme == Scheme::kFp8Block || m.scheme == Scheme::kCtFloat ||
             m.scheme == Scheme::kModelOptFp8 || m.scheme == Scheme::kFp8Scaled;
    };
    const bool claimed =
        config_ != nullptr && !config_->method.empty() && !config_->schemes.empty();
    if (!claimed && std::ranges::none_of(table_.modules, scaled)) return;
    for (const Module& module : table_.modules) {
      const TensorInfo& first = tensors_[module.tensors.front()];
      const bool f8 = first.dtype == Dtype::kF8E4M3 || first.dtype == Dtype::kF8E5M2;
      if (module.scheme != Scheme::kPlain || !f8 || first.shape.size() < 2) continue;
      faults_.add({.code = "COMPANION_MISSING",
                   .reason = "with FP8 weights but without a scale",
                   .remedy = kLookElsewhere},
                  first);
    }
  }

  [[nodiscard]] std::size_t index_of(const TensorInfo& tensor) const {
    return static_cast<std::size_t>(&tensor - tensors_.data());
  }

  std::span<const TensorInfo> tensors_;
  const QuantizationConfig* config_;
  std::optional<ModuleMatcher> matcher_;
  std::vector<Suffix> suffixes_;
  std::vector<Group> groups_;
  FindingsByReason faults_;
  ModuleTable table_;
};

// ---- description --------------------------------------------------------------------------------

const TensorInfo* find_stored(const Module& module, std::span<const TensorInfo> tensors,
                              Storage storage) {
  for (const std::uint32_t index : module.tensors) {
    const std::string& name = tensors[index].name;
    const Suffix suffix = name == module.name ? Suffix::kWeight : split_suffix(name).suffix;
    if (storage_of_suffix(module.scheme, suffix) == storage) return &tensors[index];
  }
  return nullptr;
}

std::string group_text(std::int64_t group_size) {
  if (group_size == 0) return {};
  return group_size < 0 ? std::string(" per row") : fmt::format(" g{}", group_size);
}

}  // namespace

std::string_view storage_key(Storage storage) {
  return kStorages.at(static_cast<std::size_t>(storage)).key;
}
std::string_view storage_title(Storage storage) {
  return kStorages.at(static_cast<std::size_t>(storage)).title;
}

bool is_quantized(Scheme scheme) {
  return scheme != Scheme::kPlain && scheme != Scheme::kUnknown;
}

ModuleTable detect_modules(std::span<const format::TensorInfo> tensors,
                           const QuantizationConfig* config) {
  return Detection(tensors, config).run();
}

std::string describe_storage(const Module& module, std::span<const format::TensorInfo> tensors) {
  if (module.tensors.empty()) return {};
  const TensorInfo& first = tensors[module.tensors.front()];
  if (!is_quantized(module.scheme) || module.scheme == Scheme::kGgufBlock) {
    const TensorInfo* weight = find_stored(module, tensors, Storage::kWeight);
    return std::string(dtype_name(weight != nullptr ? weight->dtype : first.dtype));
  }
  const std::string_view title = quant::scheme_title(module.scheme);
  std::string text(title);
  if (title.ends_with("int") || title.ends_with(" fp")) text += fmt::format("{}", module.bits);
  text += group_text(module.group_size);
  const TensorInfo* packed = find_stored(module, tensors, Storage::kPackedWeight);
  const TensorInfo* weight =
      packed != nullptr ? packed : find_stored(module, tensors, Storage::kWeight);
  const TensorInfo* scale = find_stored(module, tensors, Storage::kScale);
  if (weight == nullptr) return text;
  text += fmt::format(" ({}{}", dtype_name(weight->dtype), packed != nullptr ? " packed" : "");
  if (scale != nullptr) text += fmt::format(", {} scales", dtype_name(scale->dtype));
  return text + ")";
}

}  // namespace gridscope::model
