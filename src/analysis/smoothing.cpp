// The idea: where D = t v + noise down a column, least squares gives t and the residual gives t's
// standard error. Without smoothing all t agree within their errors; with it they scatter far
// beyond them. The scatter is judged against the weighted mean, so that a scale common to all
// columns is no smoothing.

#include "gridscope/analysis/smoothing.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <xtensor/xadapt.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xtensor.hpp>

namespace gridscope::analysis {
namespace {

constexpr std::uint64_t kMinRows = 8;
// Scatter of the factors against what noise alone would give, as a ratio of variances; and in
// itself. Noise alone stays near 1 for thousands of columns; AWQ's mildest factors exceed both by
// far.
constexpr double kMinExcess = 8.0;
constexpr double kMinSpread = 0.01;
// How far a column may stand off the factor that a norm gives it: as clipping of outliers does, and
// as many standard errors.
constexpr double kMaxOff = 0.2;
constexpr double kMaxErrors = 8.0;
// Norms are stored in 8 significant bits: below this two of them differ by rounding alone.
constexpr double kNormRounding = 0x1p-7;

using Column = xt::xtensor<double, 1>;

Column column(const std::vector<double>& values) {
  return xt::adapt(values, {values.size()});
}

void add_to(std::vector<double>& into, const std::vector<double>& more) {
  if (into.empty()) into.resize(more.size());
  std::ranges::transform(into, more, into.begin(), std::plus<>());
}

}  // namespace

// Adds the row's weights to the sums of line(k), its column k.
template <typename Line>
void ColumnSums::add_row(std::span<const double> build, std::span<const double> source,
                         const Line& line) {
  for (std::size_t k = 0; k < build.size(); ++k) {
    if (!std::isfinite(build[k]) || !std::isfinite(source[k])) continue;
    product[line(k)] += build[k] * source[k];
    squared_source[line(k)] += source[k] * source[k];
    squared_build[line(k)] += build[k] * build[k];
  }
}

void ColumnSums::resize(std::size_t columns) {
  for (auto* const sums : {&product, &squared_source, &squared_build}) sums->resize(columns);
}

void ColumnSums::add_rows(const quant::RowBlock& build, std::span<const double> source) {
  resize(build.columns);
  for (std::uint64_t row = 0; row < build.rows; ++row) {
    add_row(build.row_values(row), source.subspan(row * build.columns, build.columns),
            [](std::size_t k) { return k; });
  }
  rows += build.rows;
}

void ColumnSums::append_rows(const quant::RowBlock& build, std::span<const double> source) {
  const std::size_t before = product.size();
  resize(before + build.rows);
  for (std::uint64_t row = 0; row < build.rows; ++row) {
    add_row(build.row_values(row), source.subspan(row * build.columns, build.columns),
            [line = before + row](std::size_t /*k*/) { return line; });
  }
  rows = build.columns;
}

void ColumnSums::add(const ColumnSums& later) {
  if (later.rows == 0) return;
  rows += later.rows;
  add_to(product, later.product);
  add_to(squared_source, later.squared_source);
  add_to(squared_build, later.squared_build);
}

FactorRange range_of(std::span<const double> factors) {
  const auto [lowest, highest] = std::ranges::minmax(factors);
  return {.lowest = lowest, .highest = highest};
}

std::optional<std::vector<double>> factors_from_norms(std::span<const double> source,
                                                      std::span<const double> build,
                                                      double offset) {
  std::vector<double> factors(source.size());
  bool differ = false;
  for (std::size_t k = 0; k < source.size(); ++k) {
    factors[k] = (source[k] + offset) / (build[k] + offset);
    if (!std::isfinite(factors[k]) || factors[k] == 0.0) return std::nullopt;
    differ = differ || std::abs(factors[k] - 1.0) > kNormRounding;
  }
  if (!differ) return std::nullopt;
  return factors;
}

bool agrees_with_columns(std::span<const double> factors, const ColumnSums& sums) {
  if (sums.rows < kMinRows) return true;
  struct Ratio {
    double value = 1.0;
    double error = 0.0;
  };
  std::vector<Ratio> ratios;
  for (std::size_t k = 0; k < factors.size(); ++k) {
    const double source = sums.squared_source[k];
    if (!(source > 0.0)) continue;
    const double fitted = sums.product[k] / source;
    const double residual = std::max(sums.squared_build[k] - fitted * sums.product[k], 0.0);
    const double error = std::sqrt(residual / (static_cast<double>(sums.rows - 1) * source));
    ratios.push_back({.value = fitted / factors[k], .error = error / std::abs(factors[k])});
  }
  if (ratios.empty()) return true;
  const auto middle = ratios.begin() + std::ssize(ratios) / 2;
  std::ranges::nth_element(ratios, middle, {}, &Ratio::value);
  const double common = middle->value;
  return std::ranges::all_of(ratios, [&](const Ratio& ratio) {
    return std::abs(ratio.value / common - 1.0) <= kMaxOff + kMaxErrors * ratio.error / common;
  });
}

std::optional<std::vector<double>> factors_from_columns(const ColumnSums& sums) {
  if (sums.rows < kMinRows || sums.product.size() < 2) return std::nullopt;
  const Column product = column(sums.product);
  const Column source = column(sums.squared_source);
  const Column build = column(sums.squared_build);
  const auto lives = source > 0.0;
  const Column safe = xt::where(lives, source, 1.0);
  const Column factor = xt::where(lives, product / safe, 1.0);
  const auto freedom = static_cast<double>(sums.rows - 1);
  const Column residual = xt::maximum(build - factor * product, 0.0);
  // An exact multiple leaves no residual; half a unit of the last place of a bf16 stands for it.
  const Column variance = residual / (freedom * safe) + factor * factor * (0x1p-18 / freedom);
  const Column weight = xt::where(lives, 1.0 / variance, 0.0);
  const double total = xt::sum(weight)();
  if (!(total > 0.0) || !std::isfinite(total)) return std::nullopt;
  const double mean = xt::sum(weight * factor)() / total;
  const double count = xt::sum(xt::cast<double>(lives))();
  const Column deviation = factor - mean;
  const double excess = xt::sum(weight * deviation * deviation)() / count;
  const double spread = std::sqrt(xt::sum(weight * deviation * deviation)() / total);
  if (excess < kMinExcess || spread < kMinSpread * std::abs(mean)) return std::nullopt;
  if (xt::any(factor <= 0.0)) return std::nullopt;
  return std::vector<double>(factor.begin(), factor.end());
}

}  // namespace gridscope::analysis
