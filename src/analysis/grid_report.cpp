#include "gridscope/analysis/grid_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace gridscope::analysis {
namespace {

constexpr std::array<std::string_view, 6> kVerdicts = {
    "exact", "same_grid", "levels_moved", "smoothed", "different_model", "corrupt"};
static_assert(kVerdicts.size() == static_cast<std::size_t>(Verdict::kCorrupt) + 1);

template <typename Map>
void add_counts(Map& into, const Map& more) {
  for (const auto& [key, count] : more) into[key] += count;
}

// Weights that entered the sums.
double summed(const quant::ErrorSums& sums) {
  const std::uint64_t left_out = std::max(sums.build_non_finite, sums.source_non_finite);
  return static_cast<double>(sums.weights - std::min(sums.weights, left_out));
}

double ratio(double part, double whole) {
  return whole > 0.0 ? part / whole : 0.0;
}

}  // namespace

std::string_view verdict_key(Verdict verdict) {
  return kVerdicts.at(static_cast<std::size_t>(verdict));
}

std::optional<Verdict> parse_verdict(std::string_view key) {
  const auto* const found = std::ranges::find(kVerdicts, key);
  if (found == kVerdicts.end()) return std::nullopt;
  return static_cast<Verdict>(found - kVerdicts.begin());
}

std::uint64_t SourceGrid::group_size() const {
  const auto most =
      std::ranges::max_element(group_sizes, {}, [](const auto& entry) { return entry.second; });
  return most == group_sizes.end() ? 0 : most->first;
}

void SourceGrid::add(const SourceGrid& other) {
  groups += other.groups;
  on_grid += other.on_grid;
  ambiguous += other.ambiguous;
  dead += other.dead;
  off_grid += other.off_grid;
  non_finite += other.non_finite;
  add_counts(group_sizes, other.group_sizes);
  add_counts(top_levels, other.top_levels);
  rule_groups += other.rule_groups;
  rule_accepts += other.rule_accepts;
  rule_accepts_alone += other.rule_accepts_alone;
  rule_misses += other.rule_misses;
}

double GridTotals::moved_share() const {
  return ratio(static_cast<double>(sums.moved), static_cast<double>(sums.weights));
}

double GridTotals::mean_abs_error() const {
  return ratio(sums.abs_error, summed(sums));
}

double GridTotals::rmse() const {
  return std::sqrt(ratio(sums.squared_error, summed(sums)));
}

double GridTotals::relative_rmse() const {
  return std::sqrt(ratio(sums.squared_error, sums.squared_source));
}

std::optional<double> GridTotals::sqnr_db() const {
  if (sums.squared_error == 0.0) return std::nullopt;
  return 10.0 * std::log10(sums.squared_source / sums.squared_error);
}

std::optional<double> GridTotals::cosine() const {
  const double norm = std::sqrt(sums.squared_source) * std::sqrt(sums.squared_build);
  if (norm == 0.0) return std::nullopt;
  return sums.product / norm;
}

void GridTotals::add(const GridTotals& later) {
  sums.add(later.sums);
  add_counts(level_moves, later.level_moves);
  level_moves_beyond += later.level_moves_beyond;
  level_ties += later.level_ties;
  lattice_weights += later.lattice_weights;
  scale_ratio.add(later.scale_ratio);
}

}  // namespace gridscope::analysis
