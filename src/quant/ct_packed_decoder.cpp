#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "ct_groups.hpp"
#include "ct_packing.hpp"
#include "decoders.hpp"
#include "gridscope/core/endian.hpp"
#include "integer_decoder.hpp"
#include "scale_grid.hpp"
#include "spec_checks.hpp"
#include "stored_numbers.hpp"

// compressed-tensors packs the codes of each row into words of their own; at four bits the rows are
// already what kernels take. Zero points are packed as well, but down the rows: the bit stream of a
// column of them runs through the words of all rows. Before version 0.9.4 they lay there unpacked.

namespace gridscope::quant {
namespace {

constexpr std::uint64_t kWordBytes = 4;
constexpr std::uint64_t kWordBits = 32;
constexpr std::uint32_t kMostBits = 8;
constexpr std::initializer_list<std::uint32_t> kUsualWidths = {1, 2, 4, 8};
constexpr std::initializer_list<std::uint32_t> kOddWidths = {3, 5, 6, 7};

enum class ZeroStorage : std::uint8_t { kNone, kUnpacked, kPacked };

// Everything that the shapes tell.
struct CtPackedShape {
  MatrixStack weight;
  std::uint32_t bits = 0;
  CtPacking packing = CtPacking::kDense;
  ScaleGrid scales;
  ZeroStorage zeros = ZeroStorage::kNone;
  ScaleGrid zero_grid;  // of unpacked ones
};

// ---- shapes -------------------------------------------------------------------------------------

// What weight_shape says, checked against the rows that there are. Columns are checked later, when
// the words of a row are.
Result<MatrixStack> solve_weight(const WeightSpec& spec) {
  GRIDSCOPE_TRY(const StoredTensor* const codes, require(spec, Companion::kCodes, {Dtype::kI32}));
  GRIDSCOPE_TRY(const std::vector<double> numbers,
                whole_numbers(spec, Companion::kShape, {Dtype::kI64, Dtype::kI32}));
  const auto& words = codes->shape;
  bool agrees = words.size() >= 2 && numbers.size() == words.size();
  for (std::size_t i = 0; agrees && i < numbers.size(); ++i) {
    const bool last = i + 1 == numbers.size();
    agrees = last ? numbers[i] >= 1 && numbers[i] <= static_cast<double>(words[i] * kWordBits)
                  : numbers[i] == static_cast<double>(words[i]) && words[i] > 0;
  }
  if (!agrees) {
    return corrupt(spec, fmt::format("its codes {} do not hold a weight of shape [{}]",
                                     shape_text(*codes), fmt::join(numbers, ", ")));
  }
  MatrixStack weight = stack_of(words);
  weight.columns = static_cast<std::uint64_t>(numbers.back());
  return weight;
}

// The only one of these widths that `words` words of a row leave room for, or 0.
std::uint32_t only_width(std::initializer_list<std::uint32_t> widths, std::uint64_t columns,
                         std::uint64_t words) {
  std::uint32_t found = 0;
  for (const std::uint32_t bits : widths) {
    if (ct_words(CtPacking::kDense, bits, columns) != words &&
        ct_words(CtPacking::kWholeCodes, bits, columns) != words) {
      continue;
    }
    if (found != 0) return 0;
    found = bits;
  }
  return found;
}

// The claimed width, or what the words of a row leave room for. Widths that divide a word go first:
// seven bits that do not cross words take as many of them as eight do.
Result<std::uint32_t> solve_bits(const WeightSpec& spec, std::uint64_t columns) {
  if (spec.bits > kMostBits) {
    return unsupported(spec, fmt::format("it has {} bits, expected 1 to {}", spec.bits, kMostBits));
  }
  if (spec.bits != 0) return spec.bits;
  const std::uint64_t words = columns_of(*spec.find(Companion::kCodes));
  for (const auto widths : {kUsualWidths, kOddWidths}) {
    const std::uint32_t bits = only_width(widths, columns, words);
    if (bits != 0) return bits;
  }
  return corrupt(spec, fmt::format("neither its configuration nor {} words for {} columns tell its "
                                   "bits",
                                   words, columns));
}

Result<ZeroStorage> solve_zero_storage(const WeightSpec& spec) {
  if (spec.find(Companion::kZeroPoint) == nullptr) {
    if (spec.symmetric != false) return ZeroStorage::kNone;
    return require(spec, Companion::kZeroPoint).map([](auto*) { return ZeroStorage::kNone; });
  }
  GRIDSCOPE_TRY(const StoredTensor* const zeros,
                require(spec, Companion::kZeroPoint, {Dtype::kI32, Dtype::kI8}));
  return zeros->dtype == Dtype::kI32 ? ZeroStorage::kPacked : ZeroStorage::kUnpacked;
}

// Packed zero points: words down the rows of each matrix, a column for each group.
Status check_packed_zeros(const WeightSpec& spec, const CtPackedShape& shape) {
  const StoredTensor& zeros = *spec.find(Companion::kZeroPoint);
  const MatrixStack stored = stack_of(zeros.shape);
  if (zeros.shape.size() >= 2 && stored.matrices == shape.weight.matrices &&
      stored.columns == shape.scales.groups()) {
    return {};
  }
  return corrupt(spec, fmt::format("its zero point {} does not fit {} groups in a row",
                                   shape_text(zeros), shape.scales.groups()));
}

Status solve_zeros(const WeightSpec& spec, CtPackedShape& shape) {
  GRIDSCOPE_TRY(shape.zeros, solve_zero_storage(spec));
  if (shape.zeros == ZeroStorage::kPacked) return check_packed_zeros(spec, shape);
  if (shape.zeros == ZeroStorage::kNone) return {};
  GRIDSCOPE_TRY(shape.zero_grid, ScaleGrid::solve(spec, shape.weight, Companion::kZeroPoint));
  if (shape.zero_grid.group_size() == shape.scales.group_size()) return {};
  return corrupt(spec, fmt::format("its zero points are for {} columns, its scales for {}",
                                   shape.zero_grid.group_size(), shape.scales.group_size()));
}

Result<CtPacking> solve_packing(const WeightSpec& spec, const CtPackedShape& shape) {
  std::vector<CtWords> runs = {{.companion = Companion::kCodes,
                                .codes = shape.weight.columns,
                                .words = columns_of(*spec.find(Companion::kCodes))}};
  if (shape.zeros == ZeroStorage::kPacked) {
    runs.push_back({.companion = Companion::kZeroPoint,
                    .codes = shape.weight.rows,
                    .words = stack_of(spec.find(Companion::kZeroPoint)->shape).rows});
  }
  return solve_ct_packing(spec, shape.bits, runs);
}

Result<CtPackedShape> solve_shape(const WeightSpec& spec) {
  CtPackedShape shape;
  GRIDSCOPE_TRY(shape.weight, solve_weight(spec));
  GRIDSCOPE_TRY(shape.bits, solve_bits(spec, shape.weight.columns));
  GRIDSCOPE_CHECK(require(spec, Companion::kScale, kScaleTypes).map([](auto*) {}));
  GRIDSCOPE_TRY(shape.scales, ScaleGrid::solve(spec, shape.weight, Companion::kScale));
  GRIDSCOPE_CHECK(solve_zeros(spec, shape));
  GRIDSCOPE_TRY(shape.packing, solve_packing(spec, shape));
  return shape;
}

// ---- decoding -----------------------------------------------------------------------------------

class CtPackedDecoder final : public IntegerDecoder {
 public:
  CtPackedDecoder(WeightSpec spec, WeightLayout layout, CtPackedShape shape)
      : IntegerDecoder(std::move(spec), std::move(layout)), shape_(std::move(shape)) {}

  [[nodiscard]] TileNeeds needs(RowRange rows) const override {
    TileNeeds needs;
    strips_of(needs, Companion::kCodes) =
        row_strip(*spec().find(Companion::kCodes), rows.first, rows.count);
    strips_of(needs, Companion::kScale) =
        shape_.scales.needs(*spec().find(Companion::kScale), rows);
    if (shape_.zeros == ZeroStorage::kNone) return needs;
    const StoredTensor& zeros = *spec().find(Companion::kZeroPoint);
    const RowRange words = zero_words(rows);
    strips_of(needs, Companion::kZeroPoint) = shape_.zeros == ZeroStorage::kUnpacked
                                                  ? shape_.zero_grid.needs(zeros, rows)
                                                  : row_strip(zeros, words.first, words.count);
    return needs;
  }

 protected:
  void order_codes(const Tile& tile, RowRange rows, PackedRows& out) const override {
    out.stride = row_bytes(*spec().find(Companion::kCodes));
    out.bytes = bytes_of(tile, Companion::kCodes)
                    .subspan((rows.first - tile.rows.first) * out.stride, rows.count * out.stride);
  }

  Status load_terms(const Tile& tile, RowRange rows, GroupTerms& out) const override {
    out.scales.resize(rows.count * groups());
    shape_.scales.load(numbers_of(spec(), tile, Companion::kScale), rows, out.scales);
    if (shape_.zeros == ZeroStorage::kNone) return {};
    out.zeros.resize(rows.count * groups());
    if (shape_.zeros == ZeroStorage::kPacked) {
      load_packed_zeros(tile, rows, out.zeros);
    } else {
      load_unpacked_zeros(tile, rows, out.zeros);
    }
    return check_ct_zeros(spec(), layout(), rows, out.zeros);
  }

  void unpack(std::span<const std::byte> row, std::span<std::uint8_t> codes) const override {
    unpack_ct(shape_.packing, shape_.bits, row, codes);
  }

 private:
  // The row of words, counted over all matrices, in which the code of a row starts, and the bit.
  struct ZeroPlace {
    std::uint64_t word = 0;
    std::uint64_t bit = 0;
  };
  [[nodiscard]] ZeroPlace zero_place(std::uint64_t row) const {
    const std::uint64_t stored = stack_of(spec().find(Companion::kZeroPoint)->shape).rows;
    const std::uint64_t bit = ct_bit(shape_.packing, shape_.bits, row % shape_.weight.rows);
    return {.word = row / shape_.weight.rows * stored + bit / kWordBits, .bit = bit % kWordBits};
  }

  // Rows of words that hold the zero points of these rows, the ends of their codes included.
  [[nodiscard]] RowRange zero_words(RowRange rows) const {
    if (shape_.zeros != ZeroStorage::kPacked) return {};
    const std::uint64_t first = zero_place(rows.first).word;
    const ZeroPlace last = zero_place(rows.end() - 1);
    const std::uint64_t end = last.word + (last.bit + shape_.bits - 1) / kWordBits + 1;
    return {.first = first, .count = end - first};
  }

  void load_packed_zeros(const Tile& tile, RowRange rows, std::span<std::int16_t> out) const {
    const auto bytes = bytes_of(tile, Companion::kZeroPoint);
    const std::uint64_t first = zero_words(tile.rows).first;
    const auto word_at = [&](std::uint64_t row, std::uint64_t g) -> std::uint64_t {
      return load_le<std::uint32_t>(bytes.subspan(((row - first) * groups() + g) * kWordBytes));
    };
    for (std::uint64_t i = 0; i < rows.count; ++i) {
      const ZeroPlace place = zero_place(rows.first + i);
      const bool crosses = place.bit + shape_.bits > kWordBits;
      for (std::uint64_t g = 0; g < groups(); ++g) {
        std::uint64_t bits = word_at(place.word, g);
        if (crosses) bits |= word_at(place.word + 1, g) << kWordBits;
        const std::uint64_t code = bits >> place.bit & ((1U << shape_.bits) - 1);
        out[i * groups() + g] = static_cast<std::int16_t>(static_cast<int>(code) - middle());
      }
    }
  }

  void load_unpacked_zeros(const Tile& tile, RowRange rows, std::span<std::int16_t> out) const {
    std::vector<double> numbers(out.size());
    shape_.zero_grid.load(numbers_of(spec(), tile, Companion::kZeroPoint), rows, numbers);
    std::ranges::transform(numbers, out.begin(),
                           [](double zero) { return static_cast<std::int16_t>(zero); });
  }

  CtPackedShape shape_;
};

}  // namespace

DecoderResult make_ct_packed_decoder(WeightSpec spec) {
  GRIDSCOPE_TRY(CtPackedShape shape, solve_shape(spec));
  GRIDSCOPE_TRY(CtGroups groups,
                solve_ct_groups(spec, shape.weight.columns, shape.scales.group_size()));
  WeightLayout layout = integer_layout(shape.weight.total_rows(), std::move(groups.layout),
                                       shape.bits, spec.find(Companion::kScale)->dtype);
  layout.remarks = std::move(groups.remarks);
  std::ranges::copy(shape.scales.remarks(), std::back_inserter(layout.remarks));
  return std::make_unique<CtPackedDecoder>(std::move(spec), std::move(layout), std::move(shape));
}

}  // namespace gridscope::quant
