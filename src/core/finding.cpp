#include "gridscope/core/finding.hpp"

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

}  // namespace gridscope
