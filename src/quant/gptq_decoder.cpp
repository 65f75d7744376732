#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "decoders.hpp"
#include "gptq_packing.hpp"
#include "gridscope/core/checked.hpp"
#include "gridscope/quant/bitstream.hpp"
#include "gridscope/quant/codec.hpp"
#include "integer_decoder.hpp"
#include "spec_checks.hpp"
#include "stored_numbers.hpp"

// GPTQ stores a matrix of words, [input words, outputs]: a column of it is the bit stream of one
// output. Transposing the words, not the codes, gives every output its stream, and at four bits
// that is already the order that kernels take. Zero points run along the outputs instead, so a tile
// reads them from the start of the block of 32 codes that its first row lies in.

namespace gridscope::quant {
namespace {

struct GptqShape {
  std::uint32_t bits = 0;
  std::uint64_t inputs = 0;
  std::uint64_t outputs = 0;
  std::uint64_t groups = 0;
  std::uint64_t group_size = 0;
};

// ---- shapes -------------------------------------------------------------------------------------

// The claimed width, or what group index or zero points leave room for. Inputs come in whole words
// with any writer, so the group index goes first.
std::uint64_t bits_of(const WeightSpec& spec) {
  if (spec.bits != 0) return spec.bits;
  const StoredTensor& words = *spec.find(Companion::kCodes);
  const std::uint64_t word_bits = word_bits_of(words.dtype);
  const StoredTensor* const index = spec.find(Companion::kGroupIndex);
  if (index != nullptr && elements_of(*index) != 0) {
    return words.shape[0] * word_bits / elements_of(*index);
  }
  const StoredTensor* const zeros = spec.find(Companion::kZeroPoint);
  return zeros == nullptr ? 0 : columns_of(*zeros) * word_bits / columns_of(words);
}

Status check_bits(const WeightSpec& spec, std::uint64_t bits) {
  if (bits == 0) return corrupt(spec, "neither its configuration nor its shapes tell its bits");
  const bool known = bits >= 2 && bits <= 8;
  if (!known) return unsupported(spec, fmt::format("it has {} bits, expected 2 to 8", bits));
  const Dtype words = spec.find(Companion::kCodes)->dtype;
  if (fits_words(static_cast<std::uint32_t>(bits), words)) return {};
  return unsupported(spec, fmt::format("it has codes of {} bits in words of type {}, expected I32",
                                       bits, dtype_name(words)));
}

// Two dimensions each, words and scales over as many outputs.
Status check_grid(const WeightSpec& spec) {
  GRIDSCOPE_TRY(const StoredTensor* const words, require(spec, Companion::kCodes, kGptqWords));
  GRIDSCOPE_TRY(const StoredTensor* const scales, require(spec, Companion::kScale, kScaleTypes));
  if (words->shape.size() != 2 || scales->shape.size() != 2 ||
      words->shape[1] != scales->shape[1]) {
    return corrupt(spec, fmt::format("its codes {} do not fit its scales {}", shape_text(*words),
                                     shape_text(*scales)));
  }
  if (elements_of(*words) == 0) return corrupt(spec, "it holds no weights");
  return {};
}

Status check_inputs(const WeightSpec& spec, const GptqShape& shape) {
  const StoredTensor& words = *spec.find(Companion::kCodes);
  const std::uint64_t expected = words_for(shape.inputs, shape.bits, words.dtype);
  if (expected != words.shape[0]) {
    return corrupt(spec, fmt::format("{} inputs of {} bits take {} words, found {}", shape.inputs,
                                     shape.bits, expected, words.shape[0]));
  }
  if (is_planar(spec, shape.bits) &&
      (shape.inputs % kGptqBlock != 0 || shape.outputs % kGptqBlock != 0)) {
    return corrupt(spec, fmt::format("planes need multiples of {}, found {} inputs and {} outputs",
                                     kGptqBlock, shape.inputs, shape.outputs));
  }
  return {};
}

Status check_zeros(const WeightSpec& spec, const GptqShape& shape) {
  if (spec.symmetric == true && spec.find(Companion::kZeroPoint) == nullptr) return {};
  const Dtype words = spec.find(Companion::kCodes)->dtype;
  GRIDSCOPE_CHECK(require(spec, Companion::kZeroPoint, {words}).map([](auto*) {}));
  return check_shape(spec, Companion::kZeroPoint, shape.groups,
                     words_for(shape.outputs, shape.bits, words));
}

Result<GptqShape> solve_shape(const WeightSpec& spec) {
  GRIDSCOPE_CHECK(check_grid(spec));
  const std::uint64_t bits = bits_of(spec);
  GRIDSCOPE_CHECK(check_bits(spec, bits));
  const StoredTensor& words = *spec.find(Companion::kCodes);
  const StoredTensor* const index = spec.find(Companion::kGroupIndex);
  GptqShape shape = {.bits = static_cast<std::uint32_t>(bits),
                     .inputs = index != nullptr ? elements_of(*index)
                                                : words.shape[0] * word_bits_of(words.dtype) / bits,
                     .outputs = words.shape[1],
                     .groups = spec.find(Companion::kScale)->shape[0]};
  GRIDSCOPE_CHECK(check_inputs(spec, shape));
  GRIDSCOPE_TRY(shape.group_size, solve_group_size(spec, shape.inputs, shape.groups));
  GRIDSCOPE_CHECK(check_zeros(spec, shape));
  return shape;
}

// ---- group index --------------------------------------------------------------------------------

// The group of each column. Negative numbers count from the end: the reference packer adds the
// number of groups to them.
Result<std::vector<std::uint32_t>> read_group_index(const WeightSpec& spec, std::uint64_t groups) {
  GRIDSCOPE_TRY(const std::vector<double> numbers,
                whole_numbers(spec, Companion::kGroupIndex, {Dtype::kI32, Dtype::kI64}));
  const auto limit = static_cast<double>(groups);
  std::vector<std::uint32_t> index;
  index.reserve(numbers.size());
  for (const double number : numbers) {
    const double group = number < 0 ? number + limit : number;
    if (group < 0 || group >= limit) {
      return corrupt(spec, fmt::format("its group index of column {} is {}, expected below {}",
                                       index.size(), number, groups));
    }
    index.push_back(static_cast<std::uint32_t>(group));
  }
  return index;
}

bool is_in_order(std::span<const std::uint32_t> index, std::uint64_t group_size) {
  for (std::size_t k = 0; k < index.size(); ++k) {
    if (index[k] != k / group_size) return false;
  }
  return true;
}

Result<WeightLayout> make_layout(const WeightSpec& spec, const GptqShape& shape) {
  const Dtype scale_dtype = spec.find(Companion::kScale)->dtype;
  const auto layout_of = [&](GroupLayout groups) {
    return integer_layout(shape.outputs, std::move(groups), shape.bits, scale_dtype);
  };
  if (spec.find(Companion::kGroupIndex) != nullptr) {
    GRIDSCOPE_TRY(const std::vector<std::uint32_t> index, read_group_index(spec, shape.groups));
    if (!is_in_order(index, shape.group_size)) {
      WeightLayout layout = layout_of(GroupLayout::mapped(index, shape.groups));
      if (spec.act_order == false) {
        layout.remarks.emplace_back(
            "its group index is not column / group size although desc_act is false");
      }
      return layout;
    }
  }
  return layout_of(GroupLayout::regular(shape.inputs, shape.group_size));
}

// ---- decoding -----------------------------------------------------------------------------------

// Words [height][width] -> [columns.count][height] of the chosen columns, a cache line at a time.
template <std::size_t kWordBytes>
void transpose_words(std::span<const std::byte> words, std::uint64_t width, RowRange columns,
                     std::span<std::byte> out) {
  constexpr std::uint64_t kLineWords = 64 / kWordBytes;
  const std::uint64_t height = words.size() / (width * kWordBytes);
  for (std::uint64_t top = 0; top < height; top += kLineWords) {
    const std::uint64_t bottom = std::min(top + kLineWords, height);
    for (std::uint64_t c = 0; c < columns.count; ++c) {
      for (std::uint64_t h = top; h < bottom; ++h) {
        std::memcpy(&out[(c * height + h) * kWordBytes],
                    &words[(h * width + columns.first + c) * kWordBytes], kWordBytes);
      }
    }
  }
}

using TransposeWords = decltype(&transpose_words<4>);

TransposeWords transpose_of(std::uint64_t word_bits) {
  switch (word_bits) {
    case 8:
      return &transpose_words<1>;
    case 16:
      return &transpose_words<2>;
    case 64:
      return &transpose_words<8>;
    default:
      return &transpose_words<4>;
  }
}

class GptqDecoder final : public IntegerDecoder {
 public:
  GptqDecoder(WeightSpec spec, WeightLayout layout)
      : IntegerDecoder(std::move(spec), std::move(layout)),
        planar_(is_planar(this->spec(), this->layout().bits)),
        word_bits_(word_bits_of(this->spec().find(Companion::kCodes)->dtype)) {}

  [[nodiscard]] TileNeeds needs(RowRange rows) const override {
    TileNeeds needs;
    const StoredTensor& words = *spec().find(Companion::kCodes);
    strips_of(needs, Companion::kCodes) = column_strips(words, rows, words.shape[0]);
    strips_of(needs, Companion::kScale) =
        column_strips(*spec().find(Companion::kScale), rows, groups());
    if (const StoredTensor* const zeros = spec().find(Companion::kZeroPoint)) {
      strips_of(needs, Companion::kZeroPoint) = column_strips(*zeros, zero_words(rows), groups());
    }
    return needs;
  }

  [[nodiscard]] std::string remark_on(const Tile& tile) const override {
    if (spec().find(Companion::kZeroPoint) == nullptr) return {};
    return spec().symmetric == true ? remark_on_label(tile) : remark_on_wrapping(tile);
  }

 protected:
  void order_codes(const Tile& tile, RowRange rows, PackedRows& out) const override {
    out.stride = spec().find(Companion::kCodes)->shape[0] * word_bits_ / 8;
    out.own.resize(rows.count * out.stride);
    transpose_of(word_bits_)(bytes_of(tile, Companion::kCodes), tile.rows.count,
                             {.first = rows.first - tile.rows.first, .count = rows.count}, out.own);
    out.bytes = out.own;
  }

  Status load_terms(const Tile& tile, RowRange rows, GroupTerms& out) const override {
    out.scales.resize(rows.count * groups());
    load_columns(numbers_of(spec(), tile, Companion::kScale), rows, out.scales);
    if (spec().find(Companion::kZeroPoint) == nullptr) return {};
    return load_zeros(tile, rows, out.zeros);
  }

  void unpack(std::span<const std::byte> row, std::span<std::uint8_t> codes) const override {
    if (!planar_) return IntegerDecoder::unpack(row, codes);
    unpack_planar(row, layout().bits, codes);
  }

 private:
  // Symmetric weights are read right whatever the label says, but only here.
  [[nodiscard]] std::string remark_on_label(const Tile& tile) const {
    std::vector<std::uint8_t> stored(tile.rows.first % kGptqBlock + 1);
    unpack_zeros(tile, 0, stored);
    const bool as_stored = stored.back() == middle();
    if (as_stored == labelled_as_stored()) return {};
    return fmt::format(
        "its zero points are those of version {}, but its label says version {}: whoever trusts "
        "the label reads every weight one level off",
        as_stored ? 2 : 1, as_stored ? 1 : 2);
  }

  // The largest number is a zero that wrapped. Each is taken by itself here; a writer that
  // subtracts whole words borrows from the one above it in the word, and nothing stored tells which
  // it was.
  [[nodiscard]] std::string remark_on_wrapping(const Tile& tile) const {
    const bool shares_words = word_bits_ % layout().bits == 0 && word_bits_ > layout().bits;
    if (labelled_as_stored() || !shares_words) return {};
    const std::uint64_t skipped = tile.rows.first % kGptqBlock;
    std::vector<std::uint8_t> stored(skipped + tile.rows.count);
    for (std::uint64_t g = 0; g < groups(); ++g) {
      unpack_zeros(tile, g, stored);
      const auto own = std::span(stored).subspan(skipped);
      if (std::ranges::find(own, 2 * middle() - 1) == own.end()) continue;
      return "some of its zero points are 0, which version 1 stores as the largest number: after a "
             "writer that subtracts whole words, the output that follows each is read one level "
             "too high";
    }
    return {};
  }

  // Of one group, from the start of the block that the first row of the tile lies in.
  void unpack_zeros(const Tile& tile, std::uint64_t group, std::span<std::uint8_t> out) const {
    const std::uint64_t bytes = zero_words(tile.rows).count * word_bits_ / 8;
    unpack(bytes_of(tile, Companion::kZeroPoint).subspan(group * bytes, bytes), out);
  }

  // Whole blocks of zero points, as far as they are stored.
  [[nodiscard]] RowRange zero_words(RowRange rows) const {
    const std::uint64_t block = kGptqBlock * layout().bits / word_bits_;
    const std::uint64_t first = rows.first / kGptqBlock * block;
    const std::uint64_t end = ceil_div(rows.end(), kGptqBlock) * block;
    const std::uint64_t stored = spec().find(Companion::kZeroPoint)->shape[1];
    return {.first = first, .count = std::min(end, stored) - first};
  }

  Status load_zeros(const Tile& tile, RowRange rows, std::vector<std::int16_t>& out) const {
    const std::uint64_t skipped = rows.first - tile.rows.first / kGptqBlock * kGptqBlock;
    std::vector<std::uint8_t> stored(skipped + rows.count);
    int constant = 0;
    out.resize(rows.count * groups());
    for (std::uint64_t g = 0; g < groups(); ++g) {
      unpack_zeros(tile, g, stored);
      if (g == 0) constant = stored[skipped];
      for (std::uint64_t row = 0; row < rows.count; ++row) {
        const std::optional<int> zero = zero_point(stored[skipped + row], constant);
        if (!zero) return reject_zero(rows.first + row, g, stored[skipped + row]);
        out[row * groups() + g] = static_cast<std::int16_t>(*zero - middle());
      }
    }
    return {};
  }

  // Symmetric weights know only one zero point, so there the number tells whether it was stored
  // less one, whatever the label says, as long as it is the same everywhere. Otherwise version 1
  // cannot mean 2^bits: the largest number is a zero that wrapped.
  [[nodiscard]] std::optional<int> zero_point(int stored, int constant) const {
    if (spec().symmetric == true) {
      if (stored != constant || (stored != middle() && stored != middle() - 1)) return std::nullopt;
      return middle();
    }
    if (labelled_as_stored()) return stored;
    return (stored + 1) % (2 * middle());
  }

  [[nodiscard]] bool labelled_as_stored() const {
    return planar_ || spec().gptq_zeros == WeightSpec::GptqZeros::kAsStored;
  }

  [[nodiscard]] Status reject_zero(std::uint64_t row, std::uint64_t group, int stored) const {
    return corrupt(spec(), fmt::format("its zero point of row {}, group {} is stored as {}, but it "
                                       "is symmetric: expected {} everywhere, or {}",
                                       row, group, stored, middle() - 1, middle()));
  }

  bool planar_;
  std::uint64_t word_bits_;
};

}  // namespace

DecoderResult make_gptq_decoder(WeightSpec spec) {
  GRIDSCOPE_TRY(const GptqShape shape, solve_shape(spec));
  GRIDSCOPE_TRY(WeightLayout layout, make_layout(spec, shape));
  return std::make_unique<GptqDecoder>(std::move(spec), std::move(layout));
}

}  // namespace gridscope::quant
