#pragma once

// What a quantization configuration adds to the tensors of one weight, in the terms of room quant.

#include "gridscope/model/quantization.hpp"
#include "gridscope/quant/weight_spec.hpp"

namespace gridscope::model {

// Fills in what `config` and `scheme`, the part of it that holds for this weight, say. Requires:
// spec.scheme is known. `scheme` may be null.
void apply_claim(const QuantizationConfig& config, const QuantizationConfig::Scheme* scheme,
                 quant::WeightSpec& spec);

}  // namespace gridscope::model
