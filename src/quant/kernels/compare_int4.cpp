// The fused comparison, for whole numbers of units (int4_units.hpp). Each 128-bit block of a vector
// works on one part of 32 weights of its own, so that nothing crosses blocks and the same code runs
// on vectors of any width: nibbles become bytes, two table look-ups turn them into 16-bit values,
// the source is shifted to the same unit, and multiply-add pairs give the sums.

#include "gridscope/quant/error_sums.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/kernels/compare_int4.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <vector>

#include "quant/int4_groups.hpp"
#include "quant/kernels/int4_units.hpp"

HWY_BEFORE_NAMESPACE();
namespace gridscope::quant::HWY_NAMESPACE {

ErrorSums compare_plainly(const Int4Rows& build, const SourceRows& source) {
  ErrorSums tile;
  for (std::uint64_t row = 0; row < build.rows; ++row) {
    ErrorSums sums{.worst = tile.worst};
    add_int4_groups(build, source, row, {.first = 0, .count = build.groups}, sums);
    tile.add(sums);
  }
  return tile;
}

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

ErrorSums compare_int4(const Int4Rows& build, const SourceRows& source) {
  return compare_plainly(build, source);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::ScalableTag<std::uint8_t>;
using Words = hn::ScalableTag<std::uint16_t>;
using Shorts = hn::ScalableTag<std::int16_t>;
using Ints = hn::ScalableTag<std::int32_t>;

// Parts of 32 weights that one vector holds.
constexpr std::size_t kBlocks = hn::MaxLanes(Bytes{}) / 16;
constexpr std::size_t kPartBytes = kPartWeights * 2;  // of the source

// What is known of each part of a row before its weights are looked at. Of the 32-bit numbers both
// halves hold the same.
struct Parts {
  std::vector<std::uint32_t> base;       // the least BF16 magnitude within the window
  std::vector<std::uint32_t> half_step;  // |scale| / 2, in units, rounded down
  std::vector<std::uint32_t> worst;      // the worst error so far, likewise; -1: none
  std::vector<std::uint32_t> table;      // where its UnitTable starts
  std::vector<double> unit;
  std::vector<std::uint32_t> fits;  // 1: its scale does
  const std::uint8_t* tables = nullptr;

  explicit Parts(std::size_t count)
      : base(count), half_step(count), worst(count), table(count), unit(count), fits(count) {}
};

// Sums over the weights of parts, in units.
struct PartSums {
  std::vector<std::array<std::int32_t, 4>> products;  // |e|, e^2, v^2, v y
  std::vector<std::int32_t> build;                    // y^2

  explicit PartSums(std::size_t count) : products(count), build(count) {}
};

// Of the parts of one vector.
struct BlockCounts {
  std::uint32_t identical = 0;
  std::uint32_t moved = 0;
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  bool fits = false;
  bool worse = false;  // an error is larger than the worst so far
};

// Block j from the 16 bytes at first + j * stride.
template <class D>
HWY_INLINE hn::VFromD<D> load_blocks(D d, const std::uint8_t* first, std::size_t stride) {
  if constexpr (hn::MaxLanes(D{}) == 16) {
    return hn::LoadU(d, first);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_blocks(half, first + hn::MaxLanes(D{}) / 32 * stride, stride),
                       load_blocks(half, first, stride));
  }
}

// Block j from the 16 bytes at tables + starts[j].
template <class D>
HWY_INLINE hn::VFromD<D> load_tables(D d, const std::uint8_t* tables, const std::uint32_t* starts) {
  if constexpr (hn::MaxLanes(D{}) == 16) {
    return hn::LoadU(d, tables + starts[0]);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_tables(half, tables, starts + hn::MaxLanes(D{}) / 32),
                       load_tables(half, tables, starts));
  }
}

// Each of the numbers from `numbers` on all over its block.
HWY_INLINE hn::VFromD<Words> spread(const std::uint32_t* numbers) {
  const hn::Repartition<std::uint32_t, Words> d;
  if constexpr (kBlocks == 1) {
    return hn::BitCast(Words(), hn::Set(d, numbers[0]));
  } else {
    HWY_ALIGN static constexpr std::uint32_t kBlockOfLane[16] = {0, 0, 0, 0, 1, 1, 1, 1,
                                                                 2, 2, 2, 2, 3, 3, 3, 3};
    const auto indices = hn::SetTableIndices(d, kBlockOfLane);
    return hn::BitCast(Words(), hn::TableLookupLanes(hn::LoadDup128(d, numbers), indices));
  }
}

// The source in units. `beyond` grows above the window where a weight lies outside of it.
HWY_INLINE hn::VFromD<Shorts> source_units(hn::VFromD<Words> stored, hn::VFromD<Words> base,
                                           hn::VFromD<Words>& beyond) {
  const Words d;
  const Shorts signed_d;
  const auto magnitude = hn::And(stored, hn::Set(d, 0x7fff));
  const auto above = hn::Sub(magnitude, base);
  beyond = hn::Max(beyond, hn::IfThenZeroElse(hn::Eq(magnitude, hn::Zero(d)), above));
  const auto significand = hn::Or(hn::And(above, hn::Set(d, 0x7f)), hn::Set(d, 0x80));
  // Zero is far below the base and so far above it modulo 2^16: all of its bits are shifted out.
  const auto shift = hn::Min(hn::ShiftRight<7>(above), hn::Set(d, 15));
  const auto units = hn::BitCast(signed_d, hn::Shl(significand, shift));
  const auto sign = hn::BroadcastSignBit(hn::BitCast(signed_d, stored));
  return hn::Sub(hn::Xor(units, sign), sign);
}

// On some CPUs products of neighbours are added in two vectors.
struct VectorSum {
  hn::VFromD<Ints> lanes;
  hn::VFromD<Ints> rest;
};

struct VectorSums {
  VectorSum error;
  VectorSum squared_error;
  VectorSum squared_source;
  VectorSum product;
};

HWY_INLINE VectorSum zero_sum() {
  return {.lanes = hn::Zero(Ints()), .rest = hn::Zero(Ints())};
}

HWY_INLINE void add_products(hn::VFromD<Shorts> a, hn::VFromD<Shorts> b, VectorSum& sum) {
  sum.lanes = hn::ReorderWidenMulAccumulate(Ints(), a, b, sum.lanes, sum.rest);
}

HWY_INLINE hn::VFromD<Ints> total(const VectorSum& sum) {
  return hn::Add(sum.lanes, sum.rest);
}

// Pairs of neighbours in a block are added; a and b take turns.
HWY_INLINE hn::VFromD<Ints> add_halves(hn::VFromD<Ints> a, hn::VFromD<Ints> b) {
  return hn::Add(hn::InterleaveLower(Ints(), a, b), hn::InterleaveUpper(Ints(), a, b));
}

HWY_INLINE void store_sums(const VectorSums& sums, std::size_t part, PartSums& out) {
  const Ints d;
  const auto error = total(sums.error);
  const auto squared_error = total(sums.squared_error);
  const auto squared_source = total(sums.squared_source);
  const auto product = total(sums.product);
  // y = v + e, and v y = v^2 + v e.
  const auto build = hn::Sub(hn::Add(squared_error, hn::Add(product, product)), squared_source);
  const auto products =
      add_halves(add_halves(error, squared_source), add_halves(squared_error, product));
  hn::StoreU(products, d, out.products[part].data());
  HWY_ALIGN std::int32_t lanes[hn::MaxLanes(Ints{})];
  const auto pairs = hn::Add(build, hn::Shuffle2301(build));
  hn::Store(hn::Add(pairs, hn::Shuffle1032(pairs)), d, lanes);
  for (std::size_t block = 0; block < kBlocks; ++block) out.build[part + block] = lanes[4 * block];
}

// Codes in the order of their columns, two bytes of value each, eighths of 32.
struct Eighths {
  hn::VFromD<Shorts> values[4];
};

HWY_INLINE Eighths look_up(hn::VFromD<Bytes> even, hn::VFromD<Bytes> odd, const Parts& parts,
                           std::size_t part) {
  const Bytes d;
  const Shorts shorts;
  const auto low = load_tables(d, parts.tables, &parts.table[part]);
  const auto high = load_tables(d, parts.tables + 16, &parts.table[part]);
  const auto first = hn::InterleaveLower(d, even, odd);
  const auto second = hn::InterleaveUpper(d, even, odd);
  const auto first_low = hn::TableLookupBytes(low, first);
  const auto first_high = hn::TableLookupBytes(high, first);
  const auto second_low = hn::TableLookupBytes(low, second);
  const auto second_high = hn::TableLookupBytes(high, second);
  return {.values = {hn::BitCast(shorts, hn::InterleaveLower(d, first_low, first_high)),
                     hn::BitCast(shorts, hn::InterleaveUpper(d, first_low, first_high)),
                     hn::BitCast(shorts, hn::InterleaveLower(d, second_low, second_high)),
                     hn::BitCast(shorts, hn::InterleaveUpper(d, second_low, second_high))}};
}

// The weights of as many parts as a vector has blocks, from number `part` of the row on.
HWY_INLINE BlockCounts add_blocks(const Parts& parts, std::size_t part, const std::uint8_t* codes,
                                  const std::uint8_t* source, PartSums& out) {
  const Bytes bytes;
  const Words words;
  const Shorts shorts;
  const auto pairs = hn::LoadU(bytes, codes + part * (kPartWeights / 2));
  const auto even = hn::And(pairs, hn::Set(bytes, 0xf));
  const auto odd = hn::BitCast(
      bytes, hn::And(hn::ShiftRight<4>(hn::BitCast(words, pairs)), hn::Set(words, 0x0f0f)));
  BlockCounts counts;
  const auto count = [&](std::uint8_t code) HWY_ATTR {
    return static_cast<std::uint32_t>(hn::CountTrue(bytes, hn::Eq(even, hn::Set(bytes, code))) +
                                      hn::CountTrue(bytes, hn::Eq(odd, hn::Set(bytes, code))));
  };
  counts.low = count(0);
  counts.high = count(15);
  const Eighths build = look_up(even, odd, parts, part);
  const auto base = spread(&parts.base[part]);
  const auto half_step = hn::BitCast(shorts, spread(&parts.half_step[part]));
  auto beyond = hn::Zero(words);
  auto largest = hn::Zero(shorts);
  VectorSums sums{.error = zero_sum(),
                  .squared_error = zero_sum(),
                  .squared_source = zero_sum(),
                  .product = zero_sum()};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto stored = load_blocks(bytes, source + part * kPartBytes + i * 16, kPartBytes);
    const auto weights = source_units(hn::BitCast(words, stored), base, beyond);
    const auto error = hn::Abs(hn::Sub(build.values[i], weights));
    add_products(error, hn::Set(shorts, 1), sums.error);
    add_products(error, error, sums.squared_error);
    add_products(weights, weights, sums.squared_source);
    add_products(weights, build.values[i], sums.product);
    counts.identical +=
        static_cast<std::uint32_t>(hn::CountTrue(shorts, hn::Eq(error, hn::Zero(shorts))));
    counts.moved += static_cast<std::uint32_t>(hn::CountTrue(shorts, hn::Gt(error, half_step)));
    largest = hn::Max(largest, error);
  }
  store_sums(sums, part, out);
  // Errors that large are far beyond any step, but their squares would be too large to add up.
  beyond = hn::Max(beyond, hn::ShiftRight<3>(hn::BitCast(words, largest)));
  counts.fits = hn::AllTrue(words, hn::Lt(beyond, hn::Set(words, kWindow << 7)));
  const auto worst = hn::BitCast(shorts, spread(&parts.worst[part]));
  counts.worse = !hn::AllFalse(shorts, hn::Gt(largest, worst));
  return counts;
}

// One row and the memory to work on any.
struct Row {
  const Int4Rows& build;
  const SourceRows& source;
  std::size_t parts_per_group = 1;
  std::size_t parts = 0;  // as far as full vectors go
  Parts about;
  PartSums sums;
  std::vector<BlockCounts> counts;
  std::vector<float> scales;          // of each part, where groups have several
  std::vector<std::int8_t> zeros;     // likewise
  std::vector<UnitTable> own_tables;  // where kBf16Tables does not serve
  std::uint64_t number = 0;
};

template <typename T>
std::span<const T> of_row(const std::vector<T>& values, const Row& row) {
  return std::span(values).subspan(row.number * row.build.groups, row.build.groups);
}

// The values of groups as values of parts.
template <typename T>
std::span<const T> of_parts(std::span<const T> groups, std::size_t per_group,
                            std::vector<T>& memory) {
  if (per_group == 1) return groups;
  memory.resize(groups.size() * per_group);
  for (std::size_t part = 0; part < memory.size(); ++part) memory[part] = groups[part / per_group];
  return memory;
}

// In units; only for groups that fit.
void make_table(float scale, int zero, double unit, UnitTable& table) {
  const auto per_unit = static_cast<float>(1.0 / unit);
  for (int code = 0; code < 16; ++code) {
    const float product = static_cast<float>(code + kInt4Lowest - zero) * scale;
    const auto bits = std::bit_cast<std::uint32_t>(product);
    const std::uint32_t rounded = (bits + 0x7fffU + (bits >> 16U & 1U)) & 0xffff0000U;
    const auto units = static_cast<int>(std::bit_cast<float>(rounded) * per_unit);
    table[static_cast<std::size_t>(code)] = static_cast<std::uint8_t>(units & 0xff);
    table[static_cast<std::size_t>(code) + 16] = static_cast<std::uint8_t>(units >> 8 & 0xff);
  }
}

bool all_bf16(std::span<const float> scales) {
  std::uint32_t low_bits = 0;
  for (const float scale : scales) low_bits |= std::bit_cast<std::uint32_t>(scale) & 0xffffU;
  return low_bits == 0;
}

bool all_zero(std::span<const std::int8_t> zeros) {
  int any = 0;
  for (const std::int8_t zero : zeros) any |= zero;
  return any == 0;
}

constexpr std::uint32_t twice(std::uint32_t number) {
  return (number & 0xffffU) * 0x10001U;
}

// Straight loops over arrays, so that the compiler makes vectors of them.
void describe_parts(std::span<const float> scales, std::span<const std::int8_t> zeros,
                    float worst_error, Parts& parts) {
  const std::size_t count = scales.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(scales[i]);
    const std::uint32_t exponent = bits >> 23U & 0xffU;
    const std::uint32_t unit_bits = zeros.empty() || zeros[i] == 0 ? kUnitBits : kUnitBits - 1;
    const bool in_range = exponent >= kLeastExponent && exponent <= kMostExponent;
    // With four bits to spare the product with any level is exact in float.
    parts.fits[i] = in_range && (bits & 0xfU) == 0 ? 1 : 0;
    parts.base[i] = twice((exponent + 7 - unit_bits) << 7U);
    parts.half_step[i] = twice(((bits & 0x7fffffU) | 0x800000U) >> (24 - unit_bits));
    const std::uint32_t unit_exponent = in_range ? exponent - unit_bits : 127;
    parts.unit[i] = std::bit_cast<double>(static_cast<std::uint64_t>(unit_exponent + 896) << 52U);
    const float per_unit = std::bit_cast<float>((254 - unit_exponent) << 23U);
    const float worst = std::max(-1.0F, std::min(worst_error * per_unit, 32767.0F));
    parts.worst[i] = twice(static_cast<std::uint32_t>(static_cast<std::int32_t>(worst)));
  }
}

void point_at_bf16_tables(std::span<const float> scales, Parts& parts) {
  parts.tables = kBf16Tables[0].data();
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(scales[i]);
    parts.table[i] = ((bits >> 24U & 0x80U) | (bits >> 16U & 0x7fU)) * sizeof(UnitTable);
  }
}

void make_own_tables(Row& row, std::span<const float> scales, std::span<const std::int8_t> zeros) {
  row.own_tables.resize(scales.size());
  row.about.tables = row.own_tables[0].data();
  for (std::size_t g = 0; g < scales.size(); ++g) {
    const std::size_t part = g * row.parts_per_group;
    if (row.about.fits[part] == 0) continue;
    make_table(scales[g], zeros.empty() ? 0 : zeros[g], row.about.unit[part], row.own_tables[g]);
  }
  for (std::size_t part = 0; part < scales.size() * row.parts_per_group; ++part) {
    row.about.table[part] =
        static_cast<std::uint32_t>(part / row.parts_per_group * sizeof(UnitTable));
  }
}

void prepare(Row& row, double worst_error) {
  const auto scales = of_row(row.build.scales, row);
  const auto zeros =
      row.build.zeros.empty() ? std::span<const std::int8_t>() : of_row(row.build.zeros, row);
  const auto part_scales = of_parts(scales, row.parts_per_group, row.scales);
  describe_parts(part_scales, of_parts(zeros, row.parts_per_group, row.zeros),
                 static_cast<float>(worst_error), row.about);
  if (all_bf16(scales) && all_zero(zeros)) {
    point_at_bf16_tables(part_scales, row.about);
  } else {
    make_own_tables(row, scales, zeros);
  }
}

// Adds one group to the sums of its row as if its lanes had been added up.
void add_group_sums(const Row& row, std::uint64_t group, ErrorSums& sums) {
  const std::size_t first = group * row.parts_per_group;
  std::array<std::int64_t, 4> total = {};
  std::int64_t build = 0;
  for (std::size_t part = first; part < first + row.parts_per_group; ++part) {
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += row.sums.products[part][i];
    build += row.sums.build[part];
  }
  const auto [error, squared_error, squared_source, product] = total;
  const double unit = row.about.unit[first];
  const double square = unit * unit;
  sums.abs_error += static_cast<double>(error) * unit;
  sums.squared_error += static_cast<double>(squared_error) * square;
  sums.squared_source += static_cast<double>(squared_source) * square;
  sums.squared_build += static_cast<double>(build) * square;
  sums.product += static_cast<double>(product) * square;
  sums.groups_identical += error == 0 ? 1 : 0;
  sums.dead_groups += build == 0 ? 1 : 0;
  sums.source_dead_groups += squared_source == 0 ? 1 : 0;
  sums.dead_in_both += build == 0 && squared_source == 0 ? 1 : 0;
}

void note_worst(const Row& row, RowRange groups, ErrorSums& sums) {
  ErrorSums again{.worst = sums.worst};
  add_int4_groups(row.build, row.source, row.number, groups, again);
  sums.worst = again.worst;
}

// The counts of all vectors together; `fits` only when all do.
BlockCounts sum_counts(std::span<const BlockCounts> blocks) {
  BlockCounts sum{.fits = true};
  for (const BlockCounts& block : blocks) {
    sum.identical += block.identical;
    sum.moved += block.moved;
    sum.low += block.low;
    sum.high += block.high;
    sum.fits = sum.fits && block.fits;
    sum.worse = sum.worse || block.worse;
  }
  return sum;
}

// Groups that are whole vectors together, from the sums of their parts.
void add_groups(const Row& row, RowRange groups, ErrorSums& sums) {
  const std::size_t first = groups.first * row.parts_per_group;
  const std::size_t count = groups.count * row.parts_per_group;
  BlockCounts counts = sum_counts(std::span(row.counts).subspan(first / kBlocks, count / kBlocks));
  for (std::size_t part = first; part < first + count; ++part) {
    counts.fits = counts.fits && row.about.fits[part] != 0;
  }
  if (!counts.fits) {
    add_int4_groups(row.build, row.source, row.number, groups, sums);
    return;
  }
  for (std::uint64_t g = groups.first; g < groups.end(); ++g) add_group_sums(row, g, sums);
  sums.weights += groups.count * row.build.group_size;
  sums.groups += groups.count;
  sums.values_identical += counts.identical;
  sums.moved += counts.moved;
  sums.saturated_low += counts.low;
  sums.saturated_high += counts.high;
  if (!row.build.zeros.empty()) {
    const auto zeros = of_row(row.build.zeros, row).subspan(groups.first, groups.count);
    sums.zero_points_used +=
        groups.count - static_cast<std::uint64_t>(std::ranges::count(zeros, 0));
  }
  if (counts.worse) note_worst(row, groups, sums);
}

void add_row(Row& row, ErrorSums& sums) {
  prepare(row, sums.worst.error);
  const auto* codes = reinterpret_cast<const std::uint8_t*>(row.build.codes.data()) +
                      row.number * row.build.row_bytes;
  const auto* source = reinterpret_cast<const std::uint8_t*>(row.source.bytes.data()) +
                       row.number * row.build.groups * row.build.group_size * 2;
  for (std::size_t part = 0; part < row.parts; part += kBlocks) {
    row.counts[part / kBlocks] = add_blocks(row.about, part, codes, source, row.sums);
  }
  const std::uint64_t step = std::max<std::uint64_t>(1, kBlocks / row.parts_per_group);
  std::uint64_t done = 0;
  for (; (done + step) * row.parts_per_group <= row.parts; done += step) {
    add_groups(row, {.first = done, .count = step}, sums);
  }
  add_int4_groups(row.build, row.source, row.number,
                  {.first = done, .count = row.build.groups - done}, sums);
}

// Whether groups are cut at vectors, or vectors at groups.
bool is_whole_vectors(std::uint64_t group_size) {
  if (group_size % kPartWeights != 0) return false;
  const std::size_t parts = group_size / kPartWeights;
  return parts % kBlocks == 0 || kBlocks % parts == 0;
}

ErrorSums compare_int4(const Int4Rows& build, const SourceRows& source) {
  if (!is_whole_vectors(build.group_size)) return compare_plainly(build, source);
  const std::size_t parts = build.groups * build.group_size / kPartWeights;
  Row row{.build = build,
          .source = source,
          .parts_per_group = build.group_size / kPartWeights,
          .parts = parts / kBlocks * kBlocks,
          .about = Parts(parts),
          .sums = PartSums(parts),
          .counts = std::vector<BlockCounts>(parts / kBlocks)};
  ErrorSums tile;
  for (; row.number < build.rows; ++row.number) {
    ErrorSums sums{.worst = tile.worst};
    add_row(row, sums);
    tile.add(sums);
  }
  return tile;
}

#endif

}  // namespace gridscope::quant::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace gridscope::quant {

HWY_EXPORT(compare_int4);

ErrorSums compare_int4_bf16(const Int4Rows& build, const SourceRows& source) {
  return HWY_DYNAMIC_DISPATCH(compare_int4)(build, source);
}

}  // namespace gridscope::quant

#endif
