#include "gridscope/model/consistency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "gridscope/core/text.hpp"
#include "gridscope/model/module_matcher.hpp"
#include "gridscope/model/names.hpp"
#include "gridscope/model/tensor_suffix.hpp"

namespace gridscope::model {
namespace {

using format::TensorInfo;
using Claim = QuantizationConfig::Scheme;

constexpr std::string_view kMismatch = "CONFIG_TENSOR_MISMATCH";

struct MethodScheme {
  std::string_view method;
  Scheme scheme;
};

// What a method's label allows to find. AutoRound writes in the layouts of others.
constexpr std::array kMethodSchemes = std::to_array<MethodScheme>({
    {"compressed-tensors", Scheme::kCtPackQuantized},
    {"compressed-tensors", Scheme::kCtNvfp4},
    {"compressed-tensors", Scheme::kCtMxfp4},
    {"compressed-tensors", Scheme::kCtMxfp8},
    {"compressed-tensors", Scheme::kCtInt},
    {"compressed-tensors", Scheme::kCtFloat},
    {"compressed-tensors", Scheme::kCtMarlin24},
    {"compressed-tensors", Scheme::kCtSparse},
    {"awq", Scheme::kAwqGemm},
    {"awq", Scheme::kAwqGemv},
    {"awq", Scheme::kAwqGemvFast},
    {"awq", Scheme::kMarlin},
    {"gptq", Scheme::kGptq},
    {"gptq", Scheme::kMarlin},
    {"gptqmodel", Scheme::kGptq},
    {"gptqmodel", Scheme::kMarlin},
    {"gptqmodel", Scheme::kAwqGemm},
    {"auto-round", Scheme::kGptq},
    {"auto-round", Scheme::kAwqGemm},
    {"auto-round", Scheme::kCtFloat},
    {"intel/auto-round", Scheme::kGptq},
    {"intel/auto-round", Scheme::kAwqGemm},
    {"intel/auto-round", Scheme::kCtFloat},
    {"bitsandbytes", Scheme::kBnbNf4},
    {"bitsandbytes", Scheme::kBnbFp4},
    {"bitsandbytes", Scheme::kBnbInt8},
    {"fp8", Scheme::kFp8Block},
    {"fp8", Scheme::kFp8Scaled},
    {"fp8", Scheme::kCtFloat},
    {"fp8", Scheme::kPackedFp4},
    {"fp8", Scheme::kCtMxfp8},
    {"mxfp4", Scheme::kGptOssMxfp4},
    {"mxfp4", Scheme::kPackedFp4},
    {"modelopt", Scheme::kModelOptFp8},
    {"modelopt", Scheme::kModelOptNvfp4},
    {"modelopt", Scheme::kModelOptInt4Awq},
    {"modelopt", Scheme::kModelOptInt8},
    {"modelopt", Scheme::kFp8Block},
    {"modelopt", Scheme::kPackedFp4},
    {"modelopt", Scheme::kCtMxfp8},
    {"modelopt_fp4", Scheme::kModelOptNvfp4},
    {"modelopt_fp4", Scheme::kPackedFp4},
    {"modelopt_mixed", Scheme::kModelOptFp8},
    {"modelopt_mixed", Scheme::kModelOptNvfp4},
    {"modelopt_mixed", Scheme::kModelOptInt4Awq},
    {"modelopt_mixed", Scheme::kModelOptInt8},
    {"modelopt_mixed", Scheme::kFp8Block},
    {"modelopt_mixed", Scheme::kPackedFp4},
    {"modelopt_mixed", Scheme::kCtMxfp8},
    {"mlx", Scheme::kMlxAffine},
    {"mlx", Scheme::kMlxFp},
    {"torchao", Scheme::kTorchAo},
    {"exl3", Scheme::kExl3},
});

bool is_known(std::string_view method) {
  return std::ranges::find(kMethodSchemes, method, &MethodScheme::method) != kMethodSchemes.end();
}

bool allows(std::string_view method, Scheme scheme) {
  return std::ranges::any_of(kMethodSchemes, [&](const MethodScheme& entry) {
    return entry.method == method && entry.scheme == scheme;
  });
}

class Checker {
 public:
  Checker(std::span<const TensorInfo> tensors, const ModuleTable& table,
          const QuantizationConfig& config)
      : tensors_(tensors), table_(table), config_(config), matcher_(config) {}

  std::vector<Finding> run() && {
    note_patterns();
    if (!is_known(config_.method)) {
      note_unknown_method();
      return std::move(findings_);
    }
    bool quantized = false;
    for (const Module& module : table_.modules) {
      quantized |= is_quantized(module.scheme);
      check(module);
    }
    if (!quantized && !config_.schemes.empty()) claimed_but_plain();
    for (auto& [reason, finding] : by_reason_) {
      // When nothing at all is quantized, every targeted module would say so again.
      if (quantized || finding.severity == Severity::kError) {
        finding.message = fmt::format("{} {}", count_of(finding.tensor_count, "module"), reason);
        findings_.push_back(std::move(finding));
      }
    }
    return std::move(findings_);
  }

 private:
  void note_patterns() {
    for (const std::string& pattern : matcher_.not_understood()) {
      findings_.push_back(
          {.code = std::string(kMismatch),
           .severity = Severity::kNote,
           .message = fmt::format("{}: pattern {} has constructs that are not understood here; it "
                                  "is taken to match nothing",
                                  config_.config_source, quote(pattern)),
           .remedy = "check by hand which modules it means"});
      if (findings_.size() == Finding::kMaxTensorsNamed) return;
    }
  }

  void note_unknown_method() {
    findings_.push_back(
        {.code = "UNKNOWN_QUANTIZATION",
         .severity = Severity::kWarning,
         .message = fmt::format("{} names the method {}, which is not known here",
                                config_.config_source, quote(config_.method)),
         .remedy = "rely on the bytes, which are as stored: codes of an unknown packing are not "
                   "counted as parameters"});
  }

  void claimed_but_plain() {
    findings_.push_back(
        {.code = std::string(kMismatch),
         .severity = Severity::kError,
         .message = fmt::format("{} claims {} quantization, but no tensor is quantized",
                                config_.config_source, quote(config_.method)),
         .remedy = "remove the claim from the configuration, or export the quantized tensors"});
  }

  void check(const Module& module) {
    const bool ignored = matcher_.ignores(module.name);
    if (!is_quantized(module.scheme)) {
      if (!ignored) check_plain(module);
      return;
    }
    if (ignored) {
      add(module, Severity::kError, "quantized although the ignore list leaves them out",
          "take them off the ignore list: a loader looks for a plain weight there");
      return;
    }
    if (!allows(config_.method, module.scheme)) {
      add(module, Severity::kError,
          fmt::format("stored as {}, which is no layout of the method {}",
                      scheme_key(module.scheme), quote(config_.method)),
          "correct the method in the configuration");
      return;
    }
    check_numbers(module);
  }

  void check_numbers(const Module& module) {
    // An FP8 claim gives the numbers of its FP8 modules; experts in FP4 beside them have their own.
    if (config_.method == "fp8" && module.scheme == Scheme::kPackedFp4) return;
    const ModuleClass kind = is_embedding(module) ? ModuleClass::kEmbedding : ModuleClass::kLinear;
    const Claim* claim = matcher_.scheme_for(module.name, kind);
    if (claim == nullptr) return;
    constexpr std::string_view kRemedy =
        "correct the configuration: a loader that believes it decodes wrong weights";
    const std::uint32_t bits = claim->bits.value_or(0);
    if (bits != 0 && module.bits != 0 && bits != module.bits) {
      add(module, Severity::kError,
          fmt::format("stored with {} bits where the configuration says {}", module.bits, bits),
          kRemedy);
    }
    // Only sizes that shapes can tell: a row's single scale may be a group as long as the row.
    const std::int64_t group_size = claim->group_size.value_or(0);
    if (group_size > 0 && module.group_size > 0 && group_size != module.group_size) {
      add(module, Severity::kError,
          fmt::format("stored with group size {} where the configuration says {}",
                      module.group_size, group_size),
          kRemedy);
    }
    // GPTQ and AWQ files keep constant zero points in symmetric schemes too.
    const bool packed =
        module.scheme == Scheme::kCtPackQuantized || module.scheme == Scheme::kCtInt;
    if (packed && claim->symmetric == true && has_suffix(module, Suffix::kWeightZeroPoint)) {
      add(module, Severity::kWarning, "with zero points where the configuration says symmetric",
          "the zero points must all be 0, or the configuration must say asymmetric");
    }
  }

  // Only compressed-tensors says what it targets. Towers are left out: exports name their modules
  // in ways that do not match the files, and leave them plain by custom.
  void check_plain(const Module& module) {
    if (config_.method != "compressed-tensors" || config_.schemes.empty()) return;
    const std::optional<std::uint32_t> weight = find_suffix(module, Suffix::kWeight);
    if (!weight) return;
    const TensorInfo& tensor = tensors_[*weight];
    const NameInfo name = classify_name(tensor.name);
    const bool tower = name.part == Part::kVisionTower || name.part == Part::kAudioTower;
    const bool linear = tensor.shape.size() == 2 && is_plain_float(tensor.dtype) &&
                        name.role != Role::kNorm && name.role != Role::kConvolution &&
                        name.role != Role::kPositionEmbedding;
    if (tower || !linear) return;
    const ModuleClass kind = is_embedding(module) ? ModuleClass::kEmbedding : ModuleClass::kLinear;
    if (matcher_.scheme_for(module.name, kind) == nullptr) return;
    add(module, Severity::kWarning, "stored plain although the configuration targets them",
        "add them to the ignore list: a loader looks for packed weights there");
  }

  bool is_embedding(const Module& module) const {
    const Role role = classify_name(tensors_[module.tensors.front()].name).role;
    return role == Role::kEmbedTokens || role == Role::kPerLayerEmbedding;
  }

  std::optional<std::uint32_t> find_suffix(const Module& module, Suffix suffix) const {
    const auto found = std::ranges::find_if(module.tensors, [&](std::uint32_t tensor) {
      return split_suffix(tensors_[tensor].name).suffix == suffix;
    });
    return found == module.tensors.end() ? std::nullopt : std::optional(*found);
  }
  bool has_suffix(const Module& module, Suffix suffix) const {
    return find_suffix(module, suffix).has_value();
  }

  void add(const Module& module, Severity severity, std::string reason, std::string_view remedy) {
    const auto [at, is_new] = by_reason_.try_emplace(std::move(reason));
    Finding& finding = at->second;
    if (is_new) {
      finding.code = kMismatch;
      finding.severity = severity;
      finding.remedy = remedy;
    }
    finding.add_tensor(tensors_[module.tensors.front()].name);
    for (const std::uint32_t tensor : module.tensors) finding.bytes += tensors_[tensor].bytes;
  }

  std::span<const TensorInfo> tensors_;
  const ModuleTable& table_;
  const QuantizationConfig& config_;
  ModuleMatcher matcher_;
  std::map<std::string, Finding> by_reason_;
  std::vector<Finding> findings_;
};

// The method and format that a configuration would name for a scheme.
struct Naming {
  Scheme scheme;
  std::string_view method;
  std::string_view format;
};
constexpr std::array kNamings = std::to_array<Naming>({
    {Scheme::kCtPackQuantized, "compressed-tensors", "pack-quantized"},
    {Scheme::kCtNvfp4, "compressed-tensors", "nvfp4-pack-quantized"},
    {Scheme::kCtMxfp4, "compressed-tensors", "mxfp4-pack-quantized"},
    {Scheme::kCtMxfp8, "compressed-tensors", "mxfp8-quantized"},
    {Scheme::kCtInt, "compressed-tensors", "int-quantized"},
    {Scheme::kCtFloat, "compressed-tensors", "float-quantized"},
    {Scheme::kCtMarlin24, "compressed-tensors", "marlin-24"},
    {Scheme::kCtSparse, "compressed-tensors", "sparse-bitmask"},
    {Scheme::kModelOptFp8, "modelopt", "fp8"},
    {Scheme::kModelOptNvfp4, "modelopt", "nvfp4"},
    {Scheme::kModelOptInt4Awq, "modelopt", "w4a16_awq"},
    {Scheme::kModelOptInt8, "modelopt", "int8"},
    {Scheme::kFp8Block, "fp8", "block"},
    {Scheme::kFp8Scaled, "fp8", "scaled"},
    {Scheme::kPackedFp4, "mxfp4", "packed"},
    {Scheme::kBnbNf4, "bitsandbytes", "nf4"},
    {Scheme::kBnbFp4, "bitsandbytes", "fp4"},
    {Scheme::kBnbInt8, "bitsandbytes", "int8"},
    {Scheme::kGptq, "gptq", "gptq"},
    {Scheme::kAwqGemm, "awq", "gemm"},
    {Scheme::kAwqGemv, "awq", "gemv"},
    {Scheme::kAwqGemvFast, "awq", "gemv_fast"},
    {Scheme::kMarlin, "gptq", "marlin"},
    {Scheme::kGptOssMxfp4, "mxfp4", "blocks"},
    {Scheme::kMlxAffine, "mlx", "affine"},
    {Scheme::kMlxFp, "mlx", "float"},
    {Scheme::kTorchAo, "torchao", "safetensors"},
    {Scheme::kExl3, "exl3", "trellis"},
});

void unclaimed(std::span<const TensorInfo> tensors, const ModuleTable& table,
               std::vector<Finding>& findings) {
  Finding finding{.code = std::string(kMismatch),
                  .severity = Severity::kWarning,
                  .message = {},
                  .remedy =
                      "add the quantization config that the exporter wrote: without it most "
                      "loaders take the packed tensors for plain ones"};
  std::string_view scheme;
  for (const Module& module : table.modules) {
    if (!is_quantized(module.scheme) || module.scheme == Scheme::kGgufBlock) continue;
    if (scheme.empty()) scheme = scheme_key(module.scheme);
    finding.add_tensor(tensors[module.tensors.front()].name);
    for (const std::uint32_t tensor : module.tensors) finding.bytes += tensors[tensor].bytes;
  }
  if (finding.tensor_count == 0) return;
  finding.message =
      fmt::format("{} quantized ({}), but no configuration says so",
                  finding.tensor_count == 1 ? "1 module is"
                                            : with_thousands(finding.tensor_count) + " modules are",
                  scheme);
  findings.push_back(std::move(finding));
}

}  // namespace

std::vector<Finding> check_quantization(std::span<const format::TensorInfo> tensors,
                                        const ModuleTable& table,
                                        const QuantizationConfig* config) {
  if (config != nullptr && !config->method.empty()) return Checker(tensors, table, *config).run();
  std::vector<Finding> findings;
  unclaimed(tensors, table, findings);
  return findings;
}

std::optional<QuantizationConfig> quantization_from_tensors(
    std::span<const format::TensorInfo> tensors, const ModuleTable& table) {
  struct Kind {
    Scheme scheme;
    std::uint32_t bits;
    std::int64_t group_size;
    std::string_view block;  // of GGUF
    auto operator<=>(const Kind&) const = default;
  };
  std::map<Kind, std::uint64_t> bytes;
  for (const Module& module : table.modules) {
    if (!is_quantized(module.scheme)) continue;
    const bool gguf = module.scheme == Scheme::kGgufBlock;
    const std::string_view block = gguf ? dtype_name(tensors[module.tensors.front()].dtype) : "";
    std::uint64_t& sum = bytes[{module.scheme, module.bits, module.group_size, block}];
    for (const std::uint32_t tensor : module.tensors) sum += tensors[tensor].bytes;
  }
  if (bytes.empty()) return std::nullopt;
  const Kind& most =
      std::ranges::max_element(bytes, {}, [](const auto& e) { return e.second; })->first;
  QuantizationConfig config;
  const auto* naming = std::ranges::find(kNamings, most.scheme, &Naming::scheme);
  config.method = naming == kNamings.end() ? "gguf" : naming->method;
  config.format = naming == kNamings.end() ? most.block : naming->format;
  config.bits = most.bits;
  if (most.group_size != 0) config.group_size = most.group_size;
  config.schemes.push_back({.targets = {},
                            .format = config.format,
                            .bits = config.bits,
                            .group_size = config.group_size,
                            .symmetric = {}});
  return config;
}

}  // namespace gridscope::model
