#pragma once

// Per-column factors that an exporter folded into a weight and out of the norm before it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gridscope/quant/row_block.hpp"

namespace gridscope::analysis {

// Sums down each column over some rows (or along each row), D the build's values, v the source's.
struct ColumnSums {
  std::uint64_t rows = 0;
  std::vector<double> product = {};         // D v
  std::vector<double> squared_source = {};  // v^2
  std::vector<double> squared_build = {};   // D^2

  // Adds rows of the build against as many of the source, row-major. Weights that are not finite on
  // either side are left out.
  void add_rows(const quant::RowBlock& build, std::span<const double> source);
  // The same of rows: each is taken for a column of its own, after those before it.
  void append_rows(const quant::RowBlock& build, std::span<const double> source);
  // Adds what comes after this in order.
  void add(const ColumnSums& later);

 private:
  void resize(std::size_t columns);
  template <typename Line>
  void add_row(std::span<const double> build, std::span<const double> source, const Line& line);
};

struct FactorRange {
  double lowest = 1.0;
  double highest = 1.0;
};
// Of the factors that are not 1 for want of data. Requires: at least one.
[[nodiscard]] FactorRange range_of(std::span<const double> factors);

// What each column of the weight must have been multiplied by when norm weights of the source
// became those of the build: source / build. `offset` is what the model adds to a norm's weight
// before it multiplies with it (Gemma 1 to 3: 1). Empty when the norms are the same but for
// rounding, or when one of the build's is zero or not finite. Requires: as many of both.
[[nodiscard]] std::optional<std::vector<double>> factors_from_norms(std::span<const double> source,
                                                                    std::span<const double> build,
                                                                    double offset);

// Whether the columns were scaled by these factors, but for one common to all: false when a single
// column stands clearly elsewhere, as where a norm was edited besides. Fewer than 8 rows tell
// nothing, and are taken to agree. Requires: a factor for each column.
[[nodiscard]] bool agrees_with_columns(std::span<const double> factors, const ColumnSums& sums);

// Factors from the columns themselves, by least squares: sum(D v) / sum(v^2). Empty when the
// factors scatter no more than quantization noise makes them; a column without weights has factor
// 1. Fewer than 8 rows tell nothing.
[[nodiscard]] std::optional<std::vector<double>> factors_from_columns(const ColumnSums& sums);

}  // namespace gridscope::analysis
