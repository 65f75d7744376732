#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "decoders.hpp"
#include "gridscope/core/checked.hpp"
#include "integer_decoder.hpp"
#include "spec_checks.hpp"
#include "stored_numbers.hpp"

// ModelOpt INT4-AWQ: a byte holds the same input of two neighbouring outputs, the even one in its
// low nibble, as signed numbers. Flipping the sign bit makes them codes less 8. The second scale of
// W4A8 builds belongs to the activations' type and is no part of the weight.

namespace gridscope::quant {
namespace {

constexpr std::uint32_t kBits = 4;

// The low or the high nibbles of a row of bytes, two to a byte, as codes.
void take_nibbles(std::span<const std::byte> pairs, unsigned shift, std::span<std::byte> out) {
  constexpr std::byte kNibble{0xf};
  constexpr std::byte kSigns{0x88};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::byte low = pairs[2 * i] >> shift & kNibble;
    const std::byte high = pairs[2 * i + 1] >> shift & kNibble;
    out[i] = (low | high << 4U) ^ kSigns;
  }
}

RowRange pairs_of(RowRange rows) {
  return {.first = rows.first / 2, .count = ceil_div(rows.end(), 2) - rows.first / 2};
}

class ModelOptInt4Decoder final : public IntegerDecoder {
 public:
  using IntegerDecoder::IntegerDecoder;

  [[nodiscard]] TileNeeds needs(RowRange rows) const override {
    TileNeeds needs;
    const RowRange pairs = pairs_of(rows);
    strips_of(needs, Companion::kCodes) =
        row_strip(*spec().find(Companion::kCodes), pairs.first, pairs.count);
    strips_of(needs, Companion::kScale) =
        row_strip(*spec().find(Companion::kScale), rows.first, rows.count);
    return needs;
  }

 protected:
  void order_codes(const Tile& tile, RowRange rows, PackedRows& out) const override {
    const std::uint64_t columns = layout().columns;
    out.stride = columns / 2;
    out.own.resize(rows.count * out.stride);
    for (std::uint64_t row = 0; row < rows.count; ++row) {
      const std::uint64_t output = rows.first + row;
      const std::uint64_t pair = output / 2 - tile.rows.first / 2;
      take_nibbles(bytes_of(tile, Companion::kCodes).subspan(pair * columns, columns),
                   output % 2 * 4, std::span(out.own).subspan(row * out.stride, out.stride));
    }
    out.bytes = out.own;
  }

  Status load_terms(const Tile& tile, RowRange rows, GroupTerms& out) const override {
    out.scales.resize(rows.count * groups());
    load_rows(numbers_of(spec(), tile, Companion::kScale), groups(), rows, out.scales);
    return {};
  }
};

Status check_grid(const WeightSpec& spec) {
  if (spec.bits != 0 && spec.bits != kBits) {
    return unsupported(spec, fmt::format("it has {} bits, expected {}", spec.bits, kBits));
  }
  GRIDSCOPE_TRY(const StoredTensor* const pairs, require(spec, Companion::kCodes, {Dtype::kU8}));
  GRIDSCOPE_TRY(const StoredTensor* const scale, require(spec, Companion::kScale, kScaleTypes));
  if (pairs->shape.size() < 2 || columns_of(*pairs) % 2 != 0 ||
      scale->shape.size() != pairs->shape.size() || rows_of(*scale) != 2 * rows_of(*pairs)) {
    return corrupt(spec, fmt::format("its codes {} do not fit its scale {}", shape_text(*pairs),
                                     shape_text(*scale)));
  }
  return {};
}

}  // namespace

DecoderResult make_modelopt_int4_decoder(WeightSpec spec) {
  GRIDSCOPE_CHECK(check_grid(spec));
  const StoredTensor& scale = *spec.find(Companion::kScale);
  const std::uint64_t rows = rows_of(scale);
  const std::uint64_t columns = columns_of(*spec.find(Companion::kCodes));
  if (rows == 0) return corrupt(spec, "it holds no weights");
  GRIDSCOPE_TRY(const std::uint64_t size, solve_group_size(spec, columns, columns_of(scale)));
  GRIDSCOPE_TRY(std::vector<double> factors, column_factors(spec, columns));
  WeightLayout layout =
      integer_layout(rows, GroupLayout::regular(columns, size), kBits, scale.dtype);
  return std::make_unique<ModelOptInt4Decoder>(std::move(spec), std::move(layout),
                                               std::move(factors));
}

}  // namespace gridscope::quant
