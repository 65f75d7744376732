#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "decoders.hpp"
#include "gguf_blocks.hpp"
#include "integer_decoder.hpp"
#include "spec_checks.hpp"
#include "stored_numbers.hpp"

// Rows of blocks, one after the other, each with its codes and their factors: nothing is stored
// beside them but a scale of the whole weight that NVFP4 may have. Every product and sum is exact
// in a double: half floats times integers of ten bits at most, all multiples of 2^-24 below 2^27.

namespace gridscope::quant {
namespace {

// What both decoders know of their weight.
struct GgufRows {
  const BlockFormat* format = nullptr;
  std::uint64_t blocks = 0;  // of a row

  [[nodiscard]] std::uint64_t row_bytes() const { return blocks * format->bytes(); }

  [[nodiscard]] TileNeeds needs(RowRange rows) const {
    const std::uint64_t length = rows.count * row_bytes();
    TileNeeds needs;
    strips_of(needs, Companion::kCodes) =
        Strips{.offset = rows.first * row_bytes(), .length = length, .stride = length};
    return needs;
  }

  // The bytes from the first of `rows` on.
  [[nodiscard]] std::span<const std::byte> bytes(const Tile& tile, RowRange rows) const {
    return bytes_of(tile, Companion::kCodes).subspan((rows.first - tile.rows.first) * row_bytes());
  }

  [[nodiscard]] std::span<const std::byte> block(std::span<const std::byte> bytes,
                                                 std::uint64_t index) const {
    return bytes.subspan(index * format->bytes(), format->bytes());
  }
};

Status check_terms(const WeightSpec& spec, Companion term, std::span<const double> numbers,
                   std::uint64_t row, std::uint64_t block) {
  const auto odd =
      std::ranges::find_if(numbers, [](double number) { return !std::isfinite(number); });
  if (odd == numbers.end()) return {};
  return corrupt(spec, fmt::format("its {} of row {}, block {} is {}", companion_name(term), row,
                                   block, *odd));
}

// Scales of all groups, and their offsets where the type has them.
Status load_block_terms(const WeightSpec& spec, const GgufRows& layout, const Tile& tile,
                        RowRange rows, GroupTerms& out) {
  const std::uint64_t groups = layout.format->groups();
  const std::uint64_t blocks = rows.count * layout.blocks;
  const bool has_offsets = layout.format->values == CodeValues::kOffset;
  const auto bytes = layout.bytes(tile, rows);
  out.scales.resize(blocks * groups);
  out.offsets.resize(has_offsets ? blocks * groups : 0);
  BlockTerms terms;
  const auto scales = std::span<const double>(terms.scales).first(groups);
  const auto offsets = std::span<const double>(terms.offsets).first(has_offsets ? groups : 0);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    layout.format->load_terms(layout.block(bytes, i), terms);
    const std::uint64_t row = rows.first + i / layout.blocks;
    GRIDSCOPE_CHECK(check_terms(spec, Companion::kScale, scales, row, i % layout.blocks));
    GRIDSCOPE_CHECK(check_terms(spec, Companion::kOffset, offsets, row, i % layout.blocks));
    std::ranges::copy(scales, &out.scales[i * groups]);
    if (has_offsets) std::ranges::copy(offsets, &out.offsets[i * groups]);
  }
  return {};
}

// ---- evenly spaced levels -----------------------------------------------------------------------

// Four bits are brought into natural order, as kernels want them; others are taken from the blocks.
class GgufIntegerDecoder final : public IntegerDecoder {
 public:
  GgufIntegerDecoder(WeightSpec spec, WeightLayout layout, GgufRows rows)
      : IntegerDecoder(std::move(spec), std::move(layout)), rows_(rows) {}

  [[nodiscard]] TileNeeds needs(RowRange rows) const override { return rows_.needs(rows); }

 protected:
  void order_codes(const Tile& tile, RowRange rows, PackedRows& out) const override {
    const auto bytes = rows_.bytes(tile, rows);
    if (!has_nibbles()) {
      out.bytes = bytes;
      out.stride = rows_.row_bytes();
      return;
    }
    const std::uint64_t ordered = rows_.format->elements() / 2;
    out.stride = rows_.blocks * ordered;
    out.own.resize(rows.count * out.stride);
    for (std::uint64_t i = 0; i < rows.count * rows_.blocks; ++i) {
      order_nibbles(*rows_.format, rows_.block(bytes, i),
                    std::span(out.own).subspan(i * ordered, ordered));
    }
    out.bytes = out.own;
  }

  void unpack(std::span<const std::byte> row, std::span<std::uint8_t> codes) const override {
    if (has_nibbles()) return IntegerDecoder::unpack(row, codes);
    const std::uint64_t elements = rows_.format->elements();
    for (std::uint64_t i = 0; i < rows_.blocks; ++i) {
      load_codes(*rows_.format, rows_.block(row, i), codes.subspan(i * elements, elements));
    }
  }

  Status load_terms(const Tile& tile, RowRange rows, GroupTerms& out) const override {
    return load_block_terms(spec(), rows_, tile, rows, out);
  }

 private:
  [[nodiscard]] bool has_nibbles() const { return rows_.format->bits == 4; }

  GgufRows rows_;
};

// ---- levels from a table ------------------------------------------------------------------------

struct TableParts {
  WeightSpec spec;
  WeightLayout layout;
  GgufRows rows;
  std::vector<double> globals;  // of the weight, or of each matrix in a stack; empty: 1
};

class GgufTableDecoder final : public WeightDecoder {
 public:
  explicit GgufTableDecoder(TableParts parts) : parts_(std::move(parts)) {}

  [[nodiscard]] const WeightLayout& layout() const override { return parts_.layout; }

  [[nodiscard]] TileNeeds needs(RowRange rows) const override { return parts_.rows.needs(rows); }

  [[nodiscard]] Status decode(const Tile& tile, RowRange rows, RowBlock& out) const override {
    GroupTerms terms = {.scales = std::move(out.scales), .zeros = {}, .offsets = {}};
    GRIDSCOPE_CHECK(load_block_terms(parts_.spec, parts_.rows, tile, rows, terms));
    out.first_row = rows.first;
    out.rows = rows.count;
    out.columns = parts_.layout.columns;
    out.stride = parts_.layout.groups.stride();
    out.scales = std::move(terms.scales);
    out.zeros.clear();
    out.levels.resize(rows.count * out.columns);
    out.values.resize(rows.count * out.columns);
    for (std::uint64_t i = 0; i < out.scales.size(); ++i) {
      out.scales[i] *= global_of(rows.first + i / out.stride);
    }
    fill_values(parts_.rows.bytes(tile, rows), out);
    return {};
  }

 private:
  [[nodiscard]] double global_of(std::uint64_t row) const {
    if (parts_.globals.empty()) return 1.0;
    return parts_.globals[row / (parts_.layout.rows / parts_.globals.size())];
  }

  void fill_values(std::span<const std::byte> bytes, RowBlock& out) const {
    const BlockFormat& format = *parts_.rows.format;
    const CodeTable& table = code_table(format.values);
    std::vector<std::uint8_t> codes(format.elements());
    for (std::uint64_t i = 0; i < out.rows * parts_.rows.blocks; ++i) {
      load_codes(format, parts_.rows.block(bytes, i), codes);
      for (std::uint64_t k = 0; k < codes.size(); ++k) {
        const std::uint64_t at = i * codes.size() + k;
        out.levels[at] = table.levels[codes[k]];
        out.values[at] = table.values[codes[k]] * out.scales[at / format.group_size];
      }
    }
  }

  TableParts parts_;
};

// ---- making -------------------------------------------------------------------------------------

Result<const BlockFormat*> format_of(const WeightSpec& spec) {
  GRIDSCOPE_TRY(const StoredTensor* const codes, require(spec, Companion::kCodes));
  if (!is_block_type(codes->dtype)) {
    return corrupt(spec,
                   fmt::format("its codes are {}, expected a block type", shape_text(*codes)));
  }
  if (const BlockFormat* const format = find_block_format(codes->dtype)) return format;
  return unsupported(spec, fmt::format("type {} is recognised, but not decoded: {}",
                                       dtype_name(codes->dtype), undecoded_reason(codes->dtype)));
}

Result<GgufRows> rows_of_blocks(const WeightSpec& spec, const BlockFormat& format) {
  const StoredTensor& codes = *spec.find(Companion::kCodes);
  const std::uint64_t columns = columns_of(codes);
  if (elements_of(codes) == 0) return corrupt(spec, "it holds no weights");
  if (columns % format.elements() != 0) {
    return corrupt(spec, fmt::format("its rows of {} weights are no whole blocks of {}", columns,
                                     format.elements()));
  }
  return GgufRows{.format = &format, .blocks = columns / format.elements()};
}

// The scale of the whole weight, or of each matrix of a stack.
Result<std::vector<double>> read_globals(const WeightSpec& spec, std::uint64_t matrices) {
  if (spec.find(Companion::kGlobalScale) == nullptr) return std::vector<double>{};
  GRIDSCOPE_TRY(std::vector<double> globals,
                whole_numbers(spec, Companion::kGlobalScale, {Dtype::kF32}));
  if (globals.size() != 1 && globals.size() != matrices) {
    return corrupt(spec, fmt::format("its global scale has {} numbers, expected {}", globals.size(),
                                     matrices));
  }
  const auto odd =
      std::ranges::find_if(globals, [](double global) { return !std::isfinite(global); });
  if (odd == globals.end()) return globals;
  return corrupt(spec, fmt::format("its global scale is {}", *odd));
}

WeightLayout layout_of(const WeightSpec& spec, const BlockFormat& format) {
  const StoredTensor& codes = *spec.find(Companion::kCodes);
  WeightLayout layout =
      integer_layout(rows_of(codes), GroupLayout::regular(columns_of(codes), format.group_size),
                     format.bits, format.scale_type);
  layout.lowest_level = static_cast<std::int16_t>(-format.middle);
  layout.highest_level = static_cast<std::int16_t>((1 << format.bits) - 1 - format.middle);
  return layout;
}

bool has_table(const BlockFormat& format) {
  return format.values != CodeValues::kSigned && format.values != CodeValues::kOffset;
}

DecoderResult make_table_decoder(WeightSpec spec, GgufRows rows, WeightLayout layout) {
  const StoredTensor& codes = *spec.find(Companion::kCodes);
  const std::uint64_t matrices = codes.shape.size() > 2 ? codes.shape.front() : 1;
  GRIDSCOPE_TRY(std::vector<double> globals, read_globals(spec, matrices));
  const auto [lowest, highest] = std::ranges::minmax(code_table(rows.format->values).levels);
  layout.lowest_level = lowest;
  layout.highest_level = highest;
  return std::make_unique<GgufTableDecoder>(TableParts{.spec = std::move(spec),
                                                       .layout = std::move(layout),
                                                       .rows = rows,
                                                       .globals = std::move(globals)});
}

}  // namespace

DecoderResult make_gguf_decoder(WeightSpec spec) {
  GRIDSCOPE_TRY(const BlockFormat* const format, format_of(spec));
  GRIDSCOPE_TRY(const GgufRows rows, rows_of_blocks(spec, *format));
  WeightLayout layout = layout_of(spec, *format);
  if (has_table(*format)) return make_table_decoder(std::move(spec), rows, std::move(layout));
  return std::make_unique<GgufIntegerDecoder>(std::move(spec), std::move(layout), rows);
}

}  // namespace gridscope::quant
