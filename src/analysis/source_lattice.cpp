#include "gridscope/analysis/source_lattice.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <span>

#include "gridscope/quant/codec.hpp"
#include "gridscope/quant/level_moves.hpp"

namespace gridscope::analysis {
namespace {

using quant::GridClass;
using quant::GridFit;

// Of the groups that say anything; some hold no whole grid where training clipped a weight.
constexpr double kNearlyAll = 0.95;
constexpr std::size_t kGridClasses = static_cast<std::size_t>(GridClass::kNonFinite) + 1;

std::vector<float> numbers(const quant::SourceRows& source) {
  const std::size_t width = dtype_info(source.dtype).block_bits / 8;
  std::vector<double> values(source.bytes.size() / width);
  quant::load_numbers(source.dtype, source.bytes, values);
  return {values.begin(), values.end()};
}

bool is_dead(const SourceLattice& lattice) {
  return std::ranges::all_of(lattice.fits,
                             [](const GridFit& fit) { return fit.verdict == GridClass::kDead; });
}

bool nearly_all_on_grid(const SourceLattice& lattice) {
  std::uint64_t on = 0;
  std::uint64_t live = 0;
  for (const GridFit& fit : lattice.fits) {
    if (fit.verdict == GridClass::kDead) continue;
    ++live;
    if (fit.has_step()) ++on;
  }
  return static_cast<double>(on) >= kNearlyAll * static_cast<double>(live);
}

void count_ratio(const GridFit& fit, double build_step, ScaleRatios& ratios) {
  const double step = std::abs(build_step);
  const bool inside = step > fit.step_low && step < fit.step_high;
  if (inside || quant::allows_step(fit, step)) {
    ratios.add_allowed();
  } else {
    ratios.add(step / std::abs(fit.step));
  }
}

// Those that are no feasible steps are at most 4 % less or more than one.
void count_ratios(const quant::SettledGroups& groups, ScaleRatios& ratios) {
  ratios.add_allowed(groups.count() - groups.smaller_scales - groups.larger_scales);
  ratios.add(0.96, groups.smaller_scales);
  ratios.add(1.04, groups.larger_scales);
}

void add_level_moves(const quant::LevelMoves& moves, GridTotals& totals) {
  totals.lattice_weights += moves.weights();
  totals.level_ties += moves.ties;
  totals.level_moves_beyond += moves.beyond;
  for (int move = -quant::LevelMoves::kFarthest; move <= quant::LevelMoves::kFarthest; ++move) {
    if (move != 0 && moves.of(move) > 0) totals.level_moves[move] += moves.of(move);
  }
}

quant::SourceGrid grid_of(const SourceLattice& lattice) {
  return {.group_size = lattice.group_size, .fits = lattice.fits};
}

}  // namespace

GroupSizeVote::GroupSizeVote(std::uint64_t columns)
    : columns_(columns), sizes_(quant::usual_group_sizes(columns)), votes_(sizes_.size()) {}

void GroupSizeVote::add(const quant::SourceRows& sample) {
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    const SourceLattice lattice = fit_lattice(sample, columns_, sizes_[i]);
    if (is_dead(lattice)) return;
    if (i == 0) ++samples_;
    if (nearly_all_on_grid(lattice)) ++votes_[i];
  }
}

std::uint64_t GroupSizeVote::winner() const {
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    if (2 * votes_[i] > samples_) return sizes_[i];
  }
  return 0;
}

const GridFit* SourceLattice::find(std::uint64_t group) const {
  if (!settled) return &fits[group];
  const auto found = std::ranges::lower_bound(settled->open, group);
  if (found == settled->open.end() || *found != group) return nullptr;
  return &fits[static_cast<std::size_t>(found - settled->open.begin())];
}

SourceLattice fit_lattice(const quant::SourceRows& source, std::uint64_t columns,
                          std::uint64_t group_size) {
  SourceLattice lattice{.columns = columns, .group_size = group_size};
  fit_lattice(source, lattice);
  return lattice;
}

void fit_lattice(const quant::SourceRows& source, SourceLattice& lattice) {
  const std::size_t width = dtype_info(source.dtype).block_bits / 8;
  const std::size_t groups = source.bytes.size() / width / lattice.group_size;
  if (lattice.settled && lattice.settled->open.size() < groups) {
    const auto& open = lattice.settled->open;
    lattice.fits.resize(open.size());
    quant::fit_grids_of(source.bytes, lattice.group_size, open, lattice.fits);
    return;
  }
  lattice.fits.resize(groups);
  if (source.dtype == Dtype::kBF16) {
    quant::fit_grids(source.bytes, lattice.group_size, {}, lattice.fits);
    return;
  }
  const std::vector<float> values = numbers(source);
  for (std::size_t g = 0; g < lattice.fits.size(); ++g) {
    const auto group = std::span(values).subspan(g * lattice.group_size, lattice.group_size);
    lattice.fits[g] = quant::fit_grid(group, source.dtype, {}, {});
  }
}

void count_classes(const SourceLattice& lattice, GroupSizeFrom from, SourceGrid& grid) {
  std::array<std::uint64_t, kGridClasses> classes = {};
  std::array<std::uint64_t, quant::kMaxLevel + 1> tops = {};
  for (const GridFit& fit : lattice.fits) {
    ++classes.at(static_cast<std::size_t>(fit.verdict));
    if (fit.verdict == GridClass::kOnGrid)
      ++tops.at(static_cast<std::size_t>(std::abs(fit.top_level)));
  }
  std::uint64_t groups = lattice.fits.size();
  if (lattice.settled) {
    const auto& levels = lattice.settled->top_levels;
    std::ranges::transform(levels, tops, tops.begin(), std::plus());
    classes.at(static_cast<std::size_t>(GridClass::kOnGrid)) += lattice.settled->count();
    groups += lattice.settled->count();
  }
  const auto count = [&](GridClass verdict) {
    return classes.at(static_cast<std::size_t>(verdict));
  };
  grid.groups += groups;
  grid.on_grid += count(GridClass::kOnGrid);
  grid.ambiguous += count(GridClass::kAmbiguous);
  grid.dead += count(GridClass::kDead);
  grid.off_grid += count(GridClass::kOffGrid);
  grid.non_finite += count(GridClass::kNonFinite);
  for (std::size_t level = 0; level < tops.size(); ++level) {
    if (tops.at(level) > 0) grid.top_levels[static_cast<int>(level)] += tops.at(level);
  }
  if (from == GroupSizeFrom::kSource) {
    grid.group_sizes[lattice.group_size] += groups * lattice.group_size;
  }
}

void count_rule(const SourceLattice& lattice, const quant::SourceRows& source, SourceGrid& grid) {
  const std::size_t row_bytes = lattice.columns * dtype_info(source.dtype).block_bits / 8;
  const std::vector<float> values = numbers({source.dtype, source.bytes.first(row_bytes)});
  for (std::size_t g = 0; g < lattice.groups_per_row(); ++g) {
    const auto group = std::span(values).subspan(g * lattice.group_size, lattice.group_size);
    const bool accepts = quant::fit_repack_rule(group, {}).m != 0;
    const GridFit* fit = lattice.find(g);
    const bool exact = fit == nullptr || fit->has_step();
    ++grid.rule_groups;
    if (accepts) ++grid.rule_accepts;
    if (!accepts && exact) ++grid.rule_misses;
    if (accepts && fit != nullptr && fit->verdict == GridClass::kOffGrid) {
      ++grid.rule_accepts_alone;
    }
  }
}

void count_moves(const SourceLattice& lattice, const quant::SourceRows& source,
                 const quant::GroupLayout& groups, const quant::RowBlock& build,
                 GridTotals& totals) {
  add_level_moves(quant::count_level_moves(build, source, grid_of(lattice)), totals);
  if (groups.is_mapped() || build.scales.empty()) return;
  for (std::uint64_t row = 0; row < build.rows; ++row) {
    const std::uint64_t number = build.first_row + row;
    for (std::uint64_t g = 0; g < groups.groups(number); ++g) {
      const quant::RowRange columns = groups.positions(number, g);
      if (!lattice.is_one_group(columns)) continue;
      const GridFit& fit = lattice.at(row, columns.first);
      if (fit.verdict != GridClass::kOnGrid) continue;
      count_ratio(fit, build.scales[row * build.stride + g], totals.scale_ratio);
    }
  }
}

// Of groups that a build settled.
void count_settled_moves(const SourceLattice& lattice, const quant::SettledGroups& settled,
                         const quant::SourceRows& source, const quant::Int4Rows& build,
                         GridTotals& totals) {
  auto moves = quant::count_level_moves(build, source, grid_of(lattice), settled.open);
  moves.counts[quant::LevelMoves::kFarthest] += settled.count() * lattice.group_size;
  add_level_moves(moves, totals);
  count_ratios(settled, totals.scale_ratio);
  for (std::size_t i = 0; i < settled.open.size(); ++i) {
    if (lattice.fits[i].verdict != GridClass::kOnGrid) continue;
    count_ratio(lattice.fits[i], static_cast<double>(build.scales[settled.open[i]]),
                totals.scale_ratio);
  }
}

void count_moves(const SourceLattice& lattice, const quant::SourceRows& source,
                 const quant::Int4Rows& build, GridTotals& totals) {
  if (lattice.settled) {
    count_settled_moves(lattice, *lattice.settled, source, build, totals);
    return;
  }
  add_level_moves(quant::count_level_moves(build, source, grid_of(lattice)), totals);
  if (lattice.group_size % build.group_size != 0) return;
  const std::uint64_t scales = lattice.group_size / build.group_size;
  for (std::size_t g = 0; g < lattice.fits.size(); ++g) {
    const GridFit& fit = lattice.fits[g];
    if (fit.verdict != GridClass::kOnGrid) continue;
    for (const float scale : std::span(build.scales).subspan(g * scales, scales)) {
      count_ratio(fit, static_cast<double>(scale), totals.scale_ratio);
    }
  }
}

}  // namespace gridscope::analysis
