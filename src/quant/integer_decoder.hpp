#pragma once

// Integer codes with a scale for each group, as GPTQ, AWQ, MLX and ModelOpt store them. Formats
// differ in where codes, scales and zero points lie; each brings some rows of a tile into the order
// of PackedRows and GroupTerms, and the rest is the same for all of them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gridscope/core/result.hpp"
#include "gridscope/quant/weight_decoder.hpp"

namespace gridscope::quant {

// Codes row by row, the lowest bits first, each as the level plus 2^(bits-1).
struct PackedRows {
  std::span<const std::byte> bytes;
  std::uint64_t stride = 0;    // bytes from one row to the next
  std::vector<std::byte> own;  // holds them where they had to be put into order
};

// value = (level - zero) * scale, or code * scale + offset where there are offsets.
struct GroupTerms {
  std::vector<double> scales;       // rows x groups
  std::vector<std::int16_t> zeros;  // rows x groups, in levels; empty: all 0
  std::vector<double> offsets;      // rows x groups, or empty; zeros are then filled in from them
};

class IntegerDecoder : public WeightDecoder {
 public:
  // `column_factors`: what each column is multiplied with at the end; may be empty.
  IntegerDecoder(WeightSpec spec, WeightLayout layout, std::vector<double> column_factors = {});

  [[nodiscard]] const WeightLayout& layout() const final { return layout_; }
  [[nodiscard]] Status decode(const Tile& tile, RowRange rows, RowBlock& out) const final;
  [[nodiscard]] Result<bool> decode_int4(const Tile& tile, RowRange rows,
                                         Int4Rows& out) const final;

 protected:
  // Both reuse the memory of `out`.
  virtual void order_codes(const Tile& tile, RowRange rows, PackedRows& out) const = 0;
  [[nodiscard]] virtual Status load_terms(const Tile& tile, RowRange rows,
                                          GroupTerms& out) const = 0;
  // One row of PackedRows as codes.
  virtual void unpack(std::span<const std::byte> row, std::span<std::uint8_t> codes) const;

  [[nodiscard]] const WeightSpec& spec() const { return spec_; }
  [[nodiscard]] std::uint64_t groups() const { return layout_.groups.stride(); }
  // 2^(bits-1): the code of level 0.
  [[nodiscard]] int middle() const { return -layout_.lowest_level; }

 private:
  [[nodiscard]] Status load_checked_terms(const Tile& tile, RowRange rows, GroupTerms& out) const;
  void fill_zeros(GroupTerms& terms) const;
  void fill_values(const GroupTerms& terms, RowBlock& out) const;
  [[nodiscard]] bool is_int4() const;

  WeightSpec spec_;
  WeightLayout layout_;
  std::vector<double> column_factors_;
};

// The layout of `bits`-bit integers; remarks are left to the caller.
[[nodiscard]] WeightLayout integer_layout(std::uint64_t rows, GroupLayout groups,
                                          std::uint32_t bits, Dtype scale_dtype);

// Columns that share a scale where a row of `columns` has `groups` of them: the claimed group size
// when it agrees, kCorrupt when it does not, or when the row cannot be divided.
[[nodiscard]] Result<std::uint64_t> solve_group_size(const WeightSpec& spec, std::uint64_t columns,
                                                     std::uint64_t groups);

// kCorrupt unless the tensor has these two dimensions.
[[nodiscard]] Status check_shape(const WeightSpec& spec, Companion companion, std::uint64_t rows,
                                 std::uint64_t columns);

}  // namespace gridscope::quant
