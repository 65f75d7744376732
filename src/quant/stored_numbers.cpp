#include "stored_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "gridscope/core/dtype.hpp"
#include "gridscope/quant/codec.hpp"
#include "spec_checks.hpp"

namespace gridscope::quant {
namespace {

std::uint64_t element_bytes(Dtype dtype) {
  return dtype_info(dtype).block_bits / 8;
}

// Without a branch a number: an exponent of ones carries into the sign.
bool are_finite(std::span<const double> numbers) {
  constexpr std::uint64_t kExponent = 0x7ff0'0000'0000'0000;
  constexpr std::uint64_t kOne = 0x0010'0000'0000'0000;
  std::uint64_t all = 0;
  for (const double number : numbers) {
    all |= (std::bit_cast<std::uint64_t>(number) & kExponent) + kOne;
  }
  return all >> 63U == 0;
}

}  // namespace

Strips column_strips(const StoredTensor& tensor, RowRange columns, std::uint64_t rows) {
  const std::uint64_t bytes = element_bytes(tensor.dtype);
  return {.offset = columns.first * bytes,
          .length = columns.count * bytes,
          .stride = columns_of(tensor) * bytes,
          .count = rows};
}

TileNumbers numbers_of(const WeightSpec& spec, const Tile& tile, Companion companion) {
  return {
      .dtype = spec.find(companion)->dtype, .bytes = bytes_of(tile, companion), .rows = tile.rows};
}

void load_rows(const TileNumbers& numbers, std::uint64_t stored, RowRange rows,
               std::span<double> out) {
  const std::uint64_t row_bytes = stored * element_bytes(numbers.dtype);
  const auto bytes = numbers.bytes.subspan((rows.first - numbers.rows.first) * row_bytes);
  const std::uint64_t kept = out.size() / rows.count;
  if (kept == stored) return load_numbers(numbers.dtype, bytes, out);
  for (std::uint64_t row = 0; row < rows.count; ++row) {
    load_numbers(numbers.dtype, bytes.subspan(row * row_bytes), out.subspan(row * kept, kept));
  }
}

void load_columns(const TileNumbers& numbers, RowRange rows, std::span<double> out) {
  const std::uint64_t count = out.size() / rows.count;
  const std::uint64_t bytes = element_bytes(numbers.dtype);
  const std::uint64_t skipped = rows.first - numbers.rows.first;
  std::vector<double> stored(rows.count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t first = i * numbers.rows.count + skipped;
    load_numbers(numbers.dtype, numbers.bytes.subspan(first * bytes), stored);
    for (std::uint64_t row = 0; row < rows.count; ++row) out[row * count + i] = stored[row];
  }
}

Status check_finite(const WeightSpec& spec, Companion companion, RowRange rows,
                    std::span<const double> numbers) {
  if (are_finite(numbers)) return {};
  const auto odd =
      std::ranges::find_if(numbers, [](double number) { return !std::isfinite(number); });
  const auto index = static_cast<std::uint64_t>(odd - numbers.begin());
  const std::uint64_t stride = numbers.size() / rows.count;
  return corrupt(spec, fmt::format("its {} of row {}, group {} is {}", companion_name(companion),
                                   rows.first + index / stride, index % stride, *odd));
}

Result<std::vector<double>> whole_numbers(const WeightSpec& spec, Companion companion,
                                          std::initializer_list<Dtype> dtypes) {
  GRIDSCOPE_TRY(const StoredTensor* const tensor, require(spec, companion, dtypes));
  const std::uint64_t expected = elements_of(*tensor) * element_bytes(tensor->dtype);
  if (tensor->data.size() != expected) {
    return corrupt(spec,
                   fmt::format("its {} {} has {} bytes, expected {}", companion_name(companion),
                               shape_text(*tensor), tensor->data.size(), expected));
  }
  std::vector<double> numbers(elements_of(*tensor));
  load_numbers(tensor->dtype, tensor->data, numbers);
  return numbers;
}

Result<std::vector<double>> column_factors(const WeightSpec& spec, std::uint64_t columns) {
  if (spec.find(Companion::kPreQuantScale) == nullptr) return std::vector<double>{};
  GRIDSCOPE_TRY(std::vector<double> factors,
                whole_numbers(spec, Companion::kPreQuantScale, kScaleTypes));
  if (factors.size() != columns) {
    return corrupt(spec, fmt::format("its pre-quantization scale has {} numbers for {} columns",
                                     factors.size(), columns));
  }
  const auto odd =
      std::ranges::find_if(factors, [](double factor) { return !std::isfinite(factor); });
  if (odd != factors.end()) {
    return corrupt(spec, fmt::format("its pre-quantization scale of column {} is {}",
                                     odd - factors.begin(), *odd));
  }
  return factors;
}

}  // namespace gridscope::quant
