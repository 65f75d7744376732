#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "decoders.hpp"
#include "spec_checks.hpp"
#include "stored_numbers.hpp"

// A bit mask says which values of a row are stored, and they follow one another. Once they are back
// in their places the weight is a dense one, plain or with scales, and its decoder does the rest.

namespace gridscope::quant {
namespace {

struct SparseShape {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::vector<std::uint64_t> starts;  // stored values before each row, and all of them
};

// ---- shapes -------------------------------------------------------------------------------------

Status solve_size(const WeightSpec& spec, SparseShape& shape) {
  GRIDSCOPE_TRY(const std::vector<double> numbers,
                whole_numbers(spec, Companion::kShape, {Dtype::kI64, Dtype::kI32}));
  GRIDSCOPE_TRY(const StoredTensor* const mask, require(spec, Companion::kBitmask, {Dtype::kU8}));
  shape.rows = rows_of(*mask);
  const auto most_columns = static_cast<double>(columns_of(*mask)) * 8;
  if (mask->shape.size() != 2 || numbers.size() != 2 || shape.rows == 0 || numbers[1] < 1 ||
      numbers[0] != static_cast<double>(shape.rows) || numbers[1] > most_columns ||
      numbers[1] <= most_columns - 8) {
    return corrupt(spec, fmt::format("its bitmask {} does not belong to a weight of shape [{}]",
                                     shape_text(*mask), fmt::join(numbers, ", ")));
  }
  shape.columns = static_cast<std::uint64_t>(numbers[1]);
  return {};
}

// Where each row starts among the stored values.
Status solve_starts(const WeightSpec& spec, SparseShape& shape) {
  const StoredTensor& values = *spec.find(Companion::kCodes);
  shape.starts.reserve(shape.rows + 1);
  if (values.shape.size() == 2 && spec.find(Companion::kRowOffsets) == nullptr) {
    if (rows_of(values) != shape.rows || columns_of(values) > shape.columns) {
      return corrupt(spec, fmt::format("its codes {} are no part of {} x {} weights",
                                       shape_text(values), shape.rows, shape.columns));
    }
    for (std::uint64_t row = 0; row <= shape.rows; ++row) {
      shape.starts.push_back(row * columns_of(values));
    }
    return {};
  }
  GRIDSCOPE_TRY(const std::vector<double> offsets,
                whole_numbers(spec, Companion::kRowOffsets, {Dtype::kI64, Dtype::kI32}));
  const std::uint64_t stored = elements_of(values);
  if (offsets.size() != shape.rows) {
    return corrupt(spec,
                   fmt::format("it has {} row offsets for {} rows", offsets.size(), shape.rows));
  }
  double last = 0;
  for (const double offset : offsets) {
    if (offset < last || offset > static_cast<double>(stored) ||
        (shape.starts.empty() && offset != 0)) {
      return corrupt(
          spec, fmt::format("its row offset of row {} is {}, expected {} to {}",
                            shape.starts.size(), offset, last, shape.starts.empty() ? 0 : stored));
    }
    shape.starts.push_back(static_cast<std::uint64_t>(offset));
    last = offset;
  }
  shape.starts.push_back(stored);
  return {};
}

// The weight as it would be stored without a mask.
WeightSpec dense_spec(const WeightSpec& spec, const SparseShape& shape) {
  WeightSpec dense = spec;
  const Dtype dtype = spec.find(Companion::kCodes)->dtype;
  dense[Companion::kCodes] = StoredTensor{.dtype = dtype, .shape = {shape.rows, shape.columns}};
  dense[Companion::kBitmask].reset();
  dense[Companion::kRowOffsets].reset();
  dense.scheme = dtype == Dtype::kI8 ? Scheme::kCtInt : Scheme::kCtFloat;
  if (spec.find(Companion::kScale) == nullptr) dense.scheme = Scheme::kPlain;
  return dense;
}

// ---- decoding -----------------------------------------------------------------------------------

class SparseDecoder final : public WeightDecoder {
 public:
  SparseDecoder(WeightSpec spec, SparseShape shape, std::unique_ptr<const WeightDecoder> dense)
      : spec_(std::move(spec)),
        shape_(std::move(shape)),
        dense_(std::move(dense)),
        value_bytes_(dtype_info(spec_.find(Companion::kCodes)->dtype).block_bits / 8) {}

  [[nodiscard]] const WeightLayout& layout() const override { return dense_->layout(); }

  [[nodiscard]] TileNeeds needs(RowRange rows) const override {
    TileNeeds needs = dense_->needs(rows);
    const std::uint64_t first = shape_.starts[rows.first] * value_bytes_;
    const std::uint64_t length = shape_.starts[rows.end()] * value_bytes_ - first;
    strips_of(needs, Companion::kCodes) = {.offset = first, .length = length, .stride = length};
    strips_of(needs, Companion::kBitmask) =
        row_strip(*spec_.find(Companion::kBitmask), rows.first, rows.count);
    return needs;
  }

  [[nodiscard]] Status decode(const Tile& tile, RowRange rows, RowBlock& out) const override {
    std::vector<std::byte> values(rows.count * shape_.columns * value_bytes_);
    for (std::uint64_t i = 0; i < rows.count; ++i) {
      const std::uint64_t size = shape_.columns * value_bytes_;
      GRIDSCOPE_CHECK(scatter_row(tile, rows.first + i, std::span(values).subspan(i * size, size)));
    }
    Tile dense = {.rows = rows, .bytes = narrowed(tile, rows)};
    dense.bytes[static_cast<std::size_t>(Companion::kCodes)] = values;
    return dense_->decode(dense, rows, out);
  }

 private:
  // Of the companions that the dense weight has as well, which come as one strip.
  [[nodiscard]] TileBytes narrowed(const Tile& tile, RowRange rows) const {
    const TileNeeds all = dense_->needs(tile.rows);
    const TileNeeds part = dense_->needs(rows);
    TileBytes bytes = {};
    for (std::size_t i = 0; i < kCompanionCount; ++i) {
      const auto& from = all.at(i);
      const auto& to = part.at(i);
      if (!from || !to || i == static_cast<std::size_t>(Companion::kCodes)) continue;
      bytes.at(i) = tile.bytes.at(i).subspan(to->offset - from->offset, to->length);
    }
    return bytes;
  }

  [[nodiscard]] Status scatter_row(const Tile& tile, std::uint64_t row,
                                   std::span<std::byte> out) const {
    const std::uint64_t mask_bytes = columns_of(*spec_.find(Companion::kBitmask));
    const auto mask = bytes_of(tile, Companion::kBitmask)
                          .subspan((row - tile.rows.first) * mask_bytes, mask_bytes);
    const std::uint64_t first = shape_.starts[row];
    const std::uint64_t stored = shape_.starts[row + 1] - first;
    std::uint64_t marked = 0;
    for (const std::byte byte : mask) {
      marked += static_cast<std::uint64_t>(std::popcount(std::to_integer<std::uint8_t>(byte)));
    }
    const auto tail = static_cast<unsigned>(shape_.columns % 8);
    const bool marks_padding = tail != 0 && std::to_integer<unsigned>(mask.back()) >> tail != 0;
    if (marked != stored || marks_padding) {
      return corrupt(spec_, fmt::format("its bitmask marks {} of {} values in row {}, expected {}",
                                        marked, shape_.columns, row, stored));
    }
    auto values = bytes_of(tile, Companion::kCodes)
                      .subspan((first - shape_.starts[tile.rows.first]) * value_bytes_);
    for (std::uint64_t column = 0; column < shape_.columns; ++column) {
      if ((mask[column / 8] >> (column % 8) & std::byte{1}) == std::byte{0}) continue;
      std::ranges::copy(values.first(value_bytes_), &out[column * value_bytes_]);
      values = values.subspan(value_bytes_);
    }
    return {};
  }

  WeightSpec spec_;
  SparseShape shape_;
  std::unique_ptr<const WeightDecoder> dense_;
  std::uint64_t value_bytes_;
};

}  // namespace

DecoderResult make_sparse_decoder(WeightSpec spec) {
  GRIDSCOPE_TRY(const StoredTensor* const values, require(spec, Companion::kCodes));
  if (is_block_type(values->dtype) || dtype_info(values->dtype).block_bits % 8 != 0) {
    return corrupt(spec, fmt::format("its codes are {}", shape_text(*values)));
  }
  SparseShape shape;
  GRIDSCOPE_CHECK(solve_size(spec, shape));
  GRIDSCOPE_CHECK(solve_starts(spec, shape));
  WeightSpec dense = dense_spec(spec, shape);
  const bool plain = dense.scheme == Scheme::kPlain;
  GRIDSCOPE_TRY(auto decoder, plain ? make_plain_decoder(std::move(dense))
                                    : make_element_decoder(std::move(dense)));
  return std::make_unique<SparseDecoder>(std::move(spec), std::move(shape), std::move(decoder));
}

}  // namespace gridscope::quant
