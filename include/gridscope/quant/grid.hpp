#pragma once

// Whether 16-bit weights lie on an integer grid: is there one real step s and are there integers
// q_i in range with v_i = round(q_i * s) for every weight of a group? Answered exactly, by
// intersecting for each level that the largest weight may have the sets of steps that would round
// to the stored numbers.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gridscope/core/dtype.hpp"

namespace gridscope::quant {

// Levels that a grid may use: [-8, 7] for four signed bits.
// Requires: -kMaxLevel <= lowest <= 0 < highest <= kMaxLevel.
struct LevelRange {
  int lowest = -8;
  int highest = 7;
};
inline constexpr int kMaxLevel = 31;

enum class GridClass : std::uint8_t {
  kOnGrid,
  kAmbiguous,  // on a grid, but another would do as well (all levels even: half of them, twice the
               // step), or with fewer than three distinct magnitudes: weak evidence
  kDead,       // all zero
  kOffGrid,
  kNonFinite,
};

struct GridFit {
  GridClass verdict = GridClass::kOffGrid;
  // Of kOnGrid and kAmbiguous: the feasible solution with the smallest step, which is the strictest
  // for counting moves. The step is positive unless a level of `lowest` forces the sign.
  double step = 0.0;      // a step within the feasible interval: its middle
  double step_low = 0.0;  // the interval of real steps, magnitudes, each end rounded to double
  double step_high = 0.0;
  bool low_is_feasible = false;  // whether the interval holds its ends
  bool high_is_feasible = false;
  int top_level = 0;           // of the first weight with the largest magnitude, with its sign
  std::uint32_t feasible = 0;  // bit K set: the largest magnitude may be level K (|K|)

  [[nodiscard]] bool has_step() const {
    return verdict == GridClass::kOnGrid || verdict == GridClass::kAmbiguous;
  }
  friend bool operator==(const GridFit&, const GridFit&) = default;
};

// `values` are numbers of `dtype` (BF16, F16 or F32); `levels` gets the level of each when the
// group is on a grid or ambiguous, and may be empty. Levels are found by rounding v / step, so
// groups whose weights are so near to zero that their type keeps too few bits of them (below 2^-14
// for F16) can be called off grid. Requires: levels.empty() or levels.size() == values.size().
[[nodiscard]] GridFit fit_grid(std::span<const float> values, Dtype dtype, LevelRange range,
                               std::span<std::int16_t> levels);

// The fits of neighbouring groups of `group_size` BF16 numbers each, the same ones that fit_grid()
// gives, only faster. Requires: bf16.size() == fits.size() * group_size * 2; group_size > 0.
void fit_grids(std::span<const std::byte> bf16, std::uint64_t group_size, LevelRange range,
               std::span<GridFit> fits);
// Of some of the groups, with levels in [-8, 7]. Requires: fits.size() == groups.size(); the groups
// lie within bf16.
void fit_grids_of(std::span<const std::byte> bf16, std::uint64_t group_size,
                  std::span<const std::uint32_t> groups, std::span<GridFit> fits);

// Whether rounding the levels times a step of that magnitude gives the group's weights: whether it
// lies in the feasible interval. Requires: fit.has_step().
[[nodiscard]] bool allows_step(const GridFit& fit, double magnitude);

// How many numbers of type `dtype` (BF16, F16 or F32) lie in the feasible interval of a fit: 1 for
// a grid with steps of that type, mostly. Counts up to `limit`. Requires: fit.has_step().
[[nodiscard]] std::uint32_t step_candidates(const GridFit& fit, Dtype dtype, std::uint32_t limit);

// The group sizes that are tried along a row of `columns` weights, largest first: the whole row,
// then 512, 256, 128, 64, 32, 16 where they divide it.
[[nodiscard]] std::vector<std::uint64_t> usual_group_sizes(std::uint64_t columns);

// The rule by which published 4-bit repacks of such weights were made, in float: for m = 1..8 the
// step max|v| / m, the levels round(v / step) clipped to [-8, 7]; the first m whose worst error is
// at most max|v| / 128 is taken, and the step refined by least squares. Weaker than fit_grid() both
// ways: it takes weights that no step explains, and knows no negative step.
struct RepackFit {
  int m = 0;             // 0: no m within the tolerance, or not finite
  double step = 0.0;     // max|v| / m, as a float
  double refined = 0.0;  // sum(q v) / sum(q^2)
};
// `levels` gets the levels of m, when there is one, and may be empty.
// Requires: levels.empty() or levels.size() == values.size().
[[nodiscard]] RepackFit fit_repack_rule(std::span<const float> values,
                                        std::span<std::int16_t> levels);

}  // namespace gridscope::quant
