#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gridscope/core/checked.hpp"
#include "gridscope/quant/codec.hpp"
#include "packers.hpp"

namespace gridscope::quant {
namespace {

constexpr double kBnbInt8Range = 127.0;
constexpr std::uint32_t kByteBits = 8;

bool is_integer_scheme(Scheme scheme) {
  return scheme == Scheme::kCtInt || scheme == Scheme::kModelOptInt8 || scheme == Scheme::kBnbInt8;
}

// Two's complement in the smallest type that has the bits.
StoredTensor integer_codes(const LeveledWeight& weight) {
  const std::vector<std::uint64_t> shape = {weight.rows, weight.columns};
  if (weight.bits > kByteBits) {
    return integer_tensor<std::int16_t>(Dtype::kI16, shape, weight.levels);
  }
  const std::vector<std::int8_t> codes(weight.levels.begin(), weight.levels.end());
  return integer_tensor<std::int8_t>(Dtype::kI8, shape, codes);
}

// Levels of floats are their codes with the sign taken out; which of them are numbers depends on
// the type.
Result<StoredTensor> float_codes(const LeveledWeight& weight, const WeightSpec& like) {
  if (weight.bits != kByteBits) return cannot_hold(like, fmt::format("{} bits", weight.bits));
  const StoredTensor* const codes = like.find(Companion::kCodes);
  const Dtype dtype = codes == nullptr ? Dtype::kF8E4M3 : codes->dtype;
  constexpr int kSign = 0x80;
  std::vector<std::uint8_t> stored(weight.levels.size());
  std::ranges::transform(weight.levels, stored.begin(), [](int level) {
    return static_cast<std::uint8_t>(level < 0 ? kSign - level : level);
  });
  StoredTensor tensor = integer_tensor<std::uint8_t>(dtype, {weight.rows, weight.columns}, stored);
  std::vector<double> values(stored.size());
  load_numbers(dtype, tensor.data, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i]) || weight.levels[i] == -kSign) {
      return cannot_hold(like, fmt::format("level {} of {}", weight.levels[i], dtype_name(dtype)));
    }
  }
  return tensor;
}

// Which scale of the weight each one of the grid is, and whether all others of its block are equal.
Result<std::vector<double>> block_scales(const LeveledWeight& weight, const WeightSpec& like,
                                         std::uint64_t block_rows) {
  const std::uint64_t groups = groups_of(weight);
  std::vector<double> scales;
  for (std::uint64_t i = 0; i < weight.scales.size(); ++i) {
    const std::uint64_t row = i / groups;
    const double first = weight.scales[row / block_rows * block_rows * groups + i % groups];
    if (weight.scales[i] != first) {
      return cannot_hold(like, fmt::format("the scales of row {} are not those of its block", row));
    }
    if (row % block_rows == 0) scales.push_back(first);
  }
  return scales;
}

// One scale for everything when `like` has one of shape [1], blocks when it claims any, else one
// for each group.
Result<StoredTensor> grid_scales(const LeveledWeight& weight, const WeightSpec& like) {
  const StoredTensor* const asked = like.find(Companion::kScale);
  const bool single = asked != nullptr && asked->shape == std::vector<std::uint64_t>{1};
  std::uint64_t block_rows = std::max<std::uint64_t>(like.block[0], 1);
  if (single) block_rows = std::max<std::uint64_t>(weight.rows, 1);
  if (single && groups_of(weight) != 1) return cannot_hold(like, "a row has more than one group");
  GRIDSCOPE_TRY(std::vector<double> scales, block_scales(weight, like, block_rows));
  if (like.scale_use == WeightSpec::ScaleUse::kDivide) {
    std::ranges::transform(scales, scales.begin(), [](double scale) { return 1.0 / scale; });
  }
  std::vector<std::uint64_t> shape = {ceil_div(weight.rows, block_rows), groups_of(weight)};
  if (single) shape = {1};
  // Exponents that are stored as bytes are still exponents.
  const bool bytes = scale_type_of(like) == Dtype::kU8;
  GRIDSCOPE_TRY(
      StoredTensor tensor,
      exact_tensor(like, bytes ? Dtype::kF8E8M0 : scale_type_of(like), std::move(shape), scales));
  if (bytes) tensor.dtype = Dtype::kU8;
  return tensor;
}

// SCB is the scale of a whole row times 127.
Result<StoredTensor> bnb_scales(const LeveledWeight& weight, const WeightSpec& like) {
  if (groups_of(weight) != 1) return cannot_hold(like, "a row has more than one group");
  std::vector<double> ranges(weight.scales.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    ranges[i] = static_cast<double>(static_cast<float>(weight.scales[i] * kBnbInt8Range));
    if (ranges[i] / kBnbInt8Range != weight.scales[i]) {
      return cannot_hold(like, fmt::format("{} is not an F32 / 127", weight.scales[i]));
    }
  }
  return exact_tensor(like, Dtype::kF32, {weight.rows}, ranges);
}

Status add_zeros(const LeveledWeight& weight, const WeightSpec& like, WeightSpec& spec) {
  if (like.scheme != Scheme::kCtInt) return cannot_hold(like, "it has zero points");
  spec.symmetric = false;
  const std::vector<std::uint64_t> shape = {weight.rows, groups_of(weight)};
  if (weight.bits > kByteBits) {
    spec[Companion::kZeroPoint] = integer_tensor<std::int16_t>(Dtype::kI16, shape, weight.zeros);
    return {};
  }
  const std::vector<std::int8_t> zeros(weight.zeros.begin(), weight.zeros.end());
  spec[Companion::kZeroPoint] = integer_tensor<std::int8_t>(Dtype::kI8, shape, zeros);
  return {};
}

}  // namespace

Result<WeightSpec> pack_element(const LeveledWeight& weight, const WeightSpec& like) {
  WeightSpec spec = without_tensors(like);
  spec.bits = weight.bits;
  if (is_integer_scheme(like.scheme)) {
    spec[Companion::kCodes] = integer_codes(weight);
  } else {
    GRIDSCOPE_TRY(spec[Companion::kCodes], float_codes(weight, like));
  }
  const bool bnb = like.scheme == Scheme::kBnbInt8;
  GRIDSCOPE_TRY(spec[Companion::kScale],
                bnb ? bnb_scales(weight, like) : grid_scales(weight, like));
  if (!weight.zeros.empty()) GRIDSCOPE_CHECK(add_zeros(weight, like, spec));
  if (!weight.group_of_column.empty()) {
    spec[Companion::kGroupIndex] =
        integer_tensor<std::uint32_t>(Dtype::kI32, {weight.columns}, weight.group_of_column);
  }
  return spec;
}

}  // namespace gridscope::quant
