#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "gridscope/quant/bitstream.hpp"
#include "packers.hpp"

namespace gridscope::quant {
namespace {

constexpr std::array<std::uint32_t, 6> kBits = {2, 3, 4, 5, 6, 8};
constexpr std::array<std::uint64_t, 3> kGroupSizes = {32, 64, 128};

}  // namespace

Result<WeightSpec> pack_mlx(const LeveledWeight& weight, const WeightSpec& like) {
  if (std::ranges::find(kBits, weight.bits) == kBits.end() ||
      std::ranges::find(kGroupSizes, weight.group_size) == kGroupSizes.end()) {
    return cannot_hold(like,
                       fmt::format("{} bits in groups of {}", weight.bits, weight.group_size));
  }
  if (!weight.group_of_column.empty()) return cannot_hold(like, "columns out of order");
  const std::vector<std::uint64_t> grid = {weight.rows, groups_of(weight)};
  WeightSpec spec = without_tensors(like);
  spec.bits = weight.bits;
  spec.group_size = static_cast<std::int64_t>(weight.group_size);
  // Groups are whole words, so rows are, and all rows are one stream.
  StoredTensor codes = {.dtype = Dtype::kU32,
                        .shape = {weight.rows, weight.columns * weight.bits / 32}};
  codes.data.resize(weight.levels.size() * weight.bits / 8);
  pack_bits(codes_of(weight.levels, weight.bits), weight.bits, codes.data);
  spec[Companion::kCodes] = std::move(codes);
  const Dtype type = scale_type_of(like);
  GRIDSCOPE_TRY(spec[Companion::kScale], exact_tensor(like, type, grid, weight.scales));
  GRIDSCOPE_TRY(spec[Companion::kOffset], exact_tensor(like, type, grid, offsets_of(weight)));
  return spec;
}

}  // namespace gridscope::quant
