#pragma once

// One module's tensors, to be asked for by suffix, together with what the configuration claims of
// it: all that is needed to tell how the module is stored.

#include <array>
#include <cstdint>
#include <string_view>

#include "gridscope/format/tensor_table.hpp"
#include "gridscope/model/quantization.hpp"
#include "gridscope/model/tensor_suffix.hpp"

namespace gridscope::model {

class ModuleView {
 public:
  // Of two tensors with one suffix the first counts. The tensor must outlive the view.
  void add(Suffix suffix, const format::TensorInfo& tensor) {
    const format::TensorInfo*& slot = tensors_.at(static_cast<std::size_t>(suffix));
    if (slot == nullptr) slot = &tensor;
  }

  [[nodiscard]] const format::TensorInfo* find(Suffix suffix) const {
    return tensors_.at(static_cast<std::size_t>(suffix));
  }
  [[nodiscard]] bool has(Suffix suffix) const { return find(suffix) != nullptr; }

  std::string_view method = {};                       // of the configuration; empty without one
  const QuantizationConfig::Scheme* claim = nullptr;  // what it says of this module

 private:
  std::array<const format::TensorInfo*, kSuffixCount> tensors_ = {};
};

// The last dimension, and the product of all others; 1 where there is none.
[[nodiscard]] inline std::uint64_t columns_of(const format::TensorInfo& tensor) {
  return tensor.shape.empty() ? 1 : tensor.shape.back();
}
[[nodiscard]] inline std::uint64_t rows_of(const format::TensorInfo& tensor) {
  std::uint64_t rows = 1;
  for (std::size_t i = 0; i + 1 < tensor.shape.size(); ++i) rows *= tensor.shape[i];
  return rows;
}

}  // namespace gridscope::model
