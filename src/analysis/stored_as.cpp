#include "gridscope/analysis/stored_as.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace gridscope::analysis {
namespace {

using model::Scheme;

constexpr std::size_t kKindsNamed = 3;

// What one code is; the number of bits follows where the name alone does not give it.
struct CodeName {
  std::string_view name;
  bool with_bits;
};

bool is_float8(Dtype dtype) {
  return dtype == Dtype::kF8E4M3 || dtype == Dtype::kF8E5M2;
}

CodeName code_name(const StorageKind& kind) {
  switch (kind.scheme) {
    case Scheme::kCtNvfp4:
    case Scheme::kModelOptNvfp4:
      return {"nvfp4", false};
    case Scheme::kCtMxfp4:
    case Scheme::kGptOssMxfp4:
      return {"mxfp4", false};
    case Scheme::kCtMxfp8:
      return {"mxfp8", false};
    case Scheme::kBnbNf4:
      return {"nf4", false};
    case Scheme::kCtFloat:
    case Scheme::kModelOptFp8:
    case Scheme::kFp8Block:
    case Scheme::kFp8Scaled:
    case Scheme::kPackedFp4:
    case Scheme::kBnbFp4:
    case Scheme::kMlxFp:
      return {"fp", true};
    case Scheme::kCtSparse:
      return {"sparse", false};
    case Scheme::kTorchAo:
      return {is_float8(kind.dtype) ? "torchao fp" : "torchao int", true};
    case Scheme::kExl3:
      return {"exl3", false};
    default:
      return {"int", true};
  }
}

std::string group_text(std::int64_t group_size) {
  if (group_size < 0) return " per row";
  return group_size == 0 ? "" : fmt::format(" g{}", group_size);
}

}  // namespace

bool is_coded(Scheme scheme) {
  return scheme != Scheme::kPlain && scheme != Scheme::kGgufBlock && scheme != Scheme::kUnknown;
}

std::string describe(const StorageKind& kind) {
  if (kind.scheme == Scheme::kUnknown) {
    return fmt::format("{} of unknown packing", dtype_name(kind.dtype));
  }
  if (!is_coded(kind.scheme)) return std::string(dtype_name(kind.dtype));
  const CodeName code = code_name(kind);
  std::string text(code.name);
  if (code.with_bits && kind.bits > 0) text += std::to_string(kind.bits);
  text += group_text(kind.group_size);
  if (kind.scales) text += fmt::format(", {} scales", dtype_name(*kind.scales));
  return text;
}

std::string describe(const StorageMix& mix) {
  std::vector<std::pair<std::uint64_t, std::string>> kinds;
  for (const auto& [kind, bytes] : mix) kinds.emplace_back(bytes, describe(kind));
  std::ranges::sort(kinds, [](const auto& a, const auto& b) {
    return std::tie(b.first, a.second) < std::tie(a.first, b.second);
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(kinds.size(), kKindsNamed); ++i) {
    text += (i == 0 ? "" : " + ") + kinds[i].second;
  }
  if (kinds.size() > kKindsNamed) text += fmt::format(" + {} more", kinds.size() - kKindsNamed);
  return text;
}

}  // namespace gridscope::analysis
