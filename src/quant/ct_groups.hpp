#pragma once

// Groups of columns as compressed-tensors has them: neighbours, or where activation order was used
// the ones that a group index gives the same number. And what their zero points may be.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gridscope/core/result.hpp"
#include "gridscope/quant/weight_decoder.hpp"

namespace gridscope::quant {

struct CtGroups {
  GroupLayout layout;
  std::vector<std::string> remarks = {};
};

// An index with a -1 in it was never filled in and counts as none. Errors: kCorrupt for an index of
// another length than `columns` or with numbers outside [0, groups).
[[nodiscard]] Result<CtGroups> solve_ct_groups(const WeightSpec& spec, std::uint64_t columns,
                                               std::uint64_t group_size);

// kCorrupt with the place of the first zero point that is no level, or that is not 0 although the
// weight is symmetric. Requires: rows x layout.groups.stride() of them.
[[nodiscard]] Status check_ct_zeros(const WeightSpec& spec, const WeightLayout& layout,
                                    RowRange rows, std::span<const std::int16_t> zeros);

}  // namespace gridscope::quant
