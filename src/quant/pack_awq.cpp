#include <fmt/format.h>

#include <algorithm>

#include "awq_packing.hpp"
#include "gridscope/quant/bitstream.hpp"
#include "packers.hpp"

namespace gridscope::quant {
namespace {

constexpr std::uint32_t kBits = 4;

std::vector<std::uint8_t> zero_codes(const LeveledWeight& weight) {
  if (!weight.zeros.empty()) return codes_of(weight.zeros, kBits);
  return std::vector<std::uint8_t>(weight.scales.size(), 8);
}

// ---- GEMM ---------------------------------------------------------------------------------------

// Codes [rows][columns] -> words [columns][rows / 8].
StoredTensor pack_words_down(std::span<const std::uint8_t> codes, std::uint64_t rows) {
  const std::uint64_t columns = codes.size() / rows;
  const std::uint64_t width = rows / kAwqWord;
  std::vector<std::uint32_t> words(columns * width);
  for (std::uint64_t i = 0; i < codes.size(); ++i) {
    const std::uint64_t row = i / columns;
    const unsigned shift = 4 * kAwqNibble[row % kAwqWord];
    words[i % columns * width + row / kAwqWord] |= std::uint32_t{codes[i]} << shift;
  }
  return integer_tensor<std::uint32_t>(Dtype::kI32, {columns, width}, words);
}

Result<WeightSpec> pack_gemm(const LeveledWeight& weight, const WeightSpec& like) {
  if (weight.rows % kAwqWord != 0) {
    return cannot_hold(like, fmt::format("{} rows, no multiple of {}", weight.rows, kAwqWord));
  }
  WeightSpec spec = without_tensors(like);
  spec[Companion::kCodes] = pack_words_down(codes_of(weight.levels, kBits), weight.rows);
  spec[Companion::kZeroPoint] = pack_words_down(zero_codes(weight), weight.rows);
  GRIDSCOPE_TRY(spec[Companion::kScale], scales_by_group(weight, like));
  return spec;
}

// ---- GEMV ---------------------------------------------------------------------------------------

// Rows of `columns` codes, each padded with zeros to `padded`, eight to a word.
StoredTensor pack_words_along(std::span<const std::uint8_t> codes, std::uint64_t columns,
                              std::uint64_t padded) {
  const std::uint64_t rows = codes.size() / columns;
  StoredTensor tensor = {.dtype = Dtype::kI32, .shape = {rows, padded / kAwqWord}};
  tensor.data.resize(rows * padded / 2);
  for (std::uint64_t row = 0; row < rows; ++row) {
    pack_bits(codes.subspan(row * columns, columns), kBits,
              std::span(tensor.data).subspan(row * padded / 2, padded / 2));
  }
  return tensor;
}

Result<WeightSpec> pack_gemv(const LeveledWeight& weight, const WeightSpec& like) {
  if (weight.columns % kAwqWord != 0) {
    return cannot_hold(like,
                       fmt::format("{} columns, no multiple of {}", weight.columns, kAwqWord));
  }
  const std::uint64_t groups = groups_of(weight);
  const std::uint64_t padded = awq_padded_groups(groups, weight.group_size);
  std::vector<double> scales(weight.rows * padded);
  for (std::uint64_t i = 0; i < weight.scales.size(); ++i) {
    scales[i / groups * padded + i % groups] = weight.scales[i];
  }
  WeightSpec spec = without_tensors(like);
  spec[Companion::kCodes] =
      pack_words_along(codes_of(weight.levels, kBits), weight.columns, weight.columns);
  spec[Companion::kZeroPoint] = pack_words_along(zero_codes(weight), groups, padded);
  GRIDSCOPE_TRY(spec[Companion::kScale],
                exact_tensor(like, scale_type_of(like), {weight.rows, padded}, scales));
  return spec;
}

// ---- GEMV_FAST ----------------------------------------------------------------------------------

StoredTensor pack_woven(const LeveledWeight& weight) {
  const std::vector<std::uint8_t> codes = codes_of(weight.levels, kBits);
  std::vector<std::uint16_t> words(codes.size() / kAwqFastRows);
  for (std::uint64_t i = 0; i < codes.size(); ++i) {
    const std::uint64_t row = i / weight.columns;
    const NibblePlace place = awq_fast_place(row, i % weight.columns);
    std::uint16_t& word = words[row / kAwqFastRows * weight.columns + place.word];
    word = static_cast<std::uint16_t>(word | codes[i] << place.shift);
  }
  return integer_tensor<std::uint16_t>(Dtype::kI16, {weight.rows / kAwqFastRows, weight.columns},
                                       words);
}

// Numbers [rows][groups] -> [padded][rows].
Result<StoredTensor> pack_padded_down(const LeveledWeight& weight, const WeightSpec& like,
                                      std::span<const double> numbers) {
  const std::uint64_t groups = groups_of(weight);
  const std::uint64_t padded = awq_padded_groups(groups, weight.group_size);
  std::vector<double> down(padded * weight.rows);
  for (std::uint64_t i = 0; i < numbers.size(); ++i) {
    down[i % groups * weight.rows + i / groups] = numbers[i];
  }
  return exact_tensor(like, scale_type_of(like), {padded, weight.rows}, down);
}

Result<WeightSpec> pack_gemv_fast(const LeveledWeight& weight, const WeightSpec& like) {
  if (weight.rows % kAwqFastRows != 0 || weight.columns % kAwqFastBlock != 0) {
    return cannot_hold(like, fmt::format("{} x {} weights, no multiples of {} and {}", weight.rows,
                                         weight.columns, kAwqFastRows, kAwqFastBlock));
  }
  WeightSpec spec = without_tensors(like);
  spec[Companion::kCodes] = pack_woven(weight);
  GRIDSCOPE_TRY(spec[Companion::kScale], pack_padded_down(weight, like, weight.scales));
  GRIDSCOPE_TRY(spec[Companion::kZeroPoint], pack_padded_down(weight, like, offsets_of(weight)));
  return spec;
}

Result<WeightSpec> pack_layout(const LeveledWeight& weight, const WeightSpec& like) {
  switch (like.scheme) {
    case Scheme::kAwqGemv:
      return pack_gemv(weight, like);
    case Scheme::kAwqGemvFast:
      return pack_gemv_fast(weight, like);
    default:
      return pack_gemm(weight, like);
  }
}

}  // namespace

Result<WeightSpec> pack_awq(const LeveledWeight& weight, const WeightSpec& like) {
  if (weight.bits != kBits) return cannot_hold(like, fmt::format("{} bits", weight.bits));
  if (!weight.group_of_column.empty()) return cannot_hold(like, "columns out of order");
  if (like.symmetric == true && has_zeros(weight)) {
    return cannot_hold(like, "zero points, but it is symmetric");
  }
  GRIDSCOPE_TRY(WeightSpec spec, pack_layout(weight, like));
  spec.bits = kBits;
  spec.group_size = static_cast<std::int64_t>(weight.group_size);
  return spec;
}

}  // namespace gridscope::quant
