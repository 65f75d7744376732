#include "gridscope/analysis/quantization_summary.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "gridscope/analysis/inspection_rows.hpp"
#include "gridscope/analysis/stored_as.hpp"
#include "gridscope/model/checkpoint.hpp"

namespace gridscope::analysis {
namespace {

using model::Checkpoint;
using model::Module;
using model::Scheme;

std::string_view method_of(Scheme scheme) {
  switch (scheme) {
    case Scheme::kPlain:
    case Scheme::kUnknown:
      return "";
    case Scheme::kCtPackQuantized:
    case Scheme::kCtNvfp4:
    case Scheme::kCtMxfp4:
    case Scheme::kCtMxfp8:
    case Scheme::kCtInt:
    case Scheme::kCtFloat:
    case Scheme::kCtMarlin24:
    case Scheme::kCtSparse:
      return "compressed-tensors";
    case Scheme::kModelOptFp8:
    case Scheme::kModelOptNvfp4:
    case Scheme::kModelOptInt4Awq:
    case Scheme::kModelOptInt8:
      return "modelopt";
    case Scheme::kFp8Block:
    case Scheme::kFp8Scaled:
      return "fp8";
    case Scheme::kPackedFp4:
      return "fp4";
    case Scheme::kBnbNf4:
    case Scheme::kBnbFp4:
    case Scheme::kBnbInt8:
      return "bitsandbytes";
    case Scheme::kGptq:
      return "gptq";
    case Scheme::kAwqGemm:
    case Scheme::kAwqGemv:
    case Scheme::kAwqGemvFast:
      return "awq";
    case Scheme::kMarlin:
      return "marlin";
    case Scheme::kGptOssMxfp4:
      return "mxfp4";
    case Scheme::kMlxAffine:
    case Scheme::kMlxFp:
      return "mlx";
    case Scheme::kTorchAo:
      return "torchao";
    case Scheme::kGgufBlock:
      return "gguf";
    case Scheme::kExl3:
      break;
  }
  return "exl3";
}

// One way in which modules are quantized.
struct Kind {
  Scheme scheme = Scheme::kPlain;
  std::uint32_t bits = 0;
  std::int64_t group_size = 0;
  Dtype dtype = Dtype::kF32;  // of GGUF blocks, where it is the whole description

  friend auto operator<=>(const Kind&, const Kind&) = default;
};

// The kind that takes the most bytes, and in what all others are like it.
struct Kinds {
  Kind most;
  bool same_bits = true;
  bool same_group_size = true;
};

// Empty when nothing is quantized.
std::optional<Kinds> find_kinds(const Checkpoint& checkpoint) {
  std::map<Kind, std::uint64_t> bytes_of;
  for (const Module& module : checkpoint.modules.modules) {
    if (method_of(module.scheme).empty()) continue;
    for (const std::uint32_t tensor : module.tensors) {
      Kind kind{module.scheme, module.bits, module.group_size};
      if (!is_coded(module.scheme)) kind.dtype = checkpoint.tensors[tensor].dtype;
      std::uint64_t& bytes = bytes_of[kind];
      bytes = saturating_add(bytes, checkpoint.tensors[tensor].bytes);
    }
  }
  if (bytes_of.empty()) return std::nullopt;
  const auto by_bytes = [](const auto& entry) { return entry.second; };
  Kinds kinds{.most = std::ranges::max_element(bytes_of, {}, by_bytes)->first};
  for (const auto& [kind, bytes] : bytes_of) {
    kinds.same_bits = kinds.same_bits && kind.bits == kinds.most.bits;
    kinds.same_group_size = kinds.same_group_size && kind.group_size == kinds.most.group_size;
  }
  return kinds;
}

void complete(QuantizationSummary& summary, const Kinds& kinds) {
  const Kind& kind = kinds.most;
  if (summary.method.empty()) summary.method = method_of(kind.scheme);
  // A GGUF block type says it all: "Q4_K" has no one group size or number of bits.
  if (!is_coded(kind.scheme)) {
    if (summary.format.empty()) summary.format = dtype_name(kind.dtype);
    return;
  }
  if (summary.format.empty()) summary.format = model::scheme_key(kind.scheme);
  if (!summary.bits && kind.bits != 0 && kinds.same_bits) summary.bits = kind.bits;
  if (!summary.group_size && kind.group_size != 0 && kinds.same_group_size) {
    summary.group_size = kind.group_size;
  }
}

}  // namespace

std::optional<QuantizationSummary> summarize_quantization(const Checkpoint& checkpoint) {
  std::optional<Kinds> kinds = find_kinds(checkpoint);
  const std::optional<model::QuantizationConfig>& claim = checkpoint.quantization;
  // A claim without a method counts only when tensors bear it out.
  const bool claimed = claim && (!claim->method.empty() || kinds);
  if (!claimed && !kinds) return std::nullopt;
  QuantizationSummary summary;
  if (claimed) {
    summary = {.method = claim->method,
               .format = claim->format,
               .bits = claim->bits,
               .group_size = claim->group_size,
               .symmetric = claim->symmetric,
               .config_source = claim->config_source};
  }
  // What a claim of mixed precision leaves open has no one answer.
  if (kinds && !claimed) kinds->same_bits = kinds->same_group_size = true;
  if (kinds) complete(summary, *kinds);
  return summary;
}

}  // namespace gridscope::analysis
