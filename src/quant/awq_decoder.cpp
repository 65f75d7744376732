#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "awq_packing.hpp"
#include "decoders.hpp"
#include "gridscope/core/checked.hpp"
#include "gridscope/core/endian.hpp"
#include "gridscope/quant/bitstream.hpp"
#include "integer_decoder.hpp"
#include "spec_checks.hpp"
#include "stored_numbers.hpp"

// Three layouts of 4-bit codes. GEMM runs down the inputs, eight outputs to a word: eight words of
// eight inputs are an 8 by 8 matrix of nibbles, and its transpose is a word of each output. GEMV is
// in natural order already. GEMV_FAST weaves four outputs and permutes the inputs for its kernel,
// and stores an offset instead of a zero point.

namespace gridscope::quant {
namespace {

constexpr std::uint32_t kBits = 4;
constexpr std::uint64_t kWordBytes = 4;
constexpr std::initializer_list<Dtype> kWords = {Dtype::kI32, Dtype::kU32};

// ---- checks that the layouts share --------------------------------------------------------------

Status check_matrix(const WeightSpec& spec, Companion companion,
                    std::initializer_list<Dtype> dtypes) {
  GRIDSCOPE_TRY(const StoredTensor* const tensor, require(spec, companion, dtypes));
  if (tensor->shape.size() == 2 && elements_of(*tensor) != 0) return {};
  return corrupt(spec, fmt::format("its {} is {}, expected two dimensions",
                                   companion_name(companion), shape_text(*tensor)));
}

Status check_codes(const WeightSpec& spec, std::initializer_list<Dtype> dtypes) {
  if (spec.bits != 0 && spec.bits != kBits) {
    return unsupported(spec, fmt::format("it has {} bits, expected {}", spec.bits, kBits));
  }
  GRIDSCOPE_CHECK(check_matrix(spec, Companion::kCodes, dtypes));
  return check_matrix(spec, Companion::kScale, kScaleTypes);
}

// Without zero points the middle is zero; that only asymmetric weights cannot mean.
Status check_zeros(const WeightSpec& spec, std::uint64_t rows, std::uint64_t columns) {
  if (spec.find(Companion::kZeroPoint) == nullptr && spec.symmetric != false) return {};
  GRIDSCOPE_CHECK(check_matrix(spec, Companion::kZeroPoint, kWords));
  return check_shape(spec, Companion::kZeroPoint, rows, columns);
}

// The group size that explains so many scales, padding included.
Result<std::uint64_t> solve_padded_group_size(const WeightSpec& spec, std::uint64_t inputs,
                                              std::uint64_t stored) {
  if (spec.group_size < -1) {
    return corrupt(spec, fmt::format("its group size is {}", spec.group_size));
  }
  std::vector<std::uint64_t> sizes = {128, 64, 32, inputs};
  if (spec.group_size != 0) {
    sizes = {spec.group_size > 0 ? static_cast<std::uint64_t>(spec.group_size) : inputs};
  }
  for (const std::uint64_t size : sizes) {
    if (inputs % size == 0 && awq_padded_groups(inputs / size, size) == stored) return size;
  }
  return corrupt(spec, fmt::format("its rows of {} weights have {} scales: no group size explains "
                                   "that",
                                   inputs, stored));
}

template <typename Decoder>
DecoderResult make_decoder_of(WeightSpec spec, std::uint64_t outputs, GroupLayout groups) {
  const Dtype scale_dtype = spec.find(Companion::kScale)->dtype;
  WeightLayout layout = integer_layout(outputs, std::move(groups), kBits, scale_dtype);
  return std::make_unique<Decoder>(std::move(spec), std::move(layout));
}

// Scales and, where they are stored, zero points; derived decoders know how both lie.
class ZeroPointDecoder : public IntegerDecoder {
 public:
  using IntegerDecoder::IntegerDecoder;

 protected:
  Status load_terms(const Tile& tile, RowRange rows, GroupTerms& out) const final {
    out.scales.resize(rows.count * groups());
    load_scales(numbers_of(spec(), tile, Companion::kScale), rows, out.scales);
    if (spec().find(Companion::kZeroPoint) == nullptr) return {};
    out.zeros.resize(rows.count * groups());
    load_zeros(tile, rows, out.zeros);
    return check_symmetry(rows, out.zeros);
  }

 private:
  // Both fill rows x groups.
  virtual void load_scales(const TileNumbers& scales, RowRange rows,
                           std::span<double> out) const = 0;
  virtual void load_zeros(const Tile& tile, RowRange rows, std::span<std::int16_t> out) const = 0;

  // Of a symmetric weight every zero point is the middle.
  [[nodiscard]] Status check_symmetry(RowRange rows, std::span<const std::int16_t> zeros) const {
    if (spec().symmetric != true) return {};
    const auto odd = std::ranges::find_if(zeros, [](int zero) { return zero != 0; });
    if (odd == zeros.end()) return {};
    const auto index = static_cast<std::uint64_t>(odd - zeros.begin());
    return corrupt(spec(), fmt::format("its zero point of row {}, group {} is {}, but it is "
                                       "symmetric: expected {}",
                                       rows.first + index / groups(), index % groups(),
                                       *odd + middle(), middle()));
  }
};

// ---- GEMM ---------------------------------------------------------------------------------------

class GemmDecoder final : public ZeroPointDecoder {
 public:
  using ZeroPointDecoder::ZeroPointDecoder;

  [[nodiscard]] static DecoderResult make(WeightSpec spec) {
    GRIDSCOPE_CHECK(check_codes(spec, kWords));
    const StoredTensor& words = *spec.find(Companion::kCodes);
    const StoredTensor& scales = *spec.find(Companion::kScale);
    const std::uint64_t inputs = words.shape[0];
    const std::uint64_t outputs = words.shape[1] * kAwqWord;
    if (scales.shape[1] != outputs) {
      return corrupt(spec, fmt::format("its codes {} do not fit its scales {}", shape_text(words),
                                       shape_text(scales)));
    }
    GRIDSCOPE_TRY(const std::uint64_t size, solve_group_size(spec, inputs, scales.shape[0]));
    if (inputs % size != 0) {
      return corrupt(
          spec,
          fmt::format("its rows of {} weights are no multiple of the group size {}", inputs, size));
    }
    GRIDSCOPE_CHECK(check_zeros(spec, scales.shape[0], words.shape[1]));
    return make_decoder_of<GemmDecoder>(std::move(spec), outputs,
                                        GroupLayout::regular(inputs, size));
  }

  [[nodiscard]] TileNeeds needs(RowRange rows) const override {
    TileNeeds needs;
    strips_of(needs, Companion::kCodes) =
        column_strips(*spec().find(Companion::kCodes), words_of(rows), layout().columns);
    strips_of(needs, Companion::kScale) =
        column_strips(*spec().find(Companion::kScale), rows, groups());
    if (const StoredTensor* const zeros = spec().find(Companion::kZeroPoint)) {
      strips_of(needs, Companion::kZeroPoint) = column_strips(*zeros, words_of(rows), groups());
    }
    return needs;
  }

 protected:
  void order_codes(const Tile& tile, RowRange rows, PackedRows& out) const override {
    const RowRange stored = words_of(tile.rows);
    const RowRange words = words_of(rows);
    out.stride = ceil_div(layout().columns, kAwqWord) * kWordBytes;
    out.own.resize(words.count * kAwqWord * out.stride);
    order_awq_gemm(bytes_of(tile, Companion::kCodes), stored.count,
                   {.first = words.first - stored.first, .count = words.count}, out.own);
    out.bytes = std::span<const std::byte>(out.own).subspan(rows.first % kAwqWord * out.stride);
  }

 private:
  [[nodiscard]] static RowRange words_of(RowRange rows) {
    const std::uint64_t first = rows.first / kAwqWord;
    return {.first = first, .count = ceil_div(rows.end(), kAwqWord) - first};
  }

  void load_scales(const TileNumbers& scales, RowRange rows, std::span<double> out) const override {
    load_columns(scales, rows, out);
  }

  void load_zeros(const Tile& tile, RowRange rows, std::span<std::int16_t> out) const override {
    const RowRange stored = words_of(tile.rows);
    const auto words = bytes_of(tile, Companion::kZeroPoint);
    for (std::uint64_t row = 0; row < rows.count; ++row) {
      const std::uint64_t output = rows.first + row;
      const unsigned shift = 4 * kAwqNibble[output % kAwqWord];
      for (std::uint64_t g = 0; g < groups(); ++g) {
        const std::uint64_t word = g * stored.count + output / kAwqWord - stored.first;
        const auto zeros = load_le<std::uint32_t>(words.subspan(word * kWordBytes));
        const auto zero = static_cast<int>(zeros >> shift & 0xfU);
        out[row * groups() + g] = static_cast<std::int16_t>(zero - middle());
      }
    }
  }
};

// ---- GEMV ---------------------------------------------------------------------------------------

class GemvDecoder final : public ZeroPointDecoder {
 public:
  using ZeroPointDecoder::ZeroPointDecoder;

  [[nodiscard]] static DecoderResult make(WeightSpec spec) {
    GRIDSCOPE_CHECK(check_codes(spec, kWords));
    const StoredTensor& words = *spec.find(Companion::kCodes);
    const StoredTensor& scales = *spec.find(Companion::kScale);
    const std::uint64_t outputs = words.shape[0];
    const std::uint64_t inputs = words.shape[1] * kAwqWord;
    const std::uint64_t padded = scales.shape[1];
    GRIDSCOPE_CHECK(check_shape(spec, Companion::kScale, outputs, padded));
    GRIDSCOPE_TRY(const std::uint64_t size, solve_padded_group_size(spec, inputs, padded));
    GRIDSCOPE_CHECK(check_zeros(spec, outputs, padded / kAwqWord));
    return make_decoder_of<GemvDecoder>(std::move(spec), outputs,
                                        GroupLayout::regular(inputs, size));
  }

  [[nodiscard]] TileNeeds needs(RowRange rows) const override {
    TileNeeds needs;
    for (const Companion companion :
         {Companion::kCodes, Companion::kScale, Companion::kZeroPoint}) {
      const StoredTensor* const tensor = spec().find(companion);
      if (tensor == nullptr) continue;
      strips_of(needs, companion) = row_strip(*tensor, rows.first, rows.count);
    }
    return needs;
  }

 protected:
  void order_codes(const Tile& tile, RowRange rows, PackedRows& out) const override {
    out.stride = layout().columns / 2;
    out.bytes =
        bytes_of(tile, Companion::kCodes).subspan((rows.first - tile.rows.first) * out.stride);
  }

 private:
  void load_scales(const TileNumbers& scales, RowRange rows, std::span<double> out) const override {
    load_rows(scales, columns_of(*spec().find(Companion::kScale)), rows, out);
  }

  void load_zeros(const Tile& tile, RowRange rows, std::span<std::int16_t> out) const override {
    const std::uint64_t bytes = row_bytes(*spec().find(Companion::kZeroPoint));
    std::vector<std::uint8_t> zeros(groups());
    for (std::uint64_t row = 0; row < rows.count; ++row) {
      const std::uint64_t first = (rows.first - tile.rows.first + row) * bytes;
      unpack_bits(bytes_of(tile, Companion::kZeroPoint).subspan(first), kBits, 0, zeros);
      std::ranges::transform(zeros, &out[row * groups()], [&](std::uint8_t zero) {
        return static_cast<std::int16_t>(zero - middle());
      });
    }
  }
};

// ---- GEMV_FAST ----------------------------------------------------------------------------------

class GemvFastDecoder final : public IntegerDecoder {
 public:
  using IntegerDecoder::IntegerDecoder;

  [[nodiscard]] static DecoderResult make(WeightSpec spec) {
    GRIDSCOPE_CHECK(check_codes(spec, {Dtype::kI16, Dtype::kU16}));
    GRIDSCOPE_CHECK(check_matrix(spec, Companion::kZeroPoint, kScaleTypes));
    const StoredTensor& words = *spec.find(Companion::kCodes);
    const StoredTensor& scales = *spec.find(Companion::kScale);
    const std::uint64_t outputs = words.shape[0] * kAwqFastRows;
    const std::uint64_t inputs = words.shape[1];
    const std::uint64_t padded = scales.shape[0];
    if (inputs % kAwqFastBlock != 0) {
      return corrupt(
          spec, fmt::format("its rows of {} weights are no multiple of {}", inputs, kAwqFastBlock));
    }
    GRIDSCOPE_CHECK(check_shape(spec, Companion::kScale, padded, outputs));
    GRIDSCOPE_CHECK(check_shape(spec, Companion::kZeroPoint, padded, outputs));
    GRIDSCOPE_TRY(const std::uint64_t size, solve_padded_group_size(spec, inputs, padded));
    return make_decoder_of<GemvFastDecoder>(std::move(spec), outputs,
                                            GroupLayout::regular(inputs, size));
  }

  [[nodiscard]] TileNeeds needs(RowRange rows) const override {
    TileNeeds needs;
    const RowRange bands = bands_of(rows);
    strips_of(needs, Companion::kCodes) =
        row_strip(*spec().find(Companion::kCodes), bands.first, bands.count);
    for (const Companion companion : {Companion::kScale, Companion::kZeroPoint}) {
      strips_of(needs, companion) = column_strips(*spec().find(companion), rows, groups());
    }
    return needs;
  }

 protected:
  void order_codes(const Tile& tile, RowRange rows, PackedRows& out) const override {
    const std::uint64_t columns = layout().columns;
    const auto words = bytes_of(tile, Companion::kCodes);
    out.stride = columns / 2;
    out.own.assign(rows.count * out.stride, std::byte{0});
    for (std::uint64_t row = 0; row < rows.count; ++row) {
      const std::uint64_t output = rows.first + row;
      const std::uint64_t band = output / kAwqFastRows - bands_of(tile.rows).first;
      for (std::uint64_t k = 0; k < columns; ++k) {
        const NibblePlace place = awq_fast_place(output, k);
        const auto word = load_le<std::uint16_t>(words.subspan(2 * (band * columns + place.word)));
        const unsigned code = unsigned{word} >> place.shift & 0xfU;
        out.own[row * out.stride + k / 2] |= static_cast<std::byte>(code << (k % 2 * 4));
      }
    }
    out.bytes = out.own;
  }

  Status load_terms(const Tile& tile, RowRange rows, GroupTerms& out) const override {
    out.scales.resize(rows.count * groups());
    out.offsets.resize(rows.count * groups());
    load_columns(numbers_of(spec(), tile, Companion::kScale), rows, out.scales);
    load_columns(numbers_of(spec(), tile, Companion::kZeroPoint), rows, out.offsets);
    return {};
  }

 private:
  [[nodiscard]] static RowRange bands_of(RowRange rows) {
    const std::uint64_t first = rows.first / kAwqFastRows;
    return {.first = first, .count = ceil_div(rows.end(), kAwqFastRows) - first};
  }
};

}  // namespace

DecoderResult make_awq_decoder(WeightSpec spec) {
  switch (spec.scheme) {
    case Scheme::kAwqGemv:
      return GemvDecoder::make(std::move(spec));
    case Scheme::kAwqGemvFast:
      return GemvFastDecoder::make(std::move(spec));
    default:
      return GemmDecoder::make(std::move(spec));
  }
}

}  // namespace gridscope::quant
