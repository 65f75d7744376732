#pragma once

// Values on somebody else's lattice.

#include <cmath>
#include <cstdint>

#include "gridscope/quant/level_moves.hpp"

namespace gridscope::quant {

// The level nearest to a value. Halfway, `level` is the lower one of the two.
struct NearestLevel {
  static constexpr std::int32_t kFar = 100;  // this far from zero or farther, or not finite
  // The middle of an interval of steps is rounded, and so is a value divided by it: what really is
  // halfway comes out as near to it as this. Other values and steps of so few bits stay farther
  // off.
  static constexpr double kHalfway = 0x1p-43;

  std::int32_t level = 0;
  bool is_tie = false;
};

// `position`: value / step.
[[nodiscard]] inline NearestLevel nearest_level(double position) {
  if (!(std::fabs(position) < NearestLevel::kFar)) return {.level = NearestLevel::kFar};
  const double below = std::floor(position);
  const double beyond_half = position - below - 0.5;
  const auto level = static_cast<std::int32_t>(below);
  return {.level = beyond_half > NearestLevel::kHalfway ? level + 1 : level,
          .is_tie = std::fabs(beyond_half) <= NearestLevel::kHalfway};
}

// Counts a weight that had level `from`. Requires: |from| <= kMaxLevel.
inline void count_move(int from, const NearestLevel& to, LevelMoves& moves) {
  const int move = to.level - from + (to.is_tie && from > to.level ? 1 : 0);
  if (to.is_tie) ++moves.ties;
  if (std::abs(move) > LevelMoves::kFarthest) {
    ++moves.beyond;
  } else {
    ++moves.counts[static_cast<std::size_t>(move + LevelMoves::kFarthest)];
  }
}

}  // namespace gridscope::quant
