#pragma once

// Decoded rows as xtensor arrays, without a copy. The one header of gridscope that includes
// xtensor: who includes it needs xtensor, who does not does not.

#include <array>
#include <cstddef>
#include <cstdint>
#include <xtensor/xadapt.hpp>

#include "gridscope/quant/row_block.hpp"

namespace gridscope::analysis {

// [rows, columns] of the exact dequantized values. Valid as long as the block is unchanged.
[[nodiscard]] inline auto values_view(const quant::RowBlock& block) {
  return xt::adapt(block.values.data(), block.values.size(), xt::no_ownership(),
                   std::array<std::size_t, 2>{block.rows, block.columns});
}

// [rows, columns] of the stored levels; [0, columns] of a plain weight, which has none.
[[nodiscard]] inline auto levels_view(const quant::RowBlock& block) {
  const std::size_t rows = block.levels.empty() ? 0 : block.rows;
  return xt::adapt(block.levels.data(), block.levels.size(), xt::no_ownership(),
                   std::array<std::size_t, 2>{rows, block.columns});
}

// [rows, groups] of the steps; [0, groups] of a plain weight.
[[nodiscard]] inline auto scales_view(const quant::RowBlock& block) {
  const std::size_t rows = block.scales.empty() ? 0 : block.rows;
  return xt::adapt(block.scales.data(), block.scales.size(), xt::no_ownership(),
                   std::array<std::size_t, 2>{rows, block.stride});
}

}  // namespace gridscope::analysis
