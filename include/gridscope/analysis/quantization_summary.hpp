#pragma once

// How a checkpoint is quantized, in one line: what the configuration claims, completed by what the
// tensors show.

#include <optional>

#include "gridscope/analysis/inspection.hpp"

namespace gridscope::analysis {

// Empty when nothing is quantized. Without a claim, or with one that names no method, the scheme
// that takes the most bytes speaks for the checkpoint; config_source is then "". What a claim
// leaves open (bits, group size) is taken from that scheme, unless the tensors differ in it. A
// claim that the tensors contradict is repeated as it stands: CONFIG_TENSOR_MISMATCH tells.
[[nodiscard]] std::optional<QuantizationSummary> summarize_quantization(
    const model::Checkpoint& checkpoint);

}  // namespace gridscope::analysis
