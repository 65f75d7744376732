#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "decoders.hpp"
#include "gridscope/core/checked.hpp"
#include "gridscope/core/json.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/quant/codec.hpp"
#include "spec_checks.hpp"
#include "stored_numbers.hpp"

// bitsandbytes NF4 and FP4: codes of a table that is stored along, the high nibble first, in blocks
// that run over the flattened weight without regard to rows. The bytes may be labelled with any
// type. The largest magnitudes of the blocks may be quantized themselves ("double quantization"):
// then they are restored in 32-bit floats, as the library does it.

namespace gridscope::quant {
namespace {

constexpr std::size_t kCodes = 16;
constexpr std::uint64_t kLargestBlock = 65536;  // the library's own limit is 4,096

struct QuantState {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t block = 0;
  std::uint64_t nested_block = 0;  // 0: not nested
  double nested_offset = 0.0;
};

// ---- the quant state ----------------------------------------------------------------------------

tl::unexpected<Error> bad_state(const WeightSpec& spec, std::string_view key) {
  return corrupt(spec, fmt::format("its quantization state has no usable {}", quote(key)));
}

Result<std::uint64_t> read_count(const WeightSpec& spec, const JsonValue& state,
                                 std::string_view key) {
  const JsonValue* const value = state.find(key);
  if (value == nullptr || value->unsigned_integer() == nullptr || *value->unsigned_integer() == 0) {
    return bad_state(spec, key);
  }
  return *value->unsigned_integer();
}

Status check_type(const WeightSpec& spec, const JsonValue& state) {
  const JsonValue* const type = state.find("quant_type");
  if (type == nullptr || type->string() == nullptr) return bad_state(spec, "quant_type");
  const std::string_view expected = spec.scheme == Scheme::kBnbFp4 ? "fp4" : "nf4";
  if (*type->string() == expected) return {};
  return corrupt(spec, fmt::format("its quantization state says {}, expected {}",
                                   quote(*type->string()), quote(expected)));
}

// Rows are all dimensions but the last.
Status read_shape(const WeightSpec& spec, const JsonValue& json, QuantState& state) {
  const JsonValue* const shape = json.find("shape");
  if (shape == nullptr || shape->array() == nullptr || shape->array()->empty()) {
    return bad_state(spec, "shape");
  }
  state.rows = 1;
  state.columns = 1;
  for (const JsonValue& dimension : *shape->array()) {
    const std::uint64_t* const size = dimension.unsigned_integer();
    const auto rows = checked_mul(state.rows, state.columns);
    if (size == nullptr || *size == 0 || !rows || !checked_mul(*rows, *size)) {
      return bad_state(spec, "shape");
    }
    state.rows = *rows;
    state.columns = *size;
  }
  return {};
}

// Numbers of JSON, whole or not.
std::optional<double> number_of(const JsonValue& value) {
  if (value.real() != nullptr) return *value.real();
  if (value.unsigned_integer() != nullptr) return static_cast<double>(*value.unsigned_integer());
  if (value.negative_integer() != nullptr) return static_cast<double>(*value.negative_integer());
  return std::nullopt;
}

Status read_nesting(const WeightSpec& spec, const JsonValue& json, QuantState& state) {
  GRIDSCOPE_TRY(state.nested_block, read_count(spec, json, "nested_blocksize"));
  const JsonValue* const offset = json.find("nested_offset");
  const std::optional<double> number = offset == nullptr ? std::nullopt : number_of(*offset);
  if (!number || !std::isfinite(*number)) return bad_state(spec, "nested_offset");
  state.nested_offset = *number;
  return {};
}

Result<QuantState> read_state(const WeightSpec& spec) {
  GRIDSCOPE_TRY(const StoredTensor* const stored,
                require(spec, Companion::kQuantState, {Dtype::kU8}));
  const std::string_view text(reinterpret_cast<const char*>(stored->data.data()),
                              stored->data.size());
  auto json = parse_json(text);
  if (!json) return corrupt(spec, with_context(json.error(), "its quantization state").message);
  GRIDSCOPE_CHECK(check_type(spec, *json));
  QuantState state;
  GRIDSCOPE_CHECK(read_shape(spec, *json, state));
  GRIDSCOPE_TRY(state.block, read_count(spec, *json, "blocksize"));
  if (state.block > kLargestBlock) return bad_state(spec, "blocksize");
  if (spec.find(Companion::kNestedScale) != nullptr) {
    GRIDSCOPE_CHECK(read_nesting(spec, *json, state));
  }
  return state;
}

// ---- tables -------------------------------------------------------------------------------------

struct CodeTable {
  std::array<double, kCodes> values = {};
  std::array<std::int16_t, kCodes> levels = {};  // rank of the value, equal values share one
  std::int16_t highest = 0;
};

Result<std::vector<double>> read_map(const WeightSpec& spec, Companion companion,
                                     std::size_t size) {
  GRIDSCOPE_TRY(std::vector<double> map, whole_numbers(spec, companion, {Dtype::kF32}));
  if (map.size() != size) {
    return corrupt(spec, fmt::format("its {} has {} values, expected {}", companion_name(companion),
                                     map.size(), size));
  }
  GRIDSCOPE_CHECK(check_finite(spec, companion, {.first = 0, .count = 1}, map));
  return map;
}

Result<CodeTable> read_code_table(const WeightSpec& spec) {
  GRIDSCOPE_TRY(const std::vector<double> map, read_map(spec, Companion::kQuantMap, kCodes));
  std::vector<double> ranks = map;
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  CodeTable table;
  std::ranges::copy(map, table.values.begin());
  std::ranges::transform(map, table.levels.begin(), [&](double value) {
    return static_cast<std::int16_t>(std::ranges::lower_bound(ranks, value) - ranks.begin());
  });
  table.highest = static_cast<std::int16_t>(ranks.size() - 1);
  return table;
}

struct NestedScales {
  std::vector<double> map;     // of the codes of scales
  std::vector<double> scales;  // of blocks of those
};

Result<NestedScales> read_nested(const WeightSpec& spec, const QuantState& state,
                                 std::uint64_t blocks) {
  NestedScales nested;
  if (state.nested_block == 0) return nested;
  GRIDSCOPE_TRY(nested.map, read_map(spec, Companion::kNestedQuantMap, 256));
  GRIDSCOPE_TRY(nested.scales, whole_numbers(spec, Companion::kNestedScale, {Dtype::kF32}));
  const std::uint64_t expected = ceil_div(blocks, state.nested_block);
  if (nested.scales.size() != expected) {
    return corrupt(spec, fmt::format("its nested scale has {} values, expected {}",
                                     nested.scales.size(), expected));
  }
  GRIDSCOPE_CHECK(
      check_finite(spec, Companion::kNestedScale, {.first = 0, .count = 1}, nested.scales));
  return nested;
}

// ---- decoding -----------------------------------------------------------------------------------

struct BnbParts {
  WeightSpec spec;
  QuantState state;
  WeightLayout layout;
  CodeTable table;
  NestedScales nested;
};

class BnbDecoder final : public WeightDecoder {
 public:
  explicit BnbDecoder(BnbParts parts) : parts_(std::move(parts)) {}

  [[nodiscard]] const WeightLayout& layout() const override { return parts_.layout; }

  [[nodiscard]] TileNeeds needs(RowRange rows) const override {
    TileNeeds needs;
    const std::uint64_t number_bytes = parts_.state.nested_block == 0 ? sizeof(float) : 1;
    strips_of(needs, Companion::kCodes) = strip_of(bytes_of_rows(rows), 1);
    strips_of(needs, Companion::kScale) = strip_of(blocks_of(rows), number_bytes);
    return needs;
  }

  [[nodiscard]] Status decode(const Tile& tile, RowRange rows, RowBlock& out) const override {
    const std::uint64_t columns = parts_.layout.columns;
    out.first_row = rows.first;
    out.rows = rows.count;
    out.columns = columns;
    out.stride = parts_.layout.groups.stride();
    out.zeros.clear();
    out.values.resize(rows.count * columns);
    out.levels.resize(rows.count * columns);
    out.scales.assign(rows.count * out.stride, 0.0);
    const std::vector<double> scales = load_scales(tile, rows);
    for (std::uint64_t row = 0; row < rows.count; ++row) {
      const std::uint64_t first_block = (rows.first + row) * columns / parts_.state.block;
      const auto row_scales = std::span(scales).subspan(first_block - blocks_of(rows).first);
      const std::uint64_t groups = parts_.layout.groups.groups(rows.first + row);
      std::ranges::copy(row_scales.first(groups), &out.scales[row * out.stride]);
      fill_row(tile, row, out);
    }
    return check_finite(parts_.spec, Companion::kScale, rows, out.scales);
  }

 private:
  static Strips strip_of(RowRange range, std::uint64_t bytes) {
    const std::uint64_t length = range.count * bytes;
    return {.offset = range.first * bytes, .length = length, .stride = length, .count = 1};
  }

  // What holds the elements of some rows where each piece holds `size` of them.
  [[nodiscard]] RowRange pieces_of(RowRange rows, std::uint64_t size) const {
    const std::uint64_t first = rows.first * parts_.layout.columns / size;
    return {.first = first, .count = ceil_div(rows.end() * parts_.layout.columns, size) - first};
  }
  [[nodiscard]] RowRange bytes_of_rows(RowRange rows) const { return pieces_of(rows, 2); }
  [[nodiscard]] RowRange blocks_of(RowRange rows) const {
    return pieces_of(rows, parts_.state.block);
  }

  // Of all blocks that the rows touch.
  [[nodiscard]] std::vector<double> load_scales(const Tile& tile, RowRange rows) const {
    const RowRange blocks = blocks_of(rows);
    std::vector<double> scales(blocks.count);
    TileNumbers numbers = numbers_of(parts_.spec, tile, Companion::kScale);
    numbers.rows = blocks_of(tile.rows);
    load_rows(numbers, 1, blocks, scales);
    if (parts_.state.nested_block == 0) return scales;
    for (std::uint64_t i = 0; i < blocks.count; ++i) {
      const double code = parts_.nested.map[static_cast<std::size_t>(scales[i])];
      const double scale = parts_.nested.scales[(blocks.first + i) / parts_.state.nested_block];
      const double product = rounded_to(Dtype::kF32, code * scale);
      const double offset = rounded_to(Dtype::kF32, parts_.state.nested_offset);
      scales[i] = rounded_to(Dtype::kF32, product + offset);
    }
    return scales;
  }

  void fill_row(const Tile& tile, std::uint64_t row, RowBlock& out) const {
    const auto bytes = bytes_of(tile, Companion::kCodes);
    const std::uint64_t number = out.first_row + row;
    const std::uint64_t first = number * out.columns - 2 * bytes_of_rows(tile.rows).first;
    for (std::uint64_t g = 0; g < parts_.layout.groups.groups(number); ++g) {
      const double scale = out.scales[row * out.stride + g];
      const RowRange columns = parts_.layout.groups.positions(number, g);
      for (std::uint64_t k = columns.first; k < columns.end(); ++k) {
        const auto byte = std::to_integer<unsigned>(bytes[(first + k) / 2]);
        const unsigned code = (first + k) % 2 == 0 ? byte >> 4U : byte & 0xfU;
        out.levels[row * out.columns + k] = parts_.table.levels[code];
        out.values[row * out.columns + k] = parts_.table.values[code] * scale;
      }
    }
  }

  BnbParts parts_;
};

// The codes may be stored as numbers of any type: only their bytes count.
Status check_sizes(const WeightSpec& spec, const QuantState& state) {
  const StoredTensor& codes = *spec.find(Companion::kCodes);
  const StoredTensor& scale = *spec.find(Companion::kScale);
  const std::uint64_t weights = state.rows * state.columns;
  const std::uint64_t element = dtype_info(codes.dtype).block_bits / 8;
  if (element == 0 || elements_of(codes) != ceil_div(ceil_div(weights, 2), element)) {
    return corrupt(spec, fmt::format("its codes {} do not hold the {} x {} weights of its "
                                     "quantization state",
                                     shape_text(codes), state.rows, state.columns));
  }
  const std::uint64_t blocks = ceil_div(weights, state.block);
  if (elements_of(scale) != blocks) {
    return corrupt(spec, fmt::format("its scale {} has not one number for each of {} blocks of {}",
                                     shape_text(scale), blocks, state.block));
  }
  return {};
}

WeightLayout layout_of(const QuantState& state, const CodeTable& table) {
  return {.rows = state.rows,
          .columns = state.columns,
          .groups = GroupLayout::regular(state.columns, state.block, state.columns % state.block),
          .bits = 4,
          .lowest_level = 0,
          .highest_level = table.highest,
          .scale_dtype = state.nested_block == 0 ? Dtype::kF32 : Dtype::kU8,
          .remarks = {}};
}

}  // namespace

DecoderResult make_bnb_decoder(WeightSpec spec) {
  GRIDSCOPE_CHECK(require(spec, Companion::kCodes).map([](auto*) {}));
  GRIDSCOPE_TRY(const QuantState state, read_state(spec));
  const Dtype scale_type = state.nested_block == 0 ? Dtype::kF32 : Dtype::kU8;
  GRIDSCOPE_CHECK(require(spec, Companion::kScale, {scale_type}).map([](auto*) {}));
  GRIDSCOPE_CHECK(check_sizes(spec, state));
  GRIDSCOPE_TRY(const CodeTable table, read_code_table(spec));
  const std::uint64_t blocks = ceil_div(state.rows * state.columns, state.block);
  GRIDSCOPE_TRY(NestedScales nested, read_nested(spec, state, blocks));
  return std::make_unique<BnbDecoder>(BnbParts{.spec = std::move(spec),
                                               .state = state,
                                               .layout = layout_of(state, table),
                                               .table = table,
                                               .nested = std::move(nested)});
}

}  // namespace gridscope::quant
