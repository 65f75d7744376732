#include "scale_grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "gridscope/core/checked.hpp"
#include "gridscope/quant/codec.hpp"
#include "integer_decoder.hpp"
#include "spec_checks.hpp"

namespace gridscope::quant {

MatrixStack stack_of(std::span<const std::uint64_t> shape) {
  MatrixStack stack;
  if (!shape.empty()) stack.columns = shape.back();
  if (shape.size() > 1) stack.rows = shape[shape.size() - 2];
  for (std::size_t i = 0; i + 2 < shape.size(); ++i) stack.matrices *= shape[i];
  return stack;
}

// Tries the readings of a shape from the surest to the one that has to be inferred.
struct ScaleGridSolver {
  const WeightSpec& spec;
  const MatrixStack& weight;
  const StoredTensor& tensor;
  MatrixStack stored = stack_of(tensor.shape);

  // One number for everything, or for each of several matrices.
  [[nodiscard]] std::optional<ScaleGrid> single() const {
    const std::uint64_t count = elements_of(tensor);
    if (count != 1 && count != weight.matrices) return std::nullopt;
    ScaleGrid grid;
    grid.matrix_rows_ = count == 1 ? weight.total_rows() : weight.rows;
    grid.block_rows_ = grid.matrix_rows_;
    grid.block_columns_ = weight.columns;
    return grid;
  }

  // A row of numbers for each row, or one row of them for all.
  [[nodiscard]] Result<std::optional<ScaleGrid>> by_row() const {
    const bool vector = tensor.shape.size() == 1 && stored.columns == weight.total_rows();
    const std::uint64_t rows = vector ? stored.columns : stored.total_rows();
    if (rows != weight.total_rows() && rows != 1) return std::nullopt;
    ScaleGrid grid;
    grid.grid_columns_ = vector ? 1 : stored.columns;
    GRIDSCOPE_TRY(grid.block_columns_, solve_group_size(spec, weight.columns, grid.grid_columns_));
    grid.matrix_rows_ = rows == 1 ? weight.total_rows() : 1;
    grid.block_rows_ = grid.matrix_rows_;
    if (weight.columns % grid.block_columns_ != 0) {
      grid.remarks_.push_back(fmt::format("its last groups have {} weights of {}",
                                          weight.columns % grid.block_columns_,
                                          grid.block_columns_));
    }
    return grid;
  }

  [[nodiscard]] ScaleGrid blocks_of(std::uint64_t block_rows, std::uint64_t block_columns) const {
    ScaleGrid grid;
    grid.matrix_rows_ = weight.rows;
    grid.grid_rows_ = stored.rows;
    grid.grid_columns_ = stored.columns;
    grid.block_rows_ = block_rows;
    grid.block_columns_ = std::min(block_columns, weight.columns);
    return grid;
  }

  // Blocks of the claimed size: exactly as many as needed, or more.
  [[nodiscard]] std::optional<ScaleGrid> by_claimed_blocks(bool padded) const {
    const auto [block_rows, block_columns] = spec.block;
    if (block_rows == 0 || block_columns == 0) return std::nullopt;
    const std::uint64_t rows = ceil_div(weight.rows, block_rows);
    const std::uint64_t columns = ceil_div(weight.columns, block_columns);
    if (stored.matrices != weight.matrices || stored.rows < rows || stored.columns < columns) {
      return std::nullopt;
    }
    if (padded == (stored.rows == rows && stored.columns == columns)) return std::nullopt;
    ScaleGrid grid = blocks_of(block_rows, block_columns);
    if (padded) {
      grid.remarks_.push_back(
          fmt::format("its grid of {} x {} scales is larger than the {} x {} "
                      "that its blocks need",
                      stored.rows, stored.columns, rows, columns));
    }
    return grid;
  }

  // Blocks that nobody claims, where they divide the weight.
  [[nodiscard]] std::optional<ScaleGrid> by_inferred_blocks() const {
    if (stored.matrices != weight.matrices || stored.rows == 0 || stored.columns == 0 ||
        weight.rows % stored.rows != 0 || weight.columns % stored.columns != 0) {
      return std::nullopt;
    }
    return blocks_of(weight.rows / stored.rows, weight.columns / stored.columns);
  }

  [[nodiscard]] Result<std::optional<ScaleGrid>> solve() const {
    if (auto grid = single()) return grid;
    if (auto grid = by_claimed_blocks(false)) return grid;
    GRIDSCOPE_TRY(auto rows, by_row());
    if (rows) return rows;
    if (auto grid = by_claimed_blocks(true)) return grid;
    return by_inferred_blocks();
  }
};

Result<ScaleGrid> ScaleGrid::solve(const WeightSpec& spec, const MatrixStack& stack,
                                   Companion companion) {
  const StoredTensor& tensor = *spec.find(companion);
  if (stack.total_rows() == 0 || stack.columns == 0) return corrupt(spec, "it holds no weights");
  const ScaleGridSolver solver = {.spec = spec, .weight = stack, .tensor = tensor};
  GRIDSCOPE_TRY(std::optional<ScaleGrid> grid, solver.solve());
  if (!grid) {
    return corrupt(
        spec, fmt::format("its {} {} does not cover {} x {} weights", companion_name(companion),
                          shape_text(tensor), stack.total_rows(), stack.columns));
  }
  grid->groups_ = ceil_div(stack.columns, grid->block_columns_);
  return *std::move(grid);
}

Strips ScaleGrid::needs(const StoredTensor& tensor, RowRange rows) const {
  const std::uint64_t first = grid_row(rows.first);
  const std::uint64_t count = grid_row(rows.end() - 1) - first + 1;
  const std::uint64_t row_bytes = grid_columns_ * dtype_info(tensor.dtype).block_bits / 8;
  const std::uint64_t length = count * row_bytes;
  return {.offset = first * row_bytes, .length = length, .stride = length, .count = 1};
}

void ScaleGrid::load(const TileNumbers& numbers, RowRange rows, std::span<double> out) const {
  const std::uint64_t row_bytes = grid_columns_ * dtype_info(numbers.dtype).block_bits / 8;
  // Rows of numbers that lie as they are wanted are one run.
  if (groups_ == grid_columns_ && block_rows_ == 1 && grid_rows_ == matrix_rows_) {
    const std::uint64_t from = rows.first - numbers.rows.first;
    return load_numbers(numbers.dtype, numbers.bytes.subspan(from * row_bytes),
                        out.first(rows.count * groups_));
  }
  const std::uint64_t origin = grid_row(numbers.rows.first);
  for (std::uint64_t i = 0; i < rows.count; ++i) {
    const std::uint64_t from = grid_row(rows.first + i) - origin;
    load_numbers(numbers.dtype, numbers.bytes.subspan(from * row_bytes),
                 out.subspan(i * groups_, groups_));
  }
}

}  // namespace gridscope::quant
