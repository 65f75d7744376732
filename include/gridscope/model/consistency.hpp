#pragma once

// What the configuration claims about quantization, held against what the tensors show.

#include <optional>
#include <span>
#include <vector>

#include "gridscope/core/finding.hpp"
#include "gridscope/format/tensor_table.hpp"
#include "gridscope/model/modules.hpp"
#include "gridscope/model/quantization.hpp"

namespace gridscope::model {

// CONFIG_TENSOR_MISMATCH: claimed but plain, quantized but not claimed, another method than the
// label, other bits or group size, zero points in a symmetric scheme, ignored but packed, targeted
// but plain (a warning: what a class name targets is guessed from the tensors), patterns that are
// not understood (a note). UNKNOWN_QUANTIZATION: a method that gridscope does not know.
// `config` may be null; one without a method claims nothing.
[[nodiscard]] std::vector<Finding> check_quantization(std::span<const format::TensorInfo> tensors,
                                                      const ModuleTable& table,
                                                      const QuantizationConfig* config);

// The scheme that holds most of the quantized bytes, as a configuration would say it; empty when
// nothing is quantized. config_source is empty: only the tensors say so.
[[nodiscard]] std::optional<QuantizationConfig> quantization_from_tensors(
    std::span<const format::TensorInfo> tensors, const ModuleTable& table);

}  // namespace gridscope::model
