#pragma once

// In what pieces a pair of weights is read and compared. Sums are added up block by block and tile
// by tile, so the pieces depend on nothing but the pair itself: never on threads, shards or memory.

#include <cstdint>
#include <vector>

#include "gridscope/model/weight_matching.hpp"
#include "gridscope/model/weights.hpp"
#include "gridscope/quant/row_block.hpp"

namespace gridscope::analysis {

struct TilePlan {
  std::uint64_t rows = 0;
  std::uint64_t tile_rows = 0;   // in memory at once, at the most
  std::uint64_t block_rows = 0;  // decoded at once; divides tile_rows, or the tile is all there is
  std::uint64_t bytes_per_row = 0;  // of both sides, rounded up

  [[nodiscard]] std::uint64_t tiles() const;
  [[nodiscard]] quant::RowRange tile(std::uint64_t index) const;
  // Rows from all over the weight, together as many as a block has, for a look at what it is like.
  [[nodiscard]] std::vector<quant::RowRange> samples() const;
  // Whether the block is looked at closer: the first one, and few after it.
  [[nodiscard]] bool is_sample(quant::RowRange block) const;
  [[nodiscard]] std::uint64_t tile_bytes() const { return tile_rows * bytes_per_row; }
};

// Neighbouring parts of `rows` with `count` rows each, fewer in the last one.
[[nodiscard]] std::vector<quant::RowRange> cut(quant::RowRange rows, std::uint64_t count);

// Requires: at least one row and column.
[[nodiscard]] TilePlan plan_tiles(const model::Weight& source, const model::Weight& build,
                                  const model::WeightPair& pair);

// Bytes of a weight's companions that are read by tile, for each of its rows of `columns` weights,
// rounded up.
[[nodiscard]] std::uint64_t bytes_per_row(const model::Weight& weight, std::uint64_t columns);

}  // namespace gridscope::analysis
