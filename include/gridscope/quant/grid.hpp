#pragma once

// Whether 16-bit weights lie on an integer grid: is there one real step s and are there integers
// q_i in range with v_i = round(q_i * s) for every weight of a group? Answered exactly, by
// intersecting for each level that the largest weight may have the sets of steps that would round
// to the stored numbers.

#include <cstdint>
#include <span>

#include "gridscope/core/dtype.hpp"

namespace gridscope::quant {

// Levels that a grid may use: [-8, 7] for four signed bits.
struct LevelRange {
  int lowest = -8;
  int highest = 7;
};

enum class GridClass : std::uint8_t {
  kOnGrid,
  kAmbiguous,  // on a grid, but on several that are no multiples of one another would do as well,
               // or with fewer than three distinct magnitudes: weak evidence
  kDead,       // all zero
  kOffGrid,
  kNonFinite,
};

struct GridFit {
  GridClass verdict = GridClass::kOffGrid;
  // Of kOnGrid and kAmbiguous: the feasible solution with the smallest step, which is the strictest
  // for counting moves. The step is positive unless a level of `lowest` forces the sign.
  double step = 0.0;      // a step within the feasible interval: its middle
  double step_low = 0.0;  // the interval of real steps, magnitudes
  double step_high = 0.0;
  int top_level = 0;           // of the weight with the largest magnitude, with its sign
  std::uint32_t feasible = 0;  // bit K set: the largest magnitude may be level K (|K|)
};

// `values` are numbers of `dtype` (BF16, F16 or F32), at most 2^20 of them; `levels` gets the level
// of each when the group is on a grid or ambiguous, and may be empty.
// Requires: levels.empty() or levels.size() == values.size().
[[nodiscard]] GridFit fit_grid(std::span<const float> values, Dtype dtype, LevelRange range,
                               std::span<std::int16_t> levels);

// How many numbers of type `dtype` lie in the feasible interval of a fit: 1 for a grid with steps
// of that type, mostly. Counts up to `limit`.
[[nodiscard]] std::uint32_t step_candidates(const GridFit& fit, Dtype dtype, std::uint32_t limit);

// The group sizes that are tried along a row of `columns` weights, largest first: the whole row,
// then 512, 256, 128, 64, 32, 16 where they divide it.
[[nodiscard]] std::span<const std::uint64_t> usual_group_sizes();

// The rule by which published 4-bit repacks of such weights were made: for m = 1..8 the step
// max|v| / m, the levels round(v / step) clipped to [-8, 7]; the first m whose worst error is at
// most max|v| / 128 is taken, and the step refined by least squares. Faster and weaker than
// fit_grid().
struct RepackFit {
  int m = 0;             // 0: no m within the tolerance
  double step = 0.0;     // max|v| / m, as a float
  double refined = 0.0;  // sum(q v) / sum(q^2)
};
[[nodiscard]] RepackFit fit_repack_rule(std::span<const float> values,
                                        std::span<std::int16_t> levels);

}  // namespace gridscope::quant
