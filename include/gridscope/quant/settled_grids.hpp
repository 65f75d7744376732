#pragma once

// Groups whose grid needs no search. Where a build kept the levels of the source, its codes are the
// levels of the source's grid, and a step near the build's own gives all weights back: one look
// shows that. What is left to know is whether other levels could do as well, and most sets of
// levels rule that out, whatever the step.

#include <cstdint>
#include <span>

#include "gridscope/quant/error_sums.hpp"
#include "gridscope/quant/weight_decoder.hpp"

namespace gridscope::quant {

// What fit_grids() would say of each group of the build's size, where that is certain: kOnGrid with
// this level of the largest weight (GridFit::top_level), with steps[i] among the feasible steps,
// and with a step so near to the build's that no weight has moved. 0 where only the search can
// tell. `steps` are those that compare_int4_bf16() found. Requires: source as in
// compare_int4_bf16(); spans of rows x groups.
void settle_grids(const Int4Rows& build, const SourceRows& source, std::span<const float> steps,
                  std::span<std::int8_t> top_levels);

}  // namespace gridscope::quant
