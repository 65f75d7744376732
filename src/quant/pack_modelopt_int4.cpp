#include <fmt/format.h>

#include "packers.hpp"

namespace gridscope::quant {

Result<WeightSpec> pack_modelopt_int4(const LeveledWeight& weight, const WeightSpec& like) {
  if (weight.bits != 4) return cannot_hold(like, fmt::format("{} bits", weight.bits));
  if (has_zeros(weight)) return cannot_hold(like, "zero points");
  if (!weight.group_of_column.empty()) return cannot_hold(like, "columns out of order");
  if (weight.rows % 2 != 0) return cannot_hold(like, fmt::format("{} rows, odd", weight.rows));
  std::vector<std::uint8_t> pairs(weight.levels.size() / 2);
  for (std::uint64_t i = 0; i < weight.levels.size(); ++i) {
    const std::uint64_t row = i / weight.columns;
    const unsigned nibble = static_cast<unsigned>(weight.levels[i]) & 0xfU;
    std::uint8_t& pair = pairs[row / 2 * weight.columns + i % weight.columns];
    pair = static_cast<std::uint8_t>(pair | nibble << (row % 2 * 4));
  }
  WeightSpec spec = without_tensors(like);
  spec.bits = weight.bits;
  spec.group_size = static_cast<std::int64_t>(weight.group_size);
  spec[Companion::kCodes] =
      integer_tensor<std::uint8_t>(Dtype::kU8, {weight.rows / 2, weight.columns}, pairs);
  GRIDSCOPE_TRY(
      spec[Companion::kScale],
      exact_tensor(like, scale_type_of(like), {weight.rows, groups_of(weight)}, weight.scales));
  return spec;
}

}  // namespace gridscope::quant
