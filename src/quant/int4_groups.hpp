#pragma once

// Groups of 4-bit codes in plain arithmetic: what kernels do for those that their own way does not
// fit, and all that the scalar target does.

#include <cstdint>
#include <span>

#include "gridscope/quant/error_sums.hpp"

namespace gridscope::quant {

inline constexpr int kInt4Lowest = -8;
inline constexpr int kInt4Highest = 7;

// Of the levels 1 to 8 the least common multiple. The middle between two BF16 numbers has 9
// significant bits, and this over a level 10: their product is exact in float, with bits to spare.
inline constexpr int kCommonMultiple = 840;

// Counts and adds groups [first, end) of row `row` (of the block) to the sums of that row.
// Requires: what compare_int4_bf16() requires.
void add_int4_groups(const Int4Rows& build, const SourceRows& source, std::uint64_t row,
                     RowRange groups, ErrorSums& sums);

}  // namespace gridscope::quant
