// The fused comparison of parts of 32 weights, in whole numbers of units (int4_units.hpp). Each
// 128-bit block of a vector works on a part of its own, so that nothing crosses blocks and the same
// code runs on vectors of any width: nibbles become bytes, two table look-ups turn them into 16-bit
// values, the source is shifted to the same unit, and multiply-add pairs give the sums.
// Compiled once for every CPU target that includes it, hence the guard that toggles.

#if defined(GRIDSCOPE_QUANT_KERNELS_COMPARE_PARTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GRIDSCOPE_QUANT_KERNELS_COMPARE_PARTS_INL
#undef GRIDSCOPE_QUANT_KERNELS_COMPARE_PARTS_INL
#else
#define GRIDSCOPE_QUANT_KERNELS_COMPARE_PARTS_INL
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "quant/kernels/blocks-inl.hpp"
#include "quant/kernels/int4_parts-inl.hpp"
#include "quant/kernels/int4_units.hpp"
#include "quant/kernels/part_sums.hpp"

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

HWY_BEFORE_NAMESPACE();
namespace gridscope::quant::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::ScalableTag<std::uint8_t>;
using Words = hn::ScalableTag<std::uint16_t>;
using Shorts = hn::ScalableTag<std::int16_t>;

// Parts of 32 weights that one vector holds.
constexpr std::size_t kBlocks = hn::MaxLanes(Bytes{}) / 16;
constexpr std::size_t kSpread = 4;  // numbers that spread() reads at once

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
  const auto products = add_halves(add_halves(total(sum), total(sums.squared_source)),
                                   add_halves(total(sums.squared_error), total(sums.product)));
  hn::StoreU(products, d, out.products[part].data());
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
  const auto pairs = hn::LoadU(bytes, codes + part * kPartCodeBytes);
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
    const auto stored = hn::BitCast(
        words, load_blocks(bytes, source + part * kPartSourceBytes + i * 16, kPartSourceBytes));
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

}  // namespace gridscope::quant::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
#endif
