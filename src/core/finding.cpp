#include "gridscope/core/finding.hpp"

#include <algorithm>

namespace gridscope {

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      break;
  }
  return "error";
}

void Finding::add_tensor(std::string_view name) {
  if (tensors.size() < kMaxTensorsNamed) tensors.emplace_back(name);
  ++tensor_count;
}

std::optional<Severity> worst_severity(std::span<const Finding> findings) {
  if (findings.empty()) return std::nullopt;
  return std::ranges::max(findings, {}, &Finding::severity).severity;
}

}  // namespace gridscope
