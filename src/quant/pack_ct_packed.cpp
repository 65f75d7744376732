#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ct_packing.hpp"
#include "packers.hpp"

namespace gridscope::quant {
namespace {

constexpr std::uint64_t kWordBytes = 4;
constexpr std::uint32_t kMostBits = 8;

// Each row of codes in words of its own.
StoredTensor packed_rows(CtPacking packing, std::uint32_t bits, std::span<const std::uint8_t> codes,
                         std::uint64_t columns) {
  const std::uint64_t rows = codes.size() / columns;
  const std::uint64_t words = ct_words(packing, bits, columns);
  StoredTensor tensor = {.dtype = Dtype::kI32, .shape = {rows, words}};
  tensor.data.resize(rows * words * kWordBytes);
  for (std::uint64_t row = 0; row < rows; ++row) {
    pack_ct(packing, bits, codes.subspan(row * columns, columns),
            std::span(tensor.data).subspan(row * words * kWordBytes, words * kWordBytes));
  }
  return tensor;
}

// The words of `rows` as columns: what is packed along a row then runs down the rows.
StoredTensor transposed(const StoredTensor& rows) {
  const std::uint64_t height = rows.shape[0];
  const std::uint64_t width = rows.shape[1];
  StoredTensor tensor = {.dtype = rows.dtype, .shape = {width, height}};
  tensor.data.resize(rows.data.size());
  for (std::uint64_t row = 0; row < height; ++row) {
    for (std::uint64_t column = 0; column < width; ++column) {
      const auto word = std::span(rows.data).subspan((row * width + column) * kWordBytes);
      std::ranges::copy(word.first(kWordBytes), &tensor.data[(column * height + row) * kWordBytes]);
    }
  }
  return tensor;
}

StoredTensor packed_zeros(CtPacking packing, const LeveledWeight& weight) {
  const std::uint64_t groups = groups_of(weight);
  const std::vector<std::uint8_t> codes = codes_of(weight.zeros, weight.bits);
  std::vector<std::uint8_t> by_group(codes.size());
  for (std::uint64_t i = 0; i < codes.size(); ++i) {
    by_group[i % groups * weight.rows + i / groups] = codes[i];
  }
  return transposed(packed_rows(packing, weight.bits, by_group, weight.rows));
}

StoredTensor unpacked_zeros(const LeveledWeight& weight) {
  const std::vector<std::int8_t> zeros(weight.zeros.begin(), weight.zeros.end());
  return integer_tensor<std::int8_t>(Dtype::kI8, {weight.rows, groups_of(weight)}, zeros);
}

}  // namespace

Result<WeightSpec> pack_ct_packed(const LeveledWeight& weight, const WeightSpec& like) {
  if (weight.bits > kMostBits) return cannot_hold(like, fmt::format("{} bits", weight.bits));
  if (like.symmetric == true && !weight.zeros.empty()) {
    return cannot_hold(like, "it has zero points, and the format is symmetric");
  }
  WeightSpec spec = without_tensors(like);
  spec.bits = weight.bits;
  spec.group_size = static_cast<std::int64_t>(weight.group_size);
  spec.symmetric = weight.zeros.empty();
  const CtPacking packing =
      like.ct_packing == CtPacking::kWholeCodes ? CtPacking::kWholeCodes : CtPacking::kDense;
  spec.ct_packing = packing;
  const std::vector<std::uint8_t> codes = codes_of(weight.levels, weight.bits);
  spec[Companion::kCodes] = packed_rows(packing, weight.bits, codes, weight.columns);
  GRIDSCOPE_TRY(
      spec[Companion::kScale],
      exact_tensor(like, scale_type_of(like), {weight.rows, groups_of(weight)}, weight.scales));
  const std::array<std::uint64_t, 2> shape = {weight.rows, weight.columns};
  spec[Companion::kShape] = integer_tensor<std::uint64_t>(Dtype::kI64, {shape.size()}, shape);
  if (!weight.zeros.empty()) {
    const StoredTensor* const zeros = like.find(Companion::kZeroPoint);
    spec[Companion::kZeroPoint] = zeros != nullptr && zeros->dtype == Dtype::kI8
                                      ? unpacked_zeros(weight)
                                      : packed_zeros(packing, weight);
  }
  if (!weight.group_of_column.empty()) {
    spec[Companion::kGroupIndex] =
        integer_tensor<std::uint32_t>(Dtype::kI32, {weight.columns}, weight.group_of_column);
  }
  return spec;
}

}  // namespace gridscope::quant
