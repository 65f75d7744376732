#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "decoders.hpp"
#include "integer_decoder.hpp"
#include "spec_checks.hpp"
#include "stored_numbers.hpp"

// MLX affine: every row is a bit stream of unsigned codes, and value = scale * code + offset. The
// sum of two exact numbers need not fit a double, so it is rounded to odd.

namespace gridscope::quant {
namespace {

constexpr std::array<std::uint64_t, 6> kBits = {2, 3, 4, 5, 6, 8};
constexpr std::uint64_t kWordBits = 32;

class MlxDecoder final : public IntegerDecoder {
 public:
  using IntegerDecoder::IntegerDecoder;

  [[nodiscard]] TileNeeds needs(RowRange rows) const override {
    TileNeeds needs;
    for (const Companion companion : {Companion::kCodes, Companion::kScale, Companion::kOffset}) {
      strips_of(needs, companion) = row_strip(*spec().find(companion), rows.first, rows.count);
    }
    return needs;
  }

 protected:
  void order_codes(const Tile& tile, RowRange rows, PackedRows& out) const override {
    out.stride = row_bytes(*spec().find(Companion::kCodes));
    out.bytes =
        bytes_of(tile, Companion::kCodes).subspan((rows.first - tile.rows.first) * out.stride);
  }

  Status load_terms(const Tile& tile, RowRange rows, GroupTerms& out) const override {
    out.scales.resize(rows.count * groups());
    out.offsets.resize(rows.count * groups());
    load_rows(numbers_of(spec(), tile, Companion::kScale), groups(), rows, out.scales);
    load_rows(numbers_of(spec(), tile, Companion::kOffset), groups(), rows, out.offsets);
    return {};
  }
};

// The claimed width, or the one that the claimed group size leaves.
Result<std::uint32_t> solve_bits(const WeightSpec& spec, std::uint64_t words,
                                 std::uint64_t groups) {
  if (spec.bits == 0 && spec.group_size <= 0) {
    return corrupt(spec, "neither its bits nor its group size are known");
  }
  const std::uint64_t bits =
      spec.bits != 0 ? spec.bits
                     : words * kWordBits / groups / static_cast<std::uint64_t>(spec.group_size);
  if (std::ranges::find(kBits, bits) == kBits.end()) {
    return unsupported(spec, fmt::format("it has {} bits, expected 2, 3, 4, 5, 6 or 8", bits));
  }
  return static_cast<std::uint32_t>(bits);
}

// Scales and offsets lie in the same grid, with as many rows as the codes.
Status check_grid(const WeightSpec& spec) {
  GRIDSCOPE_TRY(const StoredTensor* const words, require(spec, Companion::kCodes, {Dtype::kU32}));
  for (const Companion companion : {Companion::kScale, Companion::kOffset}) {
    GRIDSCOPE_TRY(const StoredTensor* const grid, require(spec, companion, kScaleTypes));
    if (rows_of(*grid) != rows_of(*words) || grid->shape.size() != words->shape.size()) {
      return corrupt(spec,
                     fmt::format("its {} {} does not fit its codes {}", companion_name(companion),
                                 shape_text(*grid), shape_text(*words)));
    }
  }
  const StoredTensor& scale = *spec.find(Companion::kScale);
  const StoredTensor& offset = *spec.find(Companion::kOffset);
  if (columns_of(scale) != columns_of(offset)) {
    return corrupt(spec, fmt::format("its offset {} does not fit its scale {}", shape_text(offset),
                                     shape_text(scale)));
  }
  if (elements_of(*words) == 0 || elements_of(scale) == 0) {
    return corrupt(spec, "it holds no weights");
  }
  return {};
}

}  // namespace

DecoderResult make_mlx_decoder(WeightSpec spec) {
  GRIDSCOPE_CHECK(check_grid(spec));
  const StoredTensor& words = *spec.find(Companion::kCodes);
  const StoredTensor& scale = *spec.find(Companion::kScale);
  const std::uint64_t groups = columns_of(scale);
  GRIDSCOPE_TRY(const std::uint32_t bits, solve_bits(spec, columns_of(words), groups));
  const std::uint64_t columns = columns_of(words) * kWordBits / bits;
  GRIDSCOPE_TRY(const std::uint64_t size, solve_group_size(spec, columns, groups));
  if (columns * bits != columns_of(words) * kWordBits || columns % size != 0) {
    return corrupt(spec,
                   fmt::format("its rows of {} words hold no {} groups of {} codes of {} bits",
                               columns_of(words), groups, size, bits));
  }
  WeightLayout layout =
      integer_layout(rows_of(words), GroupLayout::regular(columns, size), bits, scale.dtype);
  return std::make_unique<MlxDecoder>(std::move(spec), std::move(layout));
}

}  // namespace gridscope::quant
