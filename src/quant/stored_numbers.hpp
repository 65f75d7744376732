#pragma once

// The numbers beside the codes (scales, offsets, factors): which bytes of them a tile needs, and
// how they come into the order that decoding wants, row by row, whether they are stored along the
// rows of the weight or down them.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "gridscope/core/result.hpp"
#include "gridscope/quant/weight_decoder.hpp"

namespace gridscope::quant {

// What scales of integer codes may be.
inline constexpr std::initializer_list<Dtype> kScaleTypes = {Dtype::kF16, Dtype::kBF16,
                                                             Dtype::kF32};

[[nodiscard]] inline std::span<const std::byte> bytes_of(const Tile& tile, Companion companion) {
  return tile.bytes[static_cast<std::size_t>(companion)];
}
[[nodiscard]] inline std::optional<Strips>& strips_of(TileNeeds& needs, Companion companion) {
  return needs[static_cast<std::size_t>(companion)];
}

// `columns` of each of the first `rows` rows of a tensor of two dimensions.
// Requires: elements of whole bytes.
[[nodiscard]] Strips column_strips(const StoredTensor& tensor, RowRange columns,
                                   std::uint64_t rows);

// The bytes of one companion and the rows of the weight that they belong to.
struct TileNumbers {
  Dtype dtype = Dtype::kF32;
  std::span<const std::byte> bytes;
  RowRange rows;
};
[[nodiscard]] TileNumbers numbers_of(const WeightSpec& spec, const Tile& tile, Companion companion);

// Stored with `stored` numbers for each row of the weight; the first of them, as many as `out` has
// room for in each of `rows`. Requires: rows within numbers.rows, is_number(dtype).
void load_rows(const TileNumbers& numbers, std::uint64_t stored, RowRange rows,
               std::span<double> out);
// Stored with a column for each row of the weight: `out` gets the columns of `rows` one after the
// other. Requires: as above.
void load_columns(const TileNumbers& numbers, RowRange rows, std::span<double> out);

// kCorrupt with the place of the first number that is none; `numbers` are as many for each row.
[[nodiscard]] Status check_finite(const WeightSpec& spec, Companion companion, RowRange rows,
                                  std::span<const double> numbers);

// The numbers of a companion that is read whole, of one of these types.
[[nodiscard]] Result<std::vector<double>> whole_numbers(const WeightSpec& spec, Companion companion,
                                                        std::initializer_list<Dtype> dtypes);

// The factors of a pre-quantization scale, one for each column; empty when there is none.
[[nodiscard]] Result<std::vector<double>> column_factors(const WeightSpec& spec,
                                                         std::uint64_t columns);

}  // namespace gridscope::quant
