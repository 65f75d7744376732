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

// A row of parts with symmetric levels, of which no sum has more bits than a double.
struct KeptRow {
  const std::uint8_t* codes;
  const std::uint8_t* source;
  const float* scales;          // of each part
  std::size_t parts_per_group;  // 1, 2 or 4
  std::uint32_t least_field;    // the least exponent of the scales, as its field of a float
  std::uint32_t powers;         // by which the largest is above it, at most kMostPowers
  double worst_error;           // so far; negative: none yet
};

// Of the weights of parts with kept levels.
struct KeptTotals {
  std::uint64_t identical = 0;  // to the source's
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::uint64_t groups_identical = 0;
  std::uint64_t dead_groups = 0;  // on both sides
  bool is_worse = false;          // an error is larger than the worst so far
  double abs_error = 0.0;
  double squared_error = 0.0;
  double squared_source = 0.0;
  double product = 0.0;
};

struct KeptSums {
  std::span<BlockCounts> counts;  // of kKeptParts parts each, but for what is counted here:
  KeptTotals& totals;
  std::span<std::int16_t> largest;  // error of each part in units, where it may be the worst
  std::uint8_t* notes;              // of each part, as KeptLevels has them of groups; or null
};

// Whether this CPU, or the one that is forced, can do it.
[[nodiscard]] bool can_look_for_kept();

// Adds up what is to be known of parts with kept levels: those of counts[i] that are `kept`. The
// others, of which one part at least did not or may not have kept them, are left to the general
// way. Returns how many that are. Requires: can_look_for_kept().
[[nodiscard]] std::size_t look_for_kept(const KeptRow& row, const KeptSums& out);

}  // namespace gridscope::quant
