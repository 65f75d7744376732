#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "decoders.hpp"
#include "gridscope/quant/codec.hpp"
#include "round_to_odd.hpp"
#include "spec_checks.hpp"
#include "stored_numbers.hpp"

// Floating codes with a scale for 16 or 32 neighbours of a row: E2M1, two to a byte with the even
// column in the low nibble, or E4M3 bytes. All of these formats lay them out alike, whatever the
// words they are called (bytes, blocks of 16 bytes, U32), and differ in the type of the scale and
// in the scale of the whole weight, which is a factor, a divisor or both:
//
//   value = code * scale * factor / divisor
//
// The product is exact in a double; the quotient is rounded once, and too far from any midpoint of
// a 32-bit float to be rounded wrongly afterwards.

namespace gridscope::quant {
namespace {

// What NVFP4 writers divide by the largest magnitude: the largest E2M1 times the largest E4M3.
constexpr double kNvfp4Range = 6.0 * 448.0;

struct Fp4Format {
  std::uint32_t bits = 4;
  std::uint64_t group_size = 32;
  Dtype scale_type = Dtype::kF8E8M0;  // what its bytes mean
  WeightSpec::ScaleUse global_use = WeightSpec::ScaleUse::kMultiply;
  double divisor = 1.0;
};

// ---- codes --------------------------------------------------------------------------------------

struct CodeTable {
  std::array<double, 256> values = {};
  std::array<std::int16_t, 256> levels = {};  // sign and magnitude as one number
};

template <typename Value>
CodeTable make_table(unsigned sign, Value value) {
  CodeTable table;
  for (unsigned code = 0; code < 2 * sign; ++code) {
    const auto magnitude = static_cast<int>(code & (sign - 1));
    table.values[code] = value(static_cast<std::uint8_t>(code));
    table.levels[code] = static_cast<std::int16_t>((code & sign) != 0 ? -magnitude : magnitude);
  }
  return table;
}

const CodeTable& table_of(std::uint32_t bits) {
  static const CodeTable kE2m1 = make_table(0x8, e2m1_value);
  static const CodeTable kE4m3 = make_table(0x80, f8_e4m3_value);
  return bits == 4 ? kE2m1 : kE4m3;
}

// ---- decoding -----------------------------------------------------------------------------------

struct Fp4Parts {
  WeightSpec spec;
  Fp4Format format;
  WeightLayout layout;
  std::vector<double> globals;  // of the weight, or of each matrix in a stack; empty: 1
  std::vector<double> column_factors;
};

class Fp4Decoder final : public WeightDecoder {
 public:
  explicit Fp4Decoder(Fp4Parts parts) : parts_(std::move(parts)) {}

  [[nodiscard]] const WeightLayout& layout() const override { return parts_.layout; }

  [[nodiscard]] TileNeeds needs(RowRange rows) const override {
    TileNeeds needs;
    strips_of(needs, Companion::kCodes) = strip_of(rows, code_row_bytes());
    strips_of(needs, Companion::kScale) = strip_of(rows, groups());
    return needs;
  }

  [[nodiscard]] Status decode(const Tile& tile, RowRange rows, RowBlock& out) const override {
    const std::uint64_t columns = parts_.layout.columns;
    out.first_row = rows.first;
    out.rows = rows.count;
    out.columns = columns;
    out.stride = groups();
    out.zeros.clear();
    out.scales.resize(rows.count * groups());
    out.levels.resize(rows.count * columns);
    out.values.resize(rows.count * columns);
    load_rows({.dtype = parts_.format.scale_type,
               .bytes = bytes_of(tile, Companion::kScale),
               .rows = tile.rows},
              groups(), rows, out.scales);
    GRIDSCOPE_CHECK(check_finite(parts_.spec, Companion::kScale, rows, out.scales));
    for (std::uint64_t row = 0; row < rows.count; ++row) {
      const std::uint64_t first = (rows.first + row - tile.rows.first) * code_row_bytes();
      fill_row(bytes_of(tile, Companion::kCodes).subspan(first, code_row_bytes()), row, out);
    }
    return {};
  }

 private:
  static Strips strip_of(RowRange rows, std::uint64_t row_bytes) {
    const std::uint64_t length = rows.count * row_bytes;
    return {.offset = rows.first * row_bytes, .length = length, .stride = length, .count = 1};
  }

  [[nodiscard]] std::uint64_t code_row_bytes() const {
    return parts_.layout.columns * parts_.format.bits / 8;
  }
  [[nodiscard]] std::uint64_t groups() const { return parts_.layout.groups.stride(); }

  [[nodiscard]] double global_of(std::uint64_t row) const {
    if (parts_.globals.empty()) return 1.0;
    return parts_.globals[row / (parts_.layout.rows / parts_.globals.size())];
  }

  // Requires: out.scales as stored; they become steps.
  void fill_row(std::span<const std::byte> bytes, std::uint64_t row, RowBlock& out) const {
    const bool divides = parts_.format.global_use == WeightSpec::ScaleUse::kDivide;
    const double global = global_of(out.first_row + row);
    const double factor = divides ? 1.0 : global;
    const double divisor = divides ? global : parts_.format.divisor;
    const CodeTable& table = table_of(parts_.format.bits);
    const bool pairs = parts_.format.bits == 4;
    for (std::uint64_t g = 0; g < groups(); ++g) {
      double& scale = out.scales[row * groups() + g];
      const std::uint64_t size = parts_.format.group_size;
      for (std::uint64_t k = g * size; k < (g + 1) * size; ++k) {
        const auto byte = std::to_integer<unsigned>(bytes[pairs ? k / 2 : k]);
        const unsigned code = pairs ? byte >> (k % 2 * 4) & 0xfU : byte;
        const std::uint64_t at = row * out.columns + k;
        out.levels[at] = table.levels[code];
        out.values[at] = times_column(table.values[code] * scale * factor / divisor, k);
      }
      scale = scale * factor / divisor;
    }
  }

  [[nodiscard]] double times_column(double value, std::uint64_t column) const {
    if (parts_.column_factors.empty()) return value;
    return product_to_odd(value, parts_.column_factors[column]);
  }

  Fp4Parts parts_;
};

// ---- formats ------------------------------------------------------------------------------------

constexpr Fp4Format kMxfp4 = {};
constexpr Fp4Format kMxfp8 = {.bits = 8};
constexpr Fp4Format kNvfp4 = {.group_size = 16, .scale_type = Dtype::kF8E4M3};

// MLX does not say its mode in the tensors, but the bits that share a scale do.
Result<Fp4Format> mlx_format(const WeightSpec& spec) {
  const StoredTensor& words = *spec.find(Companion::kCodes);
  const StoredTensor& scale = *spec.find(Companion::kScale);
  const std::uint64_t groups = columns_of(scale);
  for (const Fp4Format& format : {kMxfp4, kMxfp8, kNvfp4}) {
    if (columns_of(words) * 32 != groups * format.group_size * format.bits) continue;
    Fp4Format found = format;
    if (spec.find(Companion::kGlobalScale) != nullptr) found.divisor = kNvfp4Range;
    return found;
  }
  return corrupt(spec, fmt::format("its codes {} and scales {} are of no known mode",
                                   shape_text(words), shape_text(scale)));
}

Result<Fp4Format> format_of(const WeightSpec& spec) {
  switch (spec.scheme) {
    case Scheme::kCtNvfp4: {
      Fp4Format format = kNvfp4;
      format.global_use = WeightSpec::ScaleUse::kDivide;
      return format;
    }
    case Scheme::kModelOptNvfp4:
      return kNvfp4;
    case Scheme::kMlxFp:
      return mlx_format(spec);
    default:
      return kMxfp4;
  }
}

std::initializer_list<Dtype> code_types(Scheme scheme) {
  static constexpr std::initializer_list<Dtype> kBytes = {Dtype::kU8};
  static constexpr std::initializer_list<Dtype> kSigned = {Dtype::kI8, Dtype::kU8};
  static constexpr std::initializer_list<Dtype> kWords = {Dtype::kU32};
  if (scheme == Scheme::kPackedFp4) return kSigned;
  return scheme == Scheme::kMlxFp ? kWords : kBytes;
}

std::initializer_list<Dtype> scale_types(Scheme scheme) {
  static constexpr std::initializer_list<Dtype> kE4m3 = {Dtype::kF8E4M3};
  static constexpr std::initializer_list<Dtype> kE8m0 = {Dtype::kU8, Dtype::kF8E8M0};
  static constexpr std::initializer_list<Dtype> kBytes = {Dtype::kU8};
  if (scheme == Scheme::kCtNvfp4 || scheme == Scheme::kModelOptNvfp4) return kE4m3;
  return scheme == Scheme::kMlxFp ? kBytes : kE8m0;
}

// A row of gpt-oss blocks is two dimensions: [groups, 16].
std::vector<std::uint64_t> row_shape(const WeightSpec& spec, const StoredTensor& codes) {
  std::vector<std::uint64_t> shape = codes.shape;
  if (spec.scheme == Scheme::kGptOssMxfp4 && shape.size() > 1 && shape.back() == 16) {
    shape.pop_back();
    shape.back() *= 16;
  }
  return shape;
}

struct Fp4Shape {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t matrices = 1;
};

// Codes and scales have the same dimensions but for the last, whose groups must be full.
Result<Fp4Shape> solve_shape(const WeightSpec& spec, const Fp4Format& format) {
  const StoredTensor& codes = *spec.find(Companion::kCodes);
  const StoredTensor& scale = *spec.find(Companion::kScale);
  const std::vector<std::uint64_t> shape = row_shape(spec, codes);
  const std::uint64_t element_bits = dtype_info(codes.dtype).block_bits;
  const auto mismatch = [&] {
    return corrupt(spec, fmt::format("its codes {} do not fit its scales {}: one for {} weights "
                                     "was expected",
                                     shape_text(codes), shape_text(scale), format.group_size));
  };
  if (shape.size() < 2 || scale.shape.size() != shape.size()) return mismatch();
  if (!std::equal(shape.begin(), shape.end() - 1, scale.shape.begin())) return mismatch();
  const std::uint64_t row_bits = shape.back() * element_bits;
  if (row_bits != columns_of(scale) * format.group_size * format.bits) return mismatch();
  if (elements_of(scale) == 0) return corrupt(spec, "it holds no weights");
  return Fp4Shape{.rows = rows_of(scale),
                  .columns = row_bits / format.bits,
                  .matrices = shape.size() > 2 ? shape.front() : 1};
}

// The scale of the whole weight, or of each matrix of a stack.
Result<std::vector<double>> read_globals(const WeightSpec& spec, const Fp4Shape& shape) {
  const bool needed = spec.scheme == Scheme::kCtNvfp4 || spec.scheme == Scheme::kModelOptNvfp4;
  if (!needed && spec.find(Companion::kGlobalScale) == nullptr) return std::vector<double>{};
  GRIDSCOPE_TRY(std::vector<double> globals,
                whole_numbers(spec, Companion::kGlobalScale, {Dtype::kF32, Dtype::kBF16}));
  if (globals.size() > shape.matrices && globals.size() % shape.matrices == 0) {
    return unsupported(spec, fmt::format("it has {} global scales for a matrix, and nothing tells "
                                         "which rows each is for",
                                         globals.size() / shape.matrices));
  }
  if (globals.size() != 1 && globals.size() != shape.matrices) {
    return corrupt(spec, fmt::format("its global scale has {} numbers, expected {}", globals.size(),
                                     shape.matrices));
  }
  for (const double global : globals) {
    if (std::isfinite(global) && (global != 0.0 || spec.scheme != Scheme::kCtNvfp4)) continue;
    return corrupt(spec, fmt::format("its global scale is {}", global));
  }
  return globals;
}

Status check_types(const WeightSpec& spec) {
  const StoredTensor* const scale = spec.find(Companion::kScale);
  if (spec.scheme == Scheme::kModelOptNvfp4 && scale != nullptr && scale->dtype == Dtype::kU8 &&
      scale->shape.size() == 1) {
    return unsupported(spec, "its scales are in the swizzled order of TensorRT-LLM");
  }
  GRIDSCOPE_CHECK(require(spec, Companion::kCodes, code_types(spec.scheme)).map([](auto*) {}));
  return require(spec, Companion::kScale, scale_types(spec.scheme)).map([](auto*) {});
}

WeightLayout layout_of(const Fp4Format& format, const Fp4Shape& shape) {
  // 0x7e, the largest of E4M3, as a level; 7 of E2M1.
  const std::int16_t highest = format.bits == 4 ? 7 : 126;
  return {.rows = shape.rows,
          .columns = shape.columns,
          .groups = GroupLayout::regular(shape.columns, format.group_size),
          .bits = format.bits,
          .lowest_level = static_cast<std::int16_t>(-highest),
          .highest_level = highest,
          .scale_dtype = format.scale_type,
          .remarks = {}};
}

}  // namespace

DecoderResult make_fp4_decoder(WeightSpec spec) {
  GRIDSCOPE_CHECK(check_types(spec));
  GRIDSCOPE_TRY(const Fp4Format format, format_of(spec));
  GRIDSCOPE_TRY(const Fp4Shape shape, solve_shape(spec, format));
  GRIDSCOPE_TRY(std::vector<double> globals, read_globals(spec, shape));
  GRIDSCOPE_TRY(std::vector<double> factors, column_factors(spec, shape.columns));
  return std::make_unique<Fp4Decoder>(Fp4Parts{.spec = std::move(spec),
                                               .format = format,
                                               .layout = layout_of(format, shape),
                                               .globals = std::move(globals),
                                               .column_factors = std::move(factors)});
}

}  // namespace gridscope::quant
