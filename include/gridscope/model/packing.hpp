#pragma once

// How many weights a module holds, in how many bits, and how many share a scale: solved from the
// shapes of its tensors, with the configuration's claim as the first guess.

#include <cstdint>
#include <string>

#include "gridscope/model/module_view.hpp"
#include "gridscope/model/modules.hpp"

namespace gridscope::model {

struct Packing {
  std::uint32_t bits = 0;
  std::int64_t group_size = 0;   // as in Module
  std::uint64_t parameters = 0;  // weights, without biases
  std::string fault = {};        // shapes that contradict each other; empty when they agree
};

// Requires: `module` has the tensor that holds the weights (weight_suffix).
[[nodiscard]] Packing measure_packing(Scheme scheme, const ModuleView& module);

}  // namespace gridscope::model
