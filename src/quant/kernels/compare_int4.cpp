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
#include "quant/kernels/blocks-inl.hpp"
#include "quant/kernels/int4_parts-inl.hpp"
#include "quant/kernels/int4_units.hpp"
#include "quant/kernels/prefetch.hpp"

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

// Parts of 32 weights that one vector holds.
constexpr std::size_t kBlocks = hn::MaxLanes(Bytes{}) / 16;
constexpr std::size_t kAhead = 2048;  // bytes of the source that are fetched in advance
constexpr std::size_t kSpread = 4;    // numbers that spread() reads at once
constexpr std::size_t kPartBytes = kPartWeights * 2;  // of the source

// Sums over the weights of parts, in units.
struct PartSums {
  std::vector<std::array<std::int32_t, 4>> products;  // |e|, e^2, v^2, v y
  std::vector<std::uint32_t> build;                   // y^2: 2^31 where all are 8 * 2^10
  std::vector<std::int16_t> largest;                  // error, where it may be the worst

  explicit PartSums(std::size_t count) : products(count), build(count), largest(count) {}
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
    HWY_ALIGN static constexpr std::array<std::uint32_t, 16> kBlockOfLane = {
        0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
    const auto indices = hn::SetTableIndices(d, kBlockOfLane.data());
    return hn::BitCast(Words(), hn::TableLookupLanes(hn::LoadDup128(d, numbers), indices));
  }
}

// The least and the largest BF16 magnitude but for zero, both times two, the least less one: zero
// then is the largest of all as a least one.
struct Window {
  hn::VFromD<Words> least;
  hn::VFromD<Words> most;
};

HWY_INLINE void widen(hn::VFromD<Words> stored, Window& window) {
  const auto doubled = hn::Add(stored, stored);  // without the sign
  window.least = hn::Min(window.least, hn::Sub(doubled, hn::Set(Words(), 1)));
  window.most = hn::Max(window.most, doubled);
}

// The source in units, for weights within the window. Added to 1.5 * 2^23 a small integer is in the
// low bits of the float, negative ones as their complement.
HWY_INLINE hn::VFromD<Shorts> source_units(hn::VFromD<Words> stored, hn::VFromD<Floats> per_unit) {
  const FloatBits bits;
  const auto magic = hn::Set(Floats(), 12582912.0F);
  const auto pairs = hn::BitCast(bits, stored);
  const auto even = hn::BitCast(Floats(), hn::ShiftLeft<16>(pairs));
  const auto odd = hn::BitCast(Floats(), hn::And(pairs, hn::Set(bits, 0xffff0000U)));
  const auto even_units = hn::BitCast(bits, hn::MulAdd(even, per_unit, magic));
  const auto odd_units = hn::BitCast(bits, hn::MulAdd(odd, per_unit, magic));
  const auto low = hn::And(even_units, hn::Set(bits, 0xffffU));
  return hn::BitCast(Shorts(), hn::Or(low, hn::ShiftLeft<16>(odd_units)));
}

// On some CPUs products of neighbours are added in two vectors.
struct VectorSum {
  hn::VFromD<Ints> lanes;
  hn::VFromD<Ints> rest;
};

struct VectorSums {
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

// `errors`: sums of up to four.
HWY_INLINE void store_sums(const VectorSums& sums, hn::VFromD<Shorts> errors, std::size_t part,
                           PartSums& out) {
  const Ints d;
  VectorSum sum = zero_sum();
  add_products(errors, hn::Set(Shorts(), 1), sum);
  const auto error = total(sum);
  const auto squared_error = total(sums.squared_error);
  const auto squared_source = total(sums.squared_source);
  const auto product = total(sums.product);
  // y = v + e, and v y = v^2 + v e.
  const auto build = hn::Sub(hn::Add(squared_error, hn::Add(product, product)), squared_source);
  const auto products =
      add_halves(add_halves(error, squared_source), add_halves(squared_error, product));
  hn::StoreU(products, d, out.products[part].data());
  HWY_ALIGN std::array<std::int32_t, hn::MaxLanes(Ints{})> lanes;
  const auto pairs = hn::Add(build, hn::Shuffle2301(build));
  hn::Store(hn::Add(pairs, hn::Shuffle1032(pairs)), d, lanes.data());
  for (std::size_t block = 0; block < kBlocks; ++block) {
    out.build[part + block] = static_cast<std::uint32_t>(lanes[4 * block]);
  }
}

// The largest one of each block.
HWY_NOINLINE void store_largest(hn::VFromD<Shorts> errors, std::size_t part, PartSums& out) {
  constexpr std::size_t kOfBlock = 8;
  HWY_ALIGN std::array<std::int16_t, kBlocks * kOfBlock> lanes;
  hn::Store(errors, Shorts(), lanes.data());
  for (std::size_t block = 0; block < kBlocks; ++block) {
    out.largest[part + block] =
        std::ranges::max(std::span(lanes).subspan(block * kOfBlock, kOfBlock));
  }
}

// Codes in the order of their columns, two bytes of value each, eighths of 32.
struct Eighths {
  std::array<hn::VFromD<Shorts>, 4> values;
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
  const auto per_unit = hn::BitCast(Floats(), spread(&parts.per_unit[part]));
  const auto half_step = hn::BitCast(shorts, spread(&parts.half_step[part]));
  Window window{.least = hn::Set(words, 0xffff), .most = hn::Zero(words)};
  auto largest = hn::Zero(shorts);
  auto sum = hn::Zero(shorts);
  std::array<hn::VFromD<Shorts>, 4> errors;
  VectorSums sums{.squared_error = zero_sum(), .squared_source = zero_sum(), .product = zero_sum()};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto stored =
        hn::BitCast(words, load_blocks(bytes, source + part * kPartBytes + i * 16, kPartBytes));
    widen(stored, window);
    const auto weights = source_units(stored, per_unit);
    const auto error = hn::Abs(hn::Sub(build.values[i], weights));
    errors[i] = error;
    sum = hn::Add(sum, error);
    add_products(error, error, sums.squared_error);
    add_products(weights, weights, sums.squared_source);
    add_products(weights, build.values[i], sums.product);
    counts.identical +=
        static_cast<std::uint32_t>(hn::CountTrue(shorts, hn::Eq(error, hn::Zero(shorts))));
    largest = hn::Max(largest, error);
  }
  if (!hn::AllFalse(shorts, hn::Gt(largest, half_step))) {
    for (const auto& error : errors) {
      counts.moved += static_cast<std::uint32_t>(hn::CountTrue(shorts, hn::Gt(error, half_step)));
    }
  }
  store_sums(sums, sum, part, out);
  const auto base = spread(&parts.base[part]);
  const auto end = hn::Add(base, hn::Set(words, kWindow << 8));
  // Errors that large are far beyond any step, but they and their squares would be too large to add
  // up.
  const auto is_small = hn::Lt(hn::BitCast(words, largest), hn::Set(words, kMostError));
  const auto in_window =
      hn::And(hn::Gt(window.least, hn::Sub(base, hn::Set(words, 2))), hn::Lt(window.most, end));
  counts.fits = hn::AllTrue(words, hn::And(in_window, is_small));
  const auto worst = hn::BitCast(shorts, spread(&parts.worst[part]));
  counts.worse = !hn::AllFalse(shorts, hn::Gt(largest, worst));
  if (counts.worse) store_largest(largest, part, out);
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
  std::vector<float> scales;          // of each part, up to a whole vector of them
  std::vector<std::int8_t> zeros;     // likewise
  std::vector<UnitTable> own_tables;  // where kBf16Tables does not serve
  std::uint64_t number = 0;
};

void make_own_tables(Row& row) {
  row.own_tables.resize(row.build.groups);
  row.about.tables = row.own_tables[0].data();
  for (std::size_t g = 0; g < row.build.groups; ++g) {
    const std::size_t first = g * row.parts_per_group;
    const float unit = row.about.unit[first];
    if (row.about.fits[first] != 0) {
      make_table(row.scales[first], row.zeros[first], unit, row.own_tables[g]);
    }
    for (std::size_t part = first; part < first + row.parts_per_group; ++part) {
      row.about.table[part] = static_cast<std::uint32_t>(g * sizeof(UnitTable));
    }
  }
}

// Each group's number for all of its parts.
template <typename T>
void spread_groups(const std::vector<T>& groups, const Row& row, std::vector<T>& parts) {
  const auto of_this = std::span(groups).subspan(row.number * row.build.groups, row.build.groups);
  auto out = parts.begin();
  if (row.parts_per_group == 1) {
    std::ranges::copy(of_this, out);
    return;
  }
  for (const T& value : of_this) {
    out = std::fill_n(out, row.parts_per_group, value);
  }
}

// Whether all scales fit.
bool prepare(Row& row, double worst_error) {
  spread_groups(row.build.scales, row, row.scales);
  if (!row.build.zeros.empty()) spread_groups(row.build.zeros, row, row.zeros);
  const RowTraits traits = describe_parts(
      {.scales = row.scales, .zeros = row.zeros, .worst_error = static_cast<float>(worst_error)},
      row.about);
  row.about.tables = kBf16Tables[0].data();
  if (traits.needs_tables) make_own_tables(row);
  return traits.all_fit;
}

// The sums of a group: as PartSums has them, of all of its parts.
struct GroupTotals {
  std::array<std::int64_t, 4> products = {};
  std::int64_t build = 0;
};

GroupTotals add_parts(const PartSums& sums, std::size_t first, std::size_t count) {
  GroupTotals total;
  for (std::size_t part = first; part < first + count; ++part) {
    for (std::size_t i = 0; i < total.products.size(); ++i) {
      total.products[i] += sums.products[part][i];
    }
    total.build += sums.build[part];
  }
  return total;
}

void count_zeros(const Row& row, RowRange groups, ErrorSums& sums) {
  for (std::uint64_t g = groups.first; g < groups.end(); ++g) {
    const GroupTotals total = add_parts(row.sums, g * row.parts_per_group, row.parts_per_group);
    const bool dead = total.build == 0;
    const bool source_dead = total.products[2] == 0;
    sums.groups_identical += total.products[0] == 0 ? 1 : 0;
    sums.dead_groups += dead ? 1 : 0;
    sums.source_dead_groups += source_dead ? 1 : 0;
    sums.dead_in_both += dead && source_dead ? 1 : 0;
  }
}

// Groups of one part each without a dead one: all that are left to count are the identical ones.
bool count_identical(const Row& row, RowRange groups, ErrorSums& sums) {
  const Ints d;
  const auto kind = hn::And(hn::Iota(d, 0), hn::Set(d, 3));
  std::size_t identical = 0;
  std::size_t dead = 0;
  for (std::uint64_t g = groups.first; g < groups.end(); g += kBlocks) {
    const auto is_zero = hn::Eq(hn::LoadU(d, row.sums.products[g].data()), hn::Zero(d));
    identical += hn::CountTrue(d, hn::And(is_zero, hn::Eq(kind, hn::Zero(d))));
    // What is dead on either side has no product with the other.
    dead += hn::CountTrue(d, hn::And(is_zero, hn::Eq(kind, hn::Set(d, 3))));
  }
  if (dead == 0) sums.groups_identical += identical;
  return dead == 0;
}

// Adds groups to the sums of their row as if their lanes had been added up. Each sum waits for what
// was added before, so all five are taken at once. kParts: of a group, when known before; else 0.
template <std::size_t kParts>
void add_group_sums(const Row& row, RowRange groups, ErrorSums& sums) {
  const hn::CappedTag<double, 4> d;
  const hn::Rebind<std::int32_t, decltype(d)> ints;
  constexpr std::size_t kWidth = hn::MaxLanes(decltype(d){});
  const std::size_t parts = kParts != 0 ? kParts : row.parts_per_group;
  HWY_ALIGN std::array<double, 4> four = {sums.abs_error, sums.squared_error, sums.squared_source,
                                          sums.product};
  const auto is_error = hn::FirstN(d, 1);
  auto added = hn::Load(d, four.data());
  auto added_after = hn::Load(d, four.data() + 4 - kWidth);  // where a vector has two lanes
  double squared_build = sums.squared_build;
  for (std::uint64_t g = groups.first; g < groups.end(); ++g) {
    const auto unit = static_cast<double>(row.about.unit[g * parts]);
    const double square = unit * unit;
    auto total = hn::Zero(d);
    auto total_after = hn::Zero(d);
    std::int64_t build = 0;
    for (std::size_t part = g * parts; part < (g + 1) * parts; ++part) {
      const std::int32_t* products = row.sums.products[part].data();
      total = hn::Add(total, hn::PromoteTo(d, hn::LoadU(ints, products)));
      total_after = hn::Add(total_after, hn::PromoteTo(d, hn::LoadU(ints, products + 4 - kWidth)));
      build += row.sums.build[part];
    }
    // Products with powers of two are exact.
    const auto squares = hn::Set(d, square);
    added = hn::MulAdd(total, hn::IfThenElse(is_error, hn::Set(d, unit), squares), added);
    added_after = hn::MulAdd(total_after, squares, added_after);
    squared_build += static_cast<double>(build) * square;
  }
  if constexpr (kWidth < 4) hn::Store(added_after, d, four.data() + 4 - kWidth);
  hn::Store(added, d, four.data());
  sums.abs_error = four[0];
  sums.squared_error = four[1];
  sums.squared_source = four[2];
  sums.product = four[3];
  sums.squared_build = squared_build;
}

// Looks closer at the groups in which something is worse than what has been worst.
void note_worst(const Row& row, RowRange groups, ErrorSums& sums) {
  ErrorSums again{.worst = sums.worst};
  for (std::uint64_t g = groups.first; g < groups.end(); ++g) {
    const std::size_t first = g * row.parts_per_group;
    const auto unit = static_cast<double>(row.about.unit[first]);
    double most = -1.0;
    for (std::size_t part = first; part < first + row.parts_per_group; ++part) {
      if (row.counts[part / kBlocks].worse) most = std::max(most, row.sums.largest[part] * unit);
    }
    if (most <= again.worst.error) continue;
    add_int4_groups(row.build, row.source, row.number, {.first = g, .count = 1}, again);
  }
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

// Groups that are whole vectors together, from the sums of their parts. False, and nothing is
// added, when one of them does not fit.
bool add_whole_vectors(const Row& row, RowRange groups, ErrorSums& sums) {
  const std::size_t first = groups.first * row.parts_per_group;
  const std::size_t count = groups.count * row.parts_per_group;
  const BlockCounts counts =
      sum_counts(std::span(row.counts).subspan(first / kBlocks, count / kBlocks));
  if (!counts.fits) return false;
  if (row.parts_per_group == 1) {
    add_group_sums<1>(row, groups, sums);
    if (!count_identical(row, groups, sums)) count_zeros(row, groups, sums);
  } else {
    add_group_sums<0>(row, groups, sums);
    count_zeros(row, groups, sums);
  }
  sums.weights += groups.count * row.build.group_size;
  sums.groups += groups.count;
  sums.values_identical += counts.identical;
  sums.moved += counts.moved;
  sums.saturated_low += counts.low;
  sums.saturated_high += counts.high;
  if (!row.build.zeros.empty()) {
    for (std::size_t part = first; part < first + count; part += row.parts_per_group) {
      sums.zero_points_used += row.zeros[part] != 0 ? 1 : 0;
    }
  }
  if (counts.worse) note_worst(row, groups, sums);
  return true;
}

bool all_fit(const Row& row, std::size_t part) {
  return std::ranges::all_of(std::span(row.about.fits).subspan(part, kBlocks),
                             [](std::uint32_t fits) { return fits != 0; });
}

void add_row(Row& row, ErrorSums& sums) {
  const bool scales_fit = prepare(row, sums.worst.error);
  const auto* codes = reinterpret_cast<const std::uint8_t*>(row.build.codes.data()) +
                      row.number * row.build.row_bytes;
  const auto* source = reinterpret_cast<const std::uint8_t*>(row.source.bytes.data()) +
                       row.number * row.build.groups * row.build.group_size * 2;
  for (std::size_t part = 0; part < row.parts; part += kBlocks) {
    prefetch(source + part * kPartBytes + kAhead, kBlocks * kPartBytes);
    prefetch(codes + part * (kPartWeights / 2) + kAhead / 4, kBlocks * (kPartWeights / 2));
    BlockCounts& counts = row.counts[part / kBlocks];
    counts = add_blocks(row.about, part, codes, source, row.sums);
    counts.fits = counts.fits && (scales_fit || all_fit(row, part));
  }
  const std::uint64_t step = std::max<std::uint64_t>(1, kBlocks / row.parts_per_group);
  const std::uint64_t whole = row.parts / (step * row.parts_per_group) * step;
  if (!add_whole_vectors(row, {.first = 0, .count = whole}, sums)) {
    for (std::uint64_t g = 0; g < whole; g += step) {
      const RowRange groups{.first = g, .count = step};
      if (add_whole_vectors(row, groups, sums)) continue;
      add_int4_groups(row.build, row.source, row.number, groups, sums);
    }
  }
  add_int4_groups(row.build, row.source, row.number,
                  {.first = whole, .count = row.build.groups - whole}, sums);
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
  const std::size_t room = hwy::RoundUpTo(parts, hn::Lanes(Floats()));
  Row row{.build = build,
          .source = source,
          .parts_per_group = build.group_size / kPartWeights,
          .parts = parts / kBlocks * kBlocks,
          .about = Parts(room + kSpread),
          .sums = PartSums(parts),
          .counts = std::vector<BlockCounts>(parts / kBlocks),
          .scales = std::vector<float>(room),
          .zeros = std::vector<std::int8_t>(room),
          .own_tables = {}};
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
