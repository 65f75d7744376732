#pragma once

// Groups that are settled by a look or by notes, next to the full search and the plain count of
// moves.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ostream>
#include <vector>

#include "gridscope/quant/grid.hpp"
#include "gridscope/quant/level_moves.hpp"
#include "gridscope/quant/settled_grids.hpp"
#include "quant/int4_pair.hpp"

namespace gridscope::quant {

inline void PrintTo(const SettledGroups& groups, std::ostream* out) {
  *out << fmt::format("top levels {}, {} scales smaller, {} larger, open {}",
                      fmt::join(groups.top_levels, " "), groups.smaller_scales,
                      groups.larger_scales, fmt::join(groups.open, " "));
}

}  // namespace gridscope::quant

namespace gridscope::test {

// What a note of a group with that fit has to say. Requires: fit.has_step().
inline std::uint8_t note_of(const quant::GridFit& fit, float build_scale) {
  using Scale = quant::KeptLevels::Scale;
  const auto top = static_cast<unsigned>(std::abs(fit.top_level));
  const double scale = std::fabs(static_cast<double>(build_scale));
  if (allows_step(fit, scale)) return quant::KeptLevels::settled(top, Scale::kFeasible);
  return quant::KeptLevels::settled(top,
                                    scale < std::fabs(fit.step) ? Scale::kSmaller : Scale::kLarger);
}

inline void add_settled(std::uint8_t note, quant::SettledGroups& groups) {
  using quant::KeptLevels;
  const unsigned scale = note & ~unsigned{KeptLevels::kLevelBits};
  ++groups.top_levels.at(note & KeptLevels::kLevelBits);
  if (scale == KeptLevels::settled(0, KeptLevels::Scale::kSmaller)) ++groups.smaller_scales;
  if (scale == KeptLevels::settled(0, KeptLevels::Scale::kLarger)) ++groups.larger_scales;
}

inline quant::SettledGroups settle(const Int4Pair& pair, const quant::KeptLevels& kept) {
  const auto bytes = pair.source_bytes();
  quant::SettledGroups settled;
  settle_grids(pair.int4_rows(3), {.dtype = Dtype::kBF16, .bytes = bytes}, kept, settled);
  return settled;
}

inline std::vector<quant::GridFit> search(const Int4Pair& pair) {
  std::vector<quant::GridFit> fits(pair.rows * pair.groups);
  fit_grids(pair.source_bytes(), pair.group_size, {}, fits);
  return fits;
}

// What may be noted of each group: as the search says where a look settles it, kOpen elsewhere.
inline quant::KeptLevels searched_notes(const Int4Pair& pair) {
  const auto fits = search(pair);
  quant::KeptLevels notes;
  for (std::size_t g = 0; g < fits.size(); ++g) {
    notes.groups.push_back(fits[g].has_step() ? note_of(fits[g], pair.scales[g])
                                              : quant::KeptLevels::kOpen);
  }
  for (const std::uint32_t g : settle(pair, {}).open) notes.groups[g] = quant::KeptLevels::kOpen;
  return notes;
}

// What is settled is as the search says; returns how many groups are.
inline std::size_t expect_as_searched(const Int4Pair& pair, const quant::KeptLevels& kept = {}) {
  const auto bytes = pair.source_bytes();
  const quant::SourceRows source{.dtype = Dtype::kBF16, .bytes = bytes};
  const auto settled = settle(pair, kept);
  EXPECT_EQ(settled.count() + settled.open.size(), pair.rows * pair.groups);

  const auto fits = search(pair);
  std::vector<quant::GridFit> open(settled.open.size());
  fit_grids_of(bytes, pair.group_size, settled.open, open);
  quant::SettledGroups expected{.open = settled.open};
  auto next = settled.open.begin();
  for (std::size_t g = 0; g < fits.size(); ++g) {
    if (next != settled.open.end() && *next == g) {
      EXPECT_EQ(open[static_cast<std::size_t>(next++ - settled.open.begin())], fits[g]) << g;
      continue;
    }
    EXPECT_EQ(fits[g].verdict, quant::GridClass::kOnGrid) << g;
    add_settled(note_of(fits[g], pair.scales[g]), expected);
  }
  EXPECT_EQ(settled, expected);

  const auto all =
      count_level_moves(pair.row_block(), source, {.group_size = pair.group_size, .fits = fits});
  auto some = count_level_moves(pair.int4_rows(3), source,
                                {.group_size = pair.group_size, .fits = open}, settled.open);
  some.counts[quant::LevelMoves::kFarthest] += settled.count() * pair.group_size;
  EXPECT_EQ(some, all);
  return settled.count();
}

}  // namespace gridscope::test
