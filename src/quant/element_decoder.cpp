#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "ct_groups.hpp"
#include "decoders.hpp"
#include "gridscope/core/endian.hpp"
#include "gridscope/quant/codec.hpp"
#include "scale_grid.hpp"
#include "spec_checks.hpp"
#include "stored_numbers.hpp"

// One code an element, an integer or a float of 8 bits, and a grid of scales. The families differ
// in nothing but which types they allow and what is done with the scale.

namespace gridscope::quant {
namespace {

constexpr std::initializer_list<Dtype> kBytes = {Dtype::kI8};
constexpr std::initializer_list<Dtype> kIntegers = {Dtype::kI8, Dtype::kI16};
constexpr std::initializer_list<Dtype> kFloats = {Dtype::kF8E4M3, Dtype::kF8E5M2,
                                                  Dtype::kF8E4M3Fnuz, Dtype::kF8E5M2Fnuz};
constexpr std::initializer_list<Dtype> kFloatScales = {Dtype::kF32, Dtype::kBF16, Dtype::kF16,
                                                       Dtype::kF8E8M0};
constexpr std::initializer_list<Dtype> kSingles = {Dtype::kF32};
constexpr std::initializer_list<Dtype> kExponents = {Dtype::kU8, Dtype::kF8E8M0};
constexpr std::int64_t kMxGroup = 32;
constexpr std::array<std::uint64_t, 2> kUsualBlock = {128, 128};
constexpr double kBnbInt8Range = 127.0;

// value = (code - zero) * factor / divisor.
struct Factor {
  double factor = 1.0;
  double divisor = 1.0;
};

// Which types a scheme allows.
struct Family {
  std::initializer_list<Dtype> codes;
  std::initializer_list<Dtype> scales;
};

Family family_of(Scheme scheme) {
  switch (scheme) {
    case Scheme::kCtInt:
    case Scheme::kModelOptInt8:
      return {.codes = kIntegers, .scales = kScaleTypes};
    case Scheme::kBnbInt8:
      return {.codes = kBytes, .scales = kSingles};
    case Scheme::kCtMxfp8:
      return {.codes = kFloats, .scales = kExponents};
    default:
      return {.codes = kFloats, .scales = kFloatScales};
  }
}

bool is_integer(Dtype dtype) {
  return dtype == Dtype::kI8 || dtype == Dtype::kI16;
}

// ---- levels -------------------------------------------------------------------------------------

using LevelTable = std::array<std::int16_t, 256>;
constexpr std::int16_t kNotFinite = std::numeric_limits<std::int16_t>::max();

// Without its sign the code of a float is already in the order of the values; both zeros are 0.
LevelTable float_levels(Dtype dtype) {
  LevelTable levels = {};
  for (int code = 0; code < 256; ++code) {
    const std::array<std::byte, 1> stored = {static_cast<std::byte>(code)};
    std::array<double, 1> value = {};
    load_numbers(dtype, stored, value);
    const int level = code < 128 ? code : 128 - code;
    levels.at(static_cast<std::size_t>(code)) =
        std::isfinite(value[0]) ? static_cast<std::int16_t>(level) : kNotFinite;
  }
  return levels;
}

std::int16_t highest_level(const LevelTable& levels) {
  std::int16_t highest = 0;
  for (const std::int16_t level : levels) {
    if (level != kNotFinite) highest = std::max(highest, level);
  }
  return highest;
}

Result<std::uint32_t> solve_bits(const WeightSpec& spec, Dtype dtype) {
  const std::uint32_t stored = dtype_info(dtype).block_bits;
  if (!is_integer(dtype) || spec.bits == 0) return stored;
  if (spec.bits > stored) {
    return corrupt(
        spec, fmt::format("it claims {} bits, but its codes are {}", spec.bits, dtype_name(dtype)));
  }
  return spec.bits;
}

// ---- the parts ----------------------------------------------------------------------------------

struct ElementParts {
  Dtype code_dtype = Dtype::kI8;
  Dtype scale_dtype = Dtype::kF32;  // as it is to be read: exponents may be stored as U8
  ScaleGrid scales = {};
  bool has_zeros = false;
  ScaleGrid zeros = {};
  LevelTable levels = {};  // of floats
  std::vector<double> column_factors = {};
};

Result<ScaleGrid> solve_zeros(const WeightSpec& spec, const MatrixStack& weight,
                              const ScaleGrid& scales) {
  GRIDSCOPE_CHECK(require(spec, Companion::kZeroPoint, kIntegers).map([](auto*) {}));
  GRIDSCOPE_TRY(ScaleGrid zeros, ScaleGrid::solve(spec, weight, Companion::kZeroPoint));
  if (zeros.group_size() == scales.group_size()) return zeros;
  return corrupt(spec, fmt::format("its zero points are for {} columns, its scales for {}",
                                   zeros.group_size(), scales.group_size()));
}

Status check_bnb_format(const WeightSpec& spec) {
  if (spec.scheme != Scheme::kBnbInt8 || spec.find(Companion::kWeightFormat) == nullptr) return {};
  GRIDSCOPE_TRY(const std::vector<double> format,
                whole_numbers(spec, Companion::kWeightFormat, {Dtype::kU8}));
  if (format.size() == 1 && format.front() == 0.0) return {};
  return unsupported(spec, "its rows are permuted for one GPU kernel (weight_format is not 0)");
}

Result<ElementParts> solve_parts(const WeightSpec& spec, const MatrixStack& weight) {
  const Family family = family_of(spec.scheme);
  GRIDSCOPE_TRY(const StoredTensor* const scale, require(spec, Companion::kScale, family.scales));
  const bool exponents = scale->dtype == Dtype::kU8;
  ElementParts parts = {.code_dtype = spec.find(Companion::kCodes)->dtype,
                        .scale_dtype = exponents ? Dtype::kF8E8M0 : scale->dtype};
  GRIDSCOPE_TRY(parts.scales, ScaleGrid::solve(spec, weight, Companion::kScale));
  parts.has_zeros = spec.symmetric == false || spec.find(Companion::kZeroPoint) != nullptr;
  if (parts.has_zeros) {
    GRIDSCOPE_TRY(parts.zeros, solve_zeros(spec, weight, parts.scales));
  }
  if (!is_integer(parts.code_dtype)) parts.levels = float_levels(parts.code_dtype);
  GRIDSCOPE_TRY(parts.column_factors, column_factors(spec, weight.columns));
  return parts;
}

Result<WeightLayout> solve_layout(const WeightSpec& spec, const MatrixStack& weight,
                                  const ElementParts& parts) {
  GRIDSCOPE_TRY(const std::uint32_t bits, solve_bits(spec, parts.code_dtype));
  GRIDSCOPE_TRY(CtGroups groups, solve_ct_groups(spec, weight.columns, parts.scales.group_size()));
  const int middle = 1 << (bits - 1);
  const bool integer = is_integer(parts.code_dtype);
  const int highest = integer ? middle - 1 : highest_level(parts.levels);
  WeightLayout layout = {.rows = weight.total_rows(),
                         .columns = weight.columns,
                         .groups = std::move(groups.layout),
                         .bits = bits,
                         .lowest_level = static_cast<std::int16_t>(integer ? -middle : -highest),
                         .highest_level = static_cast<std::int16_t>(highest),
                         .scale_dtype = parts.scale_dtype,
                         .remarks = std::move(groups.remarks)};
  std::ranges::copy(parts.scales.remarks(), std::back_inserter(layout.remarks));
  return layout;
}

// ---- decoding -----------------------------------------------------------------------------------

class ElementDecoder final : public WeightDecoder {
 public:
  ElementDecoder(WeightSpec spec, WeightLayout layout, ElementParts parts)
      : spec_(std::move(spec)), layout_(std::move(layout)), parts_(std::move(parts)) {}

  [[nodiscard]] const WeightLayout& layout() const override { return layout_; }

  [[nodiscard]] TileNeeds needs(RowRange rows) const override {
    TileNeeds needs;
    strips_of(needs, Companion::kCodes) =
        row_strip(*spec_.find(Companion::kCodes), rows.first, rows.count);
    strips_of(needs, Companion::kScale) = parts_.scales.needs(*spec_.find(Companion::kScale), rows);
    if (parts_.has_zeros) {
      strips_of(needs, Companion::kZeroPoint) =
          parts_.zeros.needs(*spec_.find(Companion::kZeroPoint), rows);
    }
    return needs;
  }

  [[nodiscard]] Status decode(const Tile& tile, RowRange rows, RowBlock& out) const override {
    out.first_row = rows.first;
    out.rows = rows.count;
    out.columns = layout_.columns;
    out.stride = layout_.groups.stride();
    out.values.resize(rows.count * out.columns);
    load_rows(numbers_of(spec_, tile, Companion::kCodes), out.columns, rows, out.values);
    GRIDSCOPE_CHECK(load_levels(tile, out));
    GRIDSCOPE_CHECK(load_zeros(tile, out));
    std::vector<double> stored(rows.count * out.stride);
    TileNumbers numbers = numbers_of(spec_, tile, Companion::kScale);
    numbers.dtype = parts_.scale_dtype;
    parts_.scales.load(numbers, rows, stored);
    apply_scales(stored, out);
    return check_finite(spec_, Companion::kScale, rows, out.scales);
  }

 private:
  // Levels from the codes, which out.values holds as numbers.
  [[nodiscard]] Status load_levels(const Tile& tile, RowBlock& out) const {
    out.levels.resize(out.values.size());
    if (is_integer(parts_.code_dtype)) {
      std::ranges::transform(out.values, out.levels.begin(),
                             [](double code) { return static_cast<std::int16_t>(code); });
    } else {
      const auto codes = bytes_of(tile, Companion::kCodes)
                             .subspan((out.first_row - tile.rows.first) * out.columns);
      std::ranges::transform(
          codes.first(out.levels.size()), out.levels.begin(),
          [&](std::byte code) { return parts_.levels[std::to_integer<std::size_t>(code)]; });
    }
    const auto odd = std::ranges::find_if(out.levels, [&](int level) {
      return level < layout_.lowest_level || level > layout_.highest_level;
    });
    if (odd == out.levels.end()) return {};
    return reject_code(out, static_cast<std::uint64_t>(odd - out.levels.begin()));
  }

  [[nodiscard]] Status reject_code(const RowBlock& out, std::uint64_t index) const {
    const std::string expected =
        is_integer(parts_.code_dtype)
            ? fmt::format("{} to {}", layout_.lowest_level, layout_.highest_level)
            : "a finite number";
    return corrupt(spec_, fmt::format("its code of row {}, column {} is {}, expected {}",
                                      out.first_row + index / out.columns, index % out.columns,
                                      out.values[index], expected));
  }

  [[nodiscard]] Status load_zeros(const Tile& tile, RowBlock& out) const {
    out.zeros.clear();
    if (!parts_.has_zeros) return {};
    const RowRange rows = {.first = out.first_row, .count = out.rows};
    std::vector<double> numbers(rows.count * out.stride);
    parts_.zeros.load(numbers_of(spec_, tile, Companion::kZeroPoint), rows, numbers);
    out.zeros.resize(numbers.size());
    std::ranges::transform(numbers, out.zeros.begin(),
                           [](double zero) { return static_cast<std::int16_t>(zero); });
    return check_ct_zeros(spec_, layout_, rows, out.zeros);
  }

  [[nodiscard]] Factor factor_of(double stored) const {
    if (spec_.scheme == Scheme::kBnbInt8) return {.factor = stored, .divisor = kBnbInt8Range};
    if (spec_.scale_use == WeightSpec::ScaleUse::kDivide) return {.divisor = stored};
    return {.factor = stored};
  }

  void apply_scales(std::span<const double> stored, RowBlock& out) const {
    out.scales.resize(stored.size());
    for (std::uint64_t row = 0; row < out.rows; ++row) {
      const std::span<double> values(&out.values[row * out.columns], out.columns);
      for (std::uint64_t g = 0; g < out.stride; ++g) {
        const std::uint64_t term = row * out.stride + g;
        const Factor factor = factor_of(stored[term]);
        out.scales[term] = factor.factor / factor.divisor;
        scale_group(layout_.groups.positions(out.first_row + row, g),
                    out.zeros.empty() ? 0.0 : out.zeros[term], factor, values);
      }
      for (std::size_t k = 0; k < parts_.column_factors.size(); ++k) {
        values[k] *= parts_.column_factors[k];
      }
    }
  }

  void scale_group(RowRange at, double zero, Factor factor, std::span<double> values) const {
    const auto order = layout_.groups.order();
    for (std::uint64_t position = at.first; position < at.end(); ++position) {
      double& value = values[order.empty() ? position : order[position]];
      value = (value - zero) * factor.factor / factor.divisor;
    }
  }

  WeightSpec spec_;
  WeightLayout layout_;
  ElementParts parts_;
};

}  // namespace

DecoderResult make_element_decoder(WeightSpec spec) {
  GRIDSCOPE_TRY(const StoredTensor* const codes,
                require(spec, Companion::kCodes, family_of(spec.scheme).codes));
  GRIDSCOPE_CHECK(check_bnb_format(spec));
  if (spec.scheme == Scheme::kCtMxfp8 && spec.group_size == 0) spec.group_size = kMxGroup;
  // Blocks of another size are found where they divide the weight; these mostly do not.
  const bool blocks = spec.scheme == Scheme::kFp8Block || spec.scheme == Scheme::kFp8Scaled;
  if (blocks && spec.block == std::array<std::uint64_t, 2>{}) spec.block = kUsualBlock;
  const MatrixStack weight = stack_of(codes->shape);
  GRIDSCOPE_TRY(ElementParts parts, solve_parts(spec, weight));
  GRIDSCOPE_TRY(WeightLayout layout, solve_layout(spec, weight, parts));
  return std::make_unique<ElementDecoder>(std::move(spec), std::move(layout), std::move(parts));
}

}  // namespace gridscope::quant
