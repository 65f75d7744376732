#pragma once

// The scales of a weight, seen as a grid with one number for a block of rows and columns. One for
// the whole, one for each row, one for each group along a row, FP8 blocks: all of them are grids,
// and which one it is follows from the shapes.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gridscope/core/result.hpp"
#include "gridscope/quant/weight_decoder.hpp"
#include "stored_numbers.hpp"

namespace gridscope::quant {

// Matrices one below the other; most weights are one.
struct MatrixStack {
  std::uint64_t matrices = 1;
  std::uint64_t rows = 1;  // of each
  std::uint64_t columns = 1;

  [[nodiscard]] std::uint64_t total_rows() const { return matrices * rows; }
};

// [.., rows, columns]. Overflow was ruled out when the header was read.
[[nodiscard]] MatrixStack stack_of(std::span<const std::uint64_t> shape);

class ScaleGrid {
 public:
  // Of the scale or zero point `companion`, which must be there. Errors: kCorrupt when its shape
  // does not cover the weight or contradicts the claimed group size.
  [[nodiscard]] static Result<ScaleGrid> solve(const WeightSpec& spec, const MatrixStack& stack,
                                               Companion companion);

  [[nodiscard]] std::uint64_t group_size() const { return block_columns_; }
  [[nodiscard]] std::uint64_t groups() const { return groups_; }  // of a row

  // Which bytes of the stored tensor belong to these rows of the weight.
  [[nodiscard]] Strips needs(const StoredTensor& tensor, RowRange rows) const;
  // The numbers of `rows`, rows x groups(). Requires: rows within numbers.rows.
  void load(const TileNumbers& numbers, RowRange rows, std::span<double> out) const;

  // What was odd, if anything.
  [[nodiscard]] const std::vector<std::string>& remarks() const { return remarks_; }

 private:
  [[nodiscard]] std::uint64_t grid_row(std::uint64_t row) const {
    return row / matrix_rows_ * grid_rows_ + row % matrix_rows_ / block_rows_;
  }

  std::uint64_t matrix_rows_ = 1;   // rows of the weight after which a grid starts anew
  std::uint64_t grid_rows_ = 1;     // stored for each matrix
  std::uint64_t grid_columns_ = 1;  // stored; may be more than groups_
  std::uint64_t block_rows_ = 1;
  std::uint64_t block_columns_ = 1;
  std::uint64_t groups_ = 1;
  std::vector<std::string> remarks_;

  friend struct ScaleGridSolver;
};

}  // namespace gridscope::quant
