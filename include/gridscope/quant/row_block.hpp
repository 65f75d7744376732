#pragma once

// Decoded rows of one weight. A row is the weights of one output; its columns are the inputs.
// Stacked weights (experts) count as one matrix, their matrices one below the other.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gridscope::quant {

struct RowRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  [[nodiscard]] std::uint64_t end() const { return first + count; }
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

// Which columns of a row share a scale. A group is the weights of ONE row that share one: of an FP8
// block the row's part of it, of a bitsandbytes block that runs over the end of a row each part.
class GroupLayout {
 public:
  // Groups of `size` neighbours, the last one perhaps short; `phase_step` is what the start of each
  // row is advanced by against the one before it (blocks over the flattened tensor), modulo size.
  // Requires: size > 0.
  [[nodiscard]] static GroupLayout regular(std::uint64_t columns, std::uint64_t size,
                                           std::uint64_t phase_step = 0);
  // The columns that `group_of_column` gives the same number, in order of number then column.
  // Requires: every number < groups.
  [[nodiscard]] static GroupLayout mapped(std::span<const std::uint32_t> group_of_column,
                                          std::uint64_t groups);

  [[nodiscard]] std::uint64_t columns() const { return columns_; }
  // The most groups that a row can have: how far apart the rows of RowBlock::scales are.
  [[nodiscard]] std::uint64_t stride() const { return stride_; }
  // The columns of regular groups; 0 when mapped.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] bool is_mapped() const { return !order_.empty(); }
  [[nodiscard]] std::uint64_t groups(std::uint64_t row) const;
  // Group `g` of a row holds positions [first, end) of order(): columns themselves when regular.
  [[nodiscard]] RowRange positions(std::uint64_t row, std::uint64_t g) const;
  // Column at each position; empty when it is the position itself.
  [[nodiscard]] std::span<const std::uint32_t> order() const { return order_; }
  // The group of one column.
  [[nodiscard]] std::uint64_t group_of(std::uint64_t row, std::uint64_t column) const;

 private:
  // How far into a group the row starts.
  [[nodiscard]] std::uint64_t phase(std::uint64_t row) const;

  std::uint64_t columns_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t phase_step_ = 0;
  std::uint64_t stride_ = 0;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> starts_;    // mapped: position where each group starts, and the end
  std::vector<std::uint32_t> group_of_;  // mapped: per column
};

struct RowBlock {
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  // Exact: one rounding to the type of the source is all that is left to do. Where the format's own
  // arithmetic rounds on the way (a quotient of scales), rounded to double.
  std::vector<double> values = {};  // rows x columns
  // Stored codes in the order of their values. Of integer formats the signed level, the zero point
  // not yet subtracted: a code of b bits less 2^(b-1). Empty when plain.
  std::vector<std::int16_t> levels = {};  // rows x columns
  std::uint64_t stride = 0;               // GroupLayout::stride()
  // The step: what one level is worth; of formats whose levels are not evenly spaced the factor of
  // the code's value. Empty when plain.
  std::vector<double> scales = {};  // rows x stride
  // In levels, so that 0 is symmetric; empty where the format has none.
  std::vector<std::int16_t> zeros = {};  // rows x stride

  [[nodiscard]] std::span<const double> row_values(std::uint64_t row) const {
    return std::span(values).subspan(row * columns, columns);
  }
};

}  // namespace gridscope::quant
