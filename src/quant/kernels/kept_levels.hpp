#pragma once

// A quicker comparison of 4-bit builds that kept the levels of their source, for CPUs that have
// what it takes.

#include <cstddef>
#include <cstdint>
#include <span>

#include "quant/kernels/part_sums.hpp"

namespace gridscope::quant {

// Parts that this looks at together.
inline constexpr std::size_t kKeptParts = 4;

// A row of parts with symmetric levels.
struct KeptRow {
  const std::uint8_t* codes;
  const std::uint8_t* source;
  const float* scales;  // of each part
  double worst_error;   // so far; negative: none yet
};

// Weights of parts with kept levels.
struct KeptCounts {
  std::uint64_t beside = 0;  // not equal to the source's
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

struct KeptSums {
  PartSums& sums;
  std::span<BlockCounts> counts;  // of kKeptParts parts each, but for what is counted here:
  KeptCounts& totals;
  std::uint8_t* kept;  // of each part, as KeptLevels has them of groups; or null
};

// Whether this CPU, or the one that is forced, can do it.
[[nodiscard]] bool can_look_for_kept();

// Finds the sums and adds up the counts of parts with kept levels: those of counts[i] that `fits`.
// The others, of which one part at least did not or may not have kept them, are left to the general
// way. Returns how many that are. Requires: can_look_for_kept().
[[nodiscard]] std::size_t look_for_kept(const KeptRow& row, const KeptSums& out);

}  // namespace gridscope::quant
