#include "gridscope/quant/level_moves.hpp"

#include <numeric>
#include <vector>

#include "gridscope/quant/codec.hpp"
#include "nearest_level.hpp"

namespace gridscope::quant {

std::uint64_t LevelMoves::weights() const {
  return std::accumulate(counts.begin(), counts.end(), beyond);
}

void LevelMoves::add(const LevelMoves& other) {
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  beyond += other.beyond;
  ties += other.ties;
}

LevelMoves count_level_moves(const RowBlock& build, const SourceRows& source,
                             const SourceGrid& grid) {
  LevelMoves moves;
  std::vector<double> weights(grid.group_size);
  const std::size_t group_bytes = grid.group_size * dtype_info(source.dtype).block_bits / 8;
  for (std::size_t g = 0; g < grid.fits.size(); ++g) {
    const GridFit& fit = grid.fits[g];
    if (fit.verdict != GridClass::kOnGrid) continue;
    load_numbers(source.dtype, source.bytes.subspan(g * group_bytes, group_bytes), weights);
    const auto values = std::span(build.values).subspan(g * grid.group_size, grid.group_size);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const int level = static_cast<int>(std::lround(weights[i] / fit.step));
      count_move(level, nearest_level(values[i] / fit.step), moves);
    }
  }
  return moves;
}

}  // namespace gridscope::quant
