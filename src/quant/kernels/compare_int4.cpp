#include "gridscope/quant/error_sums.hpp"
#include "quant/int4_groups.hpp"

namespace gridscope::quant {

ErrorSums compare_int4_bf16(const Int4Rows& build, const SourceRows& source) {
  ErrorSums tile;
  for (std::uint64_t row = 0; row < build.rows; ++row) {
    ErrorSums sums;
    add_int4_groups(build, source, row, {.first = 0, .count = build.groups}, sums);
    tile.add(sums);
  }
  return tile;
}

}  // namespace gridscope::quant
