#pragma once

// What the fused kernels get, held against what decode() says.

#include <cstdint>

#include "quant/tiles.hpp"

namespace gridscope::quant {

inline double value_of(const Int4Rows& int4, std::uint64_t row, std::uint64_t column) {
  const auto byte = std::to_integer<unsigned>(int4.codes[row * int4.row_bytes + column / 2]);
  const int level = static_cast<int>(byte >> (column % 2 * 4) & 0xfU) - 8;
  const std::uint64_t term = row * int4.groups + column / int4.group_size;
  const int zero = int4.zeros.empty() ? 0 : int4.zeros[term];
  return (level - zero) * static_cast<double>(int4.scales[term]);
}

// Whether kernels take the weight; all ranges of rows are tried.
inline bool offers_int4(const WeightSpec& spec) {
  const auto decoder = decoder_of(spec);
  if (decoder == nullptr) return false;
  const OwnedTile owned = cut_tile(*decoder, spec, {.first = 0, .count = 1});
  Int4Rows int4;
  const auto offered = decoder->decode_int4(owned.tile, {.first = 0, .count = 1}, int4);
  return offered && *offered;
}

inline void expect_same_rows(const WeightDecoder& decoder, const Tile& tile, RowRange rows) {
  Int4Rows int4;
  RowBlock block;
  ASSERT_THAT(decoder.decode(tile, rows, block), test::IsOk());
  const auto offered = decoder.decode_int4(tile, rows, int4);
  ASSERT_THAT(offered, test::IsOk());
  ASSERT_TRUE(*offered);
  ASSERT_EQ(int4.first_row, rows.first);
  ASSERT_EQ(int4.rows, rows.count);
  ASSERT_EQ(int4.groups * int4.group_size, block.columns);
  ASSERT_EQ(int4.scales.size(), block.scales.size());
  for (std::uint64_t row = 0; row < rows.count; ++row) {
    for (std::uint64_t k = 0; k < block.columns; ++k) {
      ASSERT_EQ(value_of(int4, row, k), block.row_values(row)[k]) << row << ' ' << k;
    }
  }
}

inline void expect_int4_agrees(const WeightSpec& spec) {
  const auto decoder = decoder_of(spec);
  ASSERT_NE(decoder, nullptr);
  const std::uint64_t rows = decoder->layout().rows;
  for (std::uint64_t first = 0; first < rows; ++first) {
    for (std::uint64_t end = first + 1; end <= rows; ++end) {
      const OwnedTile owned = cut_tile(*decoder, spec, {.first = first, .count = end - first});
      const std::uint64_t skipped = (end - first) / 3;
      expect_same_rows(*decoder, owned.tile,
                       {.first = first + skipped, .count = end - first - skipped});
    }
  }
}

}  // namespace gridscope::quant
