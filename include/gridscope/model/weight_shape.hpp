#pragma once

// The shape of a weight as its model sees it, told from the shapes of what is stored.

#include <cstdint>
#include <span>
#include <vector>

#include "gridscope/quant/weight_spec.hpp"

namespace gridscope::model {

struct LogicalShape {
  // [outputs, inputs], [experts, outputs, inputs]; of an input-major stack in the order as stored.
  std::vector<std::uint64_t> shape = {};
  // Codes fill whole words or bytes: there may be up to so many columns fewer.
  std::uint64_t padding = 0;
  // Of bitsandbytes' 4-bit weights a header tells only how many there are; then `shape` is flat.
  bool is_flat = false;
};

// Requires: the spec has its codes. `parameters` is the number of weights that they hold (that of
// ModuleTable::parameters_of), `bits` those of one code.
[[nodiscard]] LogicalShape logical_shape(const quant::WeightSpec& spec, std::uint64_t parameters,
                                         std::uint32_t bits);

// Whether a stack of NVFP4 is stored [experts, inputs / 2, outputs] with scales [experts, inputs /
// 16, outputs]: no other order fits both shapes. `codes` are bytes of two.
[[nodiscard]] bool is_input_major_nvfp4(std::span<const std::uint64_t> codes,
                                        std::span<const std::uint64_t> scales);

}  // namespace gridscope::model
