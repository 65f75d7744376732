#include <algorithm>
#include <utility>

#include "decoders.hpp"
#include "gridscope/quant/codec.hpp"
#include "scale_grid.hpp"
#include "spec_checks.hpp"
#include "stored_numbers.hpp"

// Weights that are stored as the numbers they are. Where the inputs come first, a row of the weight
// is a column of what is stored: a tile then has a strip of every stored row, or whole matrices
// where it reaches over the end of one.

namespace gridscope::quant {
namespace {

class PlainDecoder final : public WeightDecoder {
 public:
  PlainDecoder(WeightSpec spec, const MatrixStack& weight)
      : spec_(std::move(spec)),
        weight_(weight),
        layout_({.rows = weight.total_rows(),
                 .columns = weight.columns,
                 .groups = GroupLayout::regular(weight.columns, weight.columns)}) {}

  [[nodiscard]] const WeightLayout& layout() const override { return layout_; }

  [[nodiscard]] TileNeeds needs(RowRange rows) const override {
    TileNeeds needs;
    strips_of(needs, Companion::kCodes) =
        is_input_major() ? input_major_strips(rows) : row_strip(codes(), rows.first, rows.count);
    return needs;
  }

  [[nodiscard]] Status decode(const Tile& tile, RowRange rows, RowBlock& out) const override {
    out.first_row = rows.first;
    out.rows = rows.count;
    out.columns = layout_.columns;
    out.stride = layout_.groups.stride();
    out.levels.clear();
    out.scales.clear();
    out.zeros.clear();
    out.values.resize(rows.count * out.columns);
    if (is_input_major()) {
      load_input_major(tile, rows, out.values);
    } else {
      load_rows(numbers_of(spec_, tile, Companion::kCodes), out.columns, rows, out.values);
    }
    return {};
  }

 private:
  [[nodiscard]] const StoredTensor& codes() const { return *spec_.find(Companion::kCodes); }
  [[nodiscard]] bool is_input_major() const {
    return spec_.order == WeightSpec::Order::kInputMajor;
  }
  [[nodiscard]] std::uint64_t element_bytes() const {
    return dtype_info(codes().dtype).block_bits / 8;
  }
  [[nodiscard]] std::uint64_t matrix_bytes() const {
    return weight_.rows * weight_.columns * element_bytes();
  }

  // The matrices that these rows are of.
  [[nodiscard]] RowRange matrices(RowRange rows) const {
    const std::uint64_t first = rows.first / weight_.rows;
    return {.first = first, .count = (rows.end() - 1) / weight_.rows - first + 1};
  }

  [[nodiscard]] Strips input_major_strips(RowRange rows) const {
    const RowRange within = matrices(rows);
    Strips strips = {.offset = within.first * matrix_bytes(),
                     .length = within.count * matrix_bytes(),
                     .stride = within.count * matrix_bytes()};
    if (within.count > 1 || rows.count == weight_.rows) return strips;
    strips.offset += rows.first % weight_.rows * element_bytes();
    strips.length = rows.count * element_bytes();
    strips.stride = weight_.rows * element_bytes();
    strips.count = weight_.columns;
    return strips;
  }

  void load_input_major(const Tile& tile, RowRange rows, std::span<double> out) const {
    const RowRange stored = matrices(tile.rows);
    const RowRange wanted = matrices(rows);
    for (std::uint64_t matrix = wanted.first; matrix < wanted.end(); ++matrix) {
      TileNumbers numbers = numbers_of(spec_, tile, Companion::kCodes);
      const RowRange whole = {.first = matrix * weight_.rows, .count = weight_.rows};
      if (stored.count > 1) {
        numbers.rows = whole;
        numbers.bytes = numbers.bytes.subspan((matrix - stored.first) * matrix_bytes());
      }
      const std::uint64_t first = std::max(rows.first, whole.first);
      const RowRange part = {.first = first, .count = std::min(rows.end(), whole.end()) - first};
      load_columns(
          numbers, part,
          out.subspan((first - rows.first) * weight_.columns, part.count * weight_.columns));
    }
  }

  WeightSpec spec_;
  MatrixStack weight_;
  WeightLayout layout_;
};

bool is_8_bit_float(Dtype dtype) {
  return !is_plain_float(dtype) && is_number(dtype) && dtype_name(dtype).starts_with("F8");
}

}  // namespace

DecoderResult make_plain_decoder(WeightSpec spec) {
  GRIDSCOPE_TRY(const StoredTensor* const codes, require(spec, Companion::kCodes));
  if (is_8_bit_float(codes->dtype))
    GRIDSCOPE_CHECK(require(spec, Companion::kScale).map([](auto*) {}));
  GRIDSCOPE_TRY(
      const StoredTensor* const floats,
      require(spec, Companion::kCodes, {Dtype::kBF16, Dtype::kF16, Dtype::kF32, Dtype::kF64}));
  MatrixStack weight = stack_of(floats->shape);
  if (spec.order == WeightSpec::Order::kInputMajor) std::swap(weight.rows, weight.columns);
  if (weight.total_rows() == 0 || weight.columns == 0) return corrupt(spec, "it holds no weights");
  return std::make_unique<PlainDecoder>(std::move(spec), weight);
}

}  // namespace gridscope::quant
