#include "integer_decoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "gridscope/core/checked.hpp"
#include "gridscope/quant/bitstream.hpp"
#include "round_to_odd.hpp"
#include "spec_checks.hpp"
#include "stored_numbers.hpp"

namespace gridscope::quant {
namespace {

constexpr std::uint64_t kKernelGroup = 16;  // kernels take groups of a multiple of it

// The level that means 0 where value = scale * (level + middle) + offset, or the nearest one.
std::int16_t zero_level(double scale, double offset, int middle) {
  if (scale == 0.0) return 0;
  constexpr double kLowest = std::numeric_limits<std::int16_t>::min();
  constexpr double kHighest = std::numeric_limits<std::int16_t>::max();
  const double level = std::nearbyint(-offset / scale) - middle;
  return static_cast<std::int16_t>(std::clamp(level, kLowest, kHighest));
}

// Whether the zeros say all that the offsets do, and four bits hold them.
bool offsets_are_zeros(const GroupTerms& terms, int middle) {
  for (std::size_t i = 0; i < terms.offsets.size(); ++i) {
    const int zero = terms.zeros[i];
    if (zero < -middle || zero >= middle) return false;
    if (terms.scales[i] * (zero + middle) != -terms.offsets[i]) return false;
  }
  return true;
}

}  // namespace

IntegerDecoder::IntegerDecoder(WeightSpec spec, WeightLayout layout,
                               std::vector<double> column_factors)
    : spec_(std::move(spec)),
      layout_(std::move(layout)),
      column_factors_(std::move(column_factors)) {}

void IntegerDecoder::unpack(std::span<const std::byte> row, std::span<std::uint8_t> codes) const {
  unpack_bits(row, layout_.bits, 0, codes);
}

Status IntegerDecoder::load_checked_terms(const Tile& tile, RowRange rows, GroupTerms& out) const {
  out.zeros.clear();
  out.offsets.clear();
  GRIDSCOPE_CHECK(load_terms(tile, rows, out));
  GRIDSCOPE_CHECK(check_finite(spec_, Companion::kScale, rows, out.scales));
  GRIDSCOPE_CHECK(check_finite(spec_, Companion::kOffset, rows, out.offsets));
  if (!out.offsets.empty()) fill_zeros(out);
  return {};
}

void IntegerDecoder::fill_zeros(GroupTerms& terms) const {
  terms.zeros.resize(terms.offsets.size());
  for (std::size_t i = 0; i < terms.zeros.size(); ++i) {
    terms.zeros[i] = zero_level(terms.scales[i], terms.offsets[i], middle());
  }
}

Status IntegerDecoder::decode(const Tile& tile, RowRange rows, RowBlock& out) const {
  GroupTerms terms = {
      .scales = std::move(out.scales), .zeros = std::move(out.zeros), .offsets = {}};
  GRIDSCOPE_CHECK(load_checked_terms(tile, rows, terms));
  PackedRows packed;
  order_codes(tile, rows, packed);
  out.first_row = rows.first;
  out.rows = rows.count;
  out.columns = layout_.columns;
  out.stride = layout_.groups.stride();
  out.levels.resize(rows.count * layout_.columns);
  std::vector<std::uint8_t> codes(layout_.columns);
  for (std::uint64_t row = 0; row < rows.count; ++row) {
    unpack(packed.bytes.subspan(row * packed.stride), codes);
    std::ranges::transform(codes, &out.levels[row * layout_.columns], [&](std::uint8_t code) {
      return static_cast<std::int16_t>(code - middle());
    });
  }
  fill_values(terms, out);
  out.scales = std::move(terms.scales);
  out.zeros = std::move(terms.zeros);
  return {};
}

void IntegerDecoder::fill_values(const GroupTerms& terms, RowBlock& out) const {
  out.values.resize(out.levels.size());
  const auto order = layout_.groups.order();
  const int middle = this->middle();
  for (std::uint64_t row = 0; row < out.rows; ++row) {
    const std::int16_t* const levels = &out.levels[row * out.columns];
    double* const values = &out.values[row * out.columns];
    for (std::uint64_t g = 0; g < out.stride; ++g) {
      const std::uint64_t term = row * out.stride + g;
      const RowRange at = layout_.groups.positions(out.first_row + row, g);
      const double scale = terms.scales[term];
      const int zero = terms.zeros.empty() ? 0 : terms.zeros[term];
      for (std::uint64_t p = at.first; p < at.end(); ++p) {
        const std::uint64_t k = order.empty() ? p : order[p];
        values[k] = terms.offsets.empty()
                        ? scale * (levels[k] - zero)
                        : sum_to_odd(scale * (levels[k] + middle), terms.offsets[term]);
      }
    }
    for (std::size_t k = 0; k < column_factors_.size(); ++k) values[k] *= column_factors_[k];
  }
}

bool IntegerDecoder::is_int4() const {
  const std::uint64_t size = layout_.groups.size();
  return layout_.bits == 4 && !layout_.groups.is_mapped() && size % kKernelGroup == 0 &&
         layout_.columns % size == 0 && column_factors_.empty();
}

Result<bool> IntegerDecoder::decode_int4(const Tile& tile, RowRange rows, Int4Rows& out) const {
  if (!is_int4()) return false;
  GroupTerms terms = {.scales = std::move(out.terms), .zeros = {}, .offsets = {}};
  GRIDSCOPE_CHECK(load_checked_terms(tile, rows, terms));
  if (!offsets_are_zeros(terms, middle())) return false;
  PackedRows packed = {.bytes = {}, .stride = 0, .own = std::move(out.own)};
  order_codes(tile, rows, packed);
  out.first_row = rows.first;
  out.rows = rows.count;
  out.codes = packed.bytes;
  out.row_bytes = packed.stride;
  out.group_size = layout_.groups.size();
  out.groups = layout_.groups.stride();
  out.scales.resize(terms.scales.size());
  std::ranges::transform(terms.scales, out.scales.begin(),
                         [](double scale) { return static_cast<float>(scale); });
  const bool symmetric = std::ranges::all_of(terms.zeros, [](int zero) { return zero == 0; });
  out.zeros.resize(symmetric ? 0 : terms.zeros.size());
  std::ranges::transform(std::span(terms.zeros).first(out.zeros.size()), out.zeros.begin(),
                         [](int zero) { return static_cast<std::int8_t>(zero); });
  out.own = std::move(packed.own);
  out.terms = std::move(terms.scales);
  return true;
}

WeightLayout integer_layout(std::uint64_t rows, GroupLayout groups, std::uint32_t bits,
                            Dtype scale_dtype) {
  const int middle = 1 << (bits - 1);
  const std::uint64_t columns = groups.columns();
  return {.rows = rows,
          .columns = columns,
          .groups = std::move(groups),
          .bits = bits,
          .lowest_level = static_cast<std::int16_t>(-middle),
          .highest_level = static_cast<std::int16_t>(middle - 1),
          .scale_dtype = scale_dtype,
          .remarks = {}};
}

Result<std::uint64_t> solve_group_size(const WeightSpec& spec, std::uint64_t columns,
                                       std::uint64_t groups) {
  if (spec.group_size < -1) {
    return corrupt(spec, fmt::format("its group size is {}", spec.group_size));
  }
  if (columns == 0 || groups == 0) return corrupt(spec, "it holds no weights");
  if (spec.group_size > 0) {
    const auto size = static_cast<std::uint64_t>(spec.group_size);
    if (ceil_div(columns, size) == groups) return std::min(size, columns);
  } else if (spec.group_size == 0 ? columns % groups == 0 : groups == 1) {
    return columns / groups;
  }
  const std::string claim = spec.group_size == 0 ? "" : fmt::format(" of size {}", spec.group_size);
  return corrupt(spec,
                 fmt::format("its rows of {} weights have {} groups{}", columns, groups, claim));
}

Status check_shape(const WeightSpec& spec, Companion companion, std::uint64_t rows,
                   std::uint64_t columns) {
  const StoredTensor& tensor = *spec.find(companion);
  if (tensor.shape == std::vector{rows, columns}) return {};
  return corrupt(spec, fmt::format("its {} is {}, expected [{}, {}]", companion_name(companion),
                                   shape_text(tensor), rows, columns));
}

}  // namespace gridscope::quant
