#pragma once

// In which order a list of weights keeps its dimensions, where that is not outputs before inputs,
// and stacks that have to be taken apart to be read.

#include <string_view>
#include <vector>

#include "gridscope/model/weights.hpp"

namespace gridscope::model {

// GPT-2's Conv1D and the expert stacks of Llama 4 and dequantized gpt-oss, ModelOpt's builds of
// them included, are stored [inputs, outputs]: their shapes are turned and their specs say so.
// Expert stacks that a decoder cannot take as one matrix, these and packings that know no stacks,
// become a weight for each matrix.
[[nodiscard]] std::vector<Weight> settle_orders(std::vector<Weight> weights,
                                                std::string_view model_type);

}  // namespace gridscope::model
