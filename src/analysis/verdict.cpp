#include "gridscope/analysis/verdict.hpp"

#include <algorithm>
#include <cmath>

namespace gridscope::analysis {
namespace {

bool is_corrupt(const GridTensor& tensor) {
  const quant::ErrorSums& sums = tensor.totals.sums;
  return !tensor.fault.empty() || sums.build_non_finite > sums.source_non_finite ||
         sums.dead_groups > sums.dead_in_both;
}

bool is_unrelated(const GridTotals& totals) {
  const auto sqnr = totals.sqnr_db();
  return sqnr && *sqnr < kDifferentModelSqnrDb;
}

}  // namespace

const GridTotals& best_totals(const GridTensor& tensor) {
  const bool excused = tensor.smoothing && tensor.smoothing->is_excused();
  return excused ? tensor.smoothing->totals_after : tensor.totals;
}

Verdict verdict_of(const GridTensor& tensor) {
  if (is_corrupt(tensor)) return Verdict::kCorrupt;
  if (is_unrelated(best_totals(tensor))) return Verdict::kDifferentModel;
  if (tensor.smoothing && tensor.smoothing->is_excused()) return Verdict::kSmoothed;
  const quant::ErrorSums& sums = tensor.totals.sums;
  const bool off_lattice =
      !tensor.totals.level_moves.empty() || tensor.totals.level_moves_beyond > 0;
  if (sums.moved > 0 || off_lattice) return Verdict::kLevelsMoved;
  return sums.values_identical < sums.weights ? Verdict::kSameGrid : Verdict::kExact;
}

int common_shift(const GridTensor& tensor) {
  const GridTotals& totals = best_totals(tensor);
  if (totals.lattice_weights == 0) return 0;
  double sum = 0.0;
  for (const auto& [move, count] : totals.level_moves) sum += move * static_cast<double>(count);
  return static_cast<int>(std::round(sum / static_cast<double>(totals.lattice_weights)));
}

Verdict worst_verdict(std::span<const GridTensor> tensors) {
  Verdict worst = Verdict::kExact;
  for (const GridTensor& tensor : tensors) worst = std::max(worst, tensor.verdict);
  return worst;
}

bool meets(Verdict verdict, Verdict required) {
  return verdict <= required;
}

}  // namespace gridscope::analysis
