#include "int4_groups.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "gridscope/quant/codec.hpp"
#include "group_sums.hpp"

namespace gridscope::quant {
namespace {

// The 16 values that the codes of one group stand for, rounded to BF16.
std::array<double, 16> rounded_values(double scale, int zero) {
  std::array<double, 16> values = {};
  for (int code = 0; code < 16; ++code) {
    values[static_cast<std::size_t>(code)] =
        bf16_value(to_bf16((code + kInt4Lowest - zero) * scale));
  }
  return values;
}

}  // namespace

void add_int4_groups(const Int4Rows& build, const SourceRows& source, std::uint64_t row,
                     RowRange groups, ErrorSums& sums) {
  const std::uint64_t size = build.group_size;
  const auto codes = build.codes.subspan(row * build.row_bytes);
  const auto stored = source.bytes.subspan(row * build.groups * size * 2);
  std::vector<double> build_values(size);
  std::vector<double> source_values(size);
  for (std::uint64_t g = groups.first; g < groups.end(); ++g) {
    const std::uint64_t index = row * build.groups + g;
    const int zero = build.zeros.empty() ? 0 : build.zeros[index];
    const auto scale = static_cast<double>(build.scales[index]);
    const auto values = rounded_values(scale, zero);
    for (std::uint64_t i = 0; i < size; ++i) {
      const auto pair = std::to_integer<unsigned>(codes[(g * size + i) / 2]);
      const unsigned code = pair >> (i % 2 * 4) & 0xfU;
      build_values[i] = values[code];
      if (code == 0) ++sums.saturated_low;
      if (code == 15) ++sums.saturated_high;
    }
    load_numbers(Dtype::kBF16, stored.subspan(g * size * 2), source_values);
    add_group({.build = build_values,
               .source = source_values,
               .scale = scale,
               .row = build.first_row + row,
               .first_column = g * size},
              sums);
    if (zero != 0) ++sums.zero_points_used;
  }
}

}  // namespace gridscope::quant
