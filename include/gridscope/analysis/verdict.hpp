#pragma once

// What the figures of a comparison amount to.

#include <span>

#include "gridscope/analysis/grid_report.hpp"

namespace gridscope::analysis {

// Of one pair of weights, from its totals, its smoothing and its fault. Of the rules the first that
// holds: a fault, a value that is no number, or a group that is dead where the source lives:
// corrupt; SQNR (with smoothing undone) under kDifferentModelSqnrDb: different_model; smoothing
// that no norm contradicts: smoothed; a weight moved by half a step or off the source's lattice
// point: levels_moved; any value not the source's: same_grid; else exact.
[[nodiscard]] Verdict verdict_of(const GridTensor& tensor);

// Those by which a weight is judged: with smoothing undone that no norm contradicts.
[[nodiscard]] const GridTotals& best_totals(const GridTensor& tensor);

// The number of levels by which the weights stand off their source's lattice on average, rounded:
// 0 but for zero points that are stored, or read, one off, since rounding goes both ways.
[[nodiscard]] int common_shift(const GridTensor& tensor);

// The worst of them; exact when there are none.
[[nodiscard]] Verdict worst_verdict(std::span<const GridTensor> tensors);

// Whether a verdict meets what was asked for: exact meets same_grid too.
[[nodiscard]] bool meets(Verdict verdict, Verdict required);

}  // namespace gridscope::analysis
