#include "gridscope/analysis/source_lattice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gridscope/quant/codec.hpp"

namespace gridscope::analysis {
namespace {

using quant::GridClass;
using quant::GridFit;

// Of the groups that say anything; some hold no whole grid where training clipped a weight.
constexpr double kNearlyAll = 0.95;
constexpr double kBinsPerUnit = 16.0;
constexpr double kHighestBin = 4.0;

std::vector<float> numbers(const quant::SourceRows& source) {
  const std::size_t width = dtype_info(source.dtype).block_bits / 8;
  std::vector<double> values(source.bytes.size() / width);
  quant::load_numbers(source.dtype, source.bytes, values);
  return {values.begin(), values.end()};
}

bool nearly_all_on_grid(const SourceLattice& lattice) {
  std::uint64_t on = 0;
  std::uint64_t live = 0;
  for (const GridFit& fit : lattice.fits) {
    if (fit.verdict == GridClass::kDead) continue;
    ++live;
    if (fit.has_step()) ++on;
  }
  return live > 0 && static_cast<double>(on) >= kNearlyAll * static_cast<double>(live);
}

// Moves of one weight: rounded to the nearest level, ties to even.
void count_move(double value, const GridFit& fit, double level, GridTotals& totals) {
  const double distance = (value - level * fit.step) / fit.step;
  if (!std::isfinite(distance)) return;
  const double move = std::nearbyint(distance);
  if (std::abs(std::abs(distance - std::trunc(distance)) - 0.5) == 0.0) ++totals.level_ties;
  if (move != 0.0) {
    const double clamped = std::clamp(move, -99.0, 99.0);
    ++totals.level_moves[static_cast<int>(clamped)];
  }
}

}  // namespace

std::uint64_t find_group_size(const quant::SourceRows& source, std::uint64_t columns) {
  for (const std::uint64_t size : quant::usual_group_sizes(columns)) {
    if (nearly_all_on_grid(fit_lattice(source, columns, size))) return size;
  }
  return 0;
}

SourceLattice fit_lattice(const quant::SourceRows& source, std::uint64_t columns,
                          std::uint64_t group_size) {
  const std::size_t width = dtype_info(source.dtype).block_bits / 8;
  SourceLattice lattice{.columns = columns, .group_size = group_size};
  lattice.fits.resize(source.bytes.size() / width / group_size);
  if (source.dtype == Dtype::kBF16) {
    quant::fit_grids(source.bytes, group_size, {}, lattice.fits);
    return lattice;
  }
  const std::vector<float> values = numbers(source);
  for (std::size_t g = 0; g < lattice.fits.size(); ++g) {
    lattice.fits[g] = quant::fit_grid(std::span(values).subspan(g * group_size, group_size),
                                      source.dtype, {}, {});
  }
  return lattice;
}

void count_classes(const SourceLattice& lattice, GroupSizeFrom from, SourceGrid& grid) {
  std::uint64_t on = 0;
  for (const GridFit& fit : lattice.fits) {
    switch (fit.verdict) {
      case GridClass::kOnGrid:
        ++on;
        ++grid.top_levels[fit.top_level];
        break;
      case GridClass::kAmbiguous:
        ++grid.ambiguous;
        break;
      case GridClass::kDead:
        ++grid.dead;
        break;
      case GridClass::kOffGrid:
        ++grid.off_grid;
        break;
      case GridClass::kNonFinite:
        ++grid.non_finite;
        break;
    }
  }
  grid.groups += lattice.fits.size();
  grid.on_grid += on;
  if (from == GroupSizeFrom::kSource) {
    grid.group_sizes[lattice.group_size] += lattice.fits.size() * lattice.group_size;
  }
}

void count_rule(const SourceLattice& lattice, const quant::SourceRows& source, SourceGrid& grid) {
  const std::vector<float> values = numbers(source);
  for (std::size_t g = 0; g < lattice.fits.size(); ++g) {
    const auto group = std::span(values).subspan(g * lattice.group_size, lattice.group_size);
    const bool accepts = quant::fit_repack_rule(group, {}).m != 0;
    const bool exact = lattice.fits[g].has_step();
    ++grid.rule_groups;
    if (accepts) ++grid.rule_accepts;
    if (accepts && !exact && lattice.fits[g].verdict == GridClass::kOffGrid) {
      ++grid.rule_accepts_alone;
    }
    if (!accepts && exact) ++grid.rule_misses;
  }
}

std::string scale_ratio_bin(const GridFit& fit, double build_step) {
  const double step = std::abs(build_step);
  if (step >= fit.step_low && step <= fit.step_high) return "1";
  const double ratio = step / std::abs(fit.step);
  if (!(ratio < kHighestBin)) return fmt::format(">={:g}", kHighestBin);
  return fmt::format("{:g}", std::floor(ratio * kBinsPerUnit) / kBinsPerUnit);
}

void count_moves(const SourceLattice& lattice, const quant::SourceRows& source,
                 const quant::GroupLayout& groups, const quant::RowBlock& build,
                 GridTotals& totals) {
  const std::vector<float> originals = numbers(source);
  const std::uint64_t per_row = lattice.groups_per_row();
  for (std::size_t g = 0; g < lattice.fits.size(); ++g) {
    const GridFit& fit = lattice.fits[g];
    if (fit.verdict != GridClass::kOnGrid) continue;
    const std::size_t first = g * lattice.group_size;
    totals.lattice_weights += lattice.group_size;
    for (std::size_t i = first; i < first + lattice.group_size; ++i) {
      const double level = std::nearbyint(static_cast<double>(originals[i]) / fit.step);
      count_move(build.values[i], fit, level, totals);
    }
  }
  if (groups.is_mapped() || groups.size() == 0 || lattice.group_size % groups.size() != 0) return;
  for (std::uint64_t row = 0; row < build.rows; ++row) {
    for (std::uint64_t g = 0; g < groups.groups(build.first_row + row); ++g) {
      const std::uint64_t column = groups.positions(build.first_row + row, g).first;
      const GridFit& fit = lattice.fits[row * per_row + column / lattice.group_size];
      if (fit.verdict != GridClass::kOnGrid) continue;
      ++totals.scale_ratio[scale_ratio_bin(fit, build.scales[row * build.stride + g])];
    }
  }
}

}  // namespace gridscope::analysis
