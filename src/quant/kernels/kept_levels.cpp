// Weights of a build that kept the levels are the rounded products of level and scale, or the next
// number, and which of both depends on the level alone (kept_tables.hpp). So the numbers of 32
// weights are only compared with the products. All else follows from how often each level occurs,
// and how often at the next number: bits by level are turned into counts by level eight bytes at a
// time, and sums over 32 weights become sums over 8 levels, in whole numbers that are added up over
// a row, apart for each power of two of the steps.

#include "quant/kernels/kept_levels.hpp"

#define HWY_WANT_AVX3_DL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/kernels/kept_levels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "gridscope/quant/error_sums.hpp"
#include "quant/kernels/certain_levels.hpp"
#include "quant/kernels/int4_units.hpp"
#include "quant/kernels/kept_tables.hpp"
#include "quant/kernels/prefetch.hpp"

// Named one by one: Highway's own list for this target is about more, and about AVX-VNNI, which
// many of its CPUs have not. GFNI and conflict detection, which it does not ask for, are asked for
// below.
#if HWY_TARGET == HWY_AVX3_DL
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR_AVX3 ",avx512cd,avx512vbmi,avx512vpopcntdq,gfni")
#else
HWY_BEFORE_NAMESPACE();
#endif
namespace gridscope::quant::HWY_NAMESPACE {

#if HWY_TARGET != HWY_AVX3_DL

bool can_look() {
  return false;
}

std::size_t look_at_row(const KeptRow& /*row*/, const KeptSums& out) {
  return out.counts.size();
}

#else

bool can_look() {
  return __builtin_cpu_supports("gfni") != 0 && __builtin_cpu_supports("avx512cd") != 0;
}

using Vector = __m512i;
using Quarter = __m128i;

// Steps within 2^-90 to 2^90 (as exponent fields), so that no weight is beyond the normal numbers.
constexpr std::uint32_t kLeastField = 37;
constexpr std::uint32_t kMostField = 217;
// Parts that are looked at before what was found of them is put together, one step after the other
// for all of them: a CPU begins with the next ones meanwhile, where all steps for a few would be
// too long a chain.
constexpr std::size_t kBatch = 32;
constexpr std::size_t kLanes = 16;  // of 32 bits
constexpr std::size_t kPairs = kBatch / 2;
// Parts whose sums fit into 32 bits: none comes to more than 2^20 of one.
constexpr std::size_t kMostParts = 1024;

// So many, or all.
HWY_INLINE __mmask16 first_lanes(std::size_t count) {
  return static_cast<__mmask16>(count < kLanes ? (1U << count) - 1 : 0xffffU);
}

HWY_INLINE Quarter load_quarter(const void* at) {
  return _mm_loadu_si128(static_cast<const Quarter*>(at));
}

HWY_INLINE Vector load(const void* at) {
  return _mm512_load_si512(at);
}

// Of the parts of a batch, or of its pairs.
struct Batch {
  // By their scales: where their ProductBits lie and where the sums that they belong to, in bytes;
  // the upper byte of a product but for what is in the table, twice; the seven bits that select the
  // other tables.
  alignas(64) std::array<std::uint32_t, kBatch> products;
  alignas(64) std::array<std::uint32_t, kBatch> sums;
  alignas(64) std::array<std::uint32_t, kBatch> upper;
  alignas(64) std::array<std::uint32_t, kBatch> significand;
  // Of 16 parts each, bit by bit: whether they may have kept levels; whether a number and the next
  // one may be farther apart than the worst error so far.
  std::array<std::uint16_t, kBatch / kLanes> may_be;
  std::array<std::uint16_t, kBatch / kLanes> may_be_worse;

  // How often each level occurs, at all and at the next number.
  alignas(64) std::array<std::array<std::uint32_t, kLanes>, kPairs> counts;
  alignas(64) std::array<std::array<std::uint32_t, kLanes>, kPairs> beside_counts;
  // Sets of levels have bit q - 1 for q or -q: those that occur, those at the next number, and of
  // these the ones that are at the product too.
  alignas(64) std::array<std::uint8_t, kBatch> present;
  alignas(64) std::array<std::uint8_t, kBatch> beside;
  alignas(64) std::array<std::uint8_t, kBatch> apart;
  // Sets of weights: those that are not at the product or the next number to one side.
  alignas(64) std::array<std::uint64_t, kPairs> not_further;
  alignas(64) std::array<std::uint64_t, kPairs> not_nearer;

  // What follows, of 16 parts each: whether they have kept their levels, in fours; their side.
  std::array<std::uint16_t, kBatch / kLanes> kept;
  std::array<std::uint16_t, kBatch / kLanes> side;
  alignas(64) std::array<std::uint32_t, kBatch> units;  // where their LevelUnits lie, in bytes
};

// What is looked at of 16 parts, some of which may not be there.
HWY_INLINE void clear(Batch& batch) {
  for (auto* sets : {&batch.present, &batch.beside, &batch.apart}) sets->fill(0);
  for (auto* weights : {&batch.not_further, &batch.not_nearer}) weights->fill(0);
}

// ---- what is known by the scales ----------------------------------------------------------------

// Of the parts of a batch, by the power of two of their scales and by their place in the four: the
// next one to be added seldom waits for the last.
struct FourSums {
  // Blocks of errors, their squares, an eighth of their products with the build, the squares of the
  // build from bit 15 on; then of the bits below.
  alignas(64) std::array<std::array<std::int32_t, kLanes>, kKeptParts> high;
  alignas(64) std::array<std::array<std::int32_t, 4>, kKeptParts> low;
};
using Sums = std::array<FourSums, kMostPowers + 1>;

HWY_INLINE void select_tables(const KeptRow& row, std::size_t first, std::size_t count,
                              Batch& batch) {
  const auto of_scale = static_cast<float>(row.worst_error) * ((1 << kUnitBits) / kMostToNext);
  for (std::size_t i = 0; i < count; i += kLanes) {
    const __mmask16 some = first_lanes(count - i);
    const Vector bits = _mm512_maskz_loadu_epi32(some, row.scales + first + i);
    const Vector field = _mm512_and_si512(_mm512_srli_epi32(bits, 23), _mm512_set1_epi32(0xff));
    const Vector above = _mm512_sub_epi32(field, _mm512_set1_epi32(kLeastField));
    const auto is_within =
        _mm512_cmple_epu32_mask(above, _mm512_set1_epi32(kMostField - kLeastField));
    const auto is_bf16 = _mm512_testn_epi32_mask(bits, _mm512_set1_epi32(0xffff));
    const Vector stored = _mm512_srli_epi32(bits, 16);
    const Vector upper = _mm512_and_si512(stored, _mm512_set1_epi32(0xff00));
    const Vector exponents = _mm512_and_si512(bits, _mm512_set1_epi32(0x7f800000));
    const Vector power = _mm512_sub_epi32(field, _mm512_set1_epi32(row.least_field));
    const Vector low_byte = _mm512_and_si512(stored, _mm512_set1_epi32(0xff));
    _mm512_store_si512(&batch.significand[i], _mm512_and_si512(stored, _mm512_set1_epi32(0x7f)));
    static_assert(sizeof(ProductBits) == 1U << 5U);
    _mm512_store_si512(&batch.products[i], _mm512_slli_epi32(low_byte, 5));
    _mm512_store_si512(&batch.upper[i], _mm512_or_si512(upper, _mm512_slli_epi32(upper, 16)));
    _mm512_store_si512(&batch.sums[i],
                       _mm512_mullo_epi32(power, _mm512_set1_epi32(sizeof(FourSums))));
    batch.may_be[i / kLanes] = static_cast<std::uint16_t>(is_within & is_bf16);
    batch.may_be_worse[i / kLanes] = _mm512_mask_cmp_ps_mask(some, _mm512_castsi512_ps(exponents),
                                                             _mm512_set1_ps(of_scale), _CMP_GT_OQ);
  }
}

// ---- the weights of two parts -------------------------------------------------------------------

// The codes of one of four parts in order, 16 bits each, of which the lowest four count.
template <int kPart>
HWY_INLINE Vector unpack(Vector codes) {
  // Bits to begin at: of four codes each.
  const Vector from = _mm512_broadcast_i64x4(_mm256_set_epi64x(
      0x003c'0038'0034'0030, 0x002c'0028'0024'0020, 0x001c'0018'0014'0010, 0x000c'0008'0004'0000));
  constexpr long long kLow = 2 * kPart;
  constexpr long long kHigh = kLow + 1;
  const Vector order = _mm512_set_epi64(kHigh, kHigh, kHigh, kHigh, kLow, kLow, kLow, kLow);
  return _mm512_maskz_multishift_epi64_epi8(0x5555'5555'5555'5555, from,
                                            _mm512_permutexvar_epi64(order, codes));
}

// The rounded products of a part as BF16 numbers.
HWY_INLINE Vector multiply(Vector codes, const Batch& batch, std::size_t at) {
  const auto* const tables = reinterpret_cast<const std::uint8_t*>(kProductBits.data());
  const Vector low = _mm512_broadcast_i64x4(
      _mm256_load_si256(reinterpret_cast<const __m256i*>(tables + batch.products[at])));
  const Vector not_null = _mm512_broadcast_i64x4(_mm256_set_epi64x(-1, ~0xffffLL, -1, -1));
  const Vector upper =
      _mm512_and_epi32(not_null, _mm512_set1_epi32(static_cast<int>(batch.upper[at])));
  return _mm512_permutexvar_epi16(codes, _mm512_add_epi16(low, upper));
}

// By how many BF16 numbers the source lies beyond the products.
HWY_INLINE Vector subtract(const std::uint8_t* source, Vector products) {
  const Vector weights = _mm512_loadu_si512(source);
  // 0 and -0 are as far from a product as that is from 0.
  const auto is_some = _mm512_test_epi16_mask(weights, _mm512_set1_epi16(0x7fff));
  return _mm512_mask_sub_epi16(products, is_some, weights, products);
}

// The bits of levels, a byte for each weight, counted: 32 bits for each level of the first part,
// then of the second.
HWY_INLINE Vector count_levels(Vector bits) {
  const Vector turn = _mm512_set1_epi64(static_cast<long long>(0x8040201008040201));
  // Then a byte for each level holds its bits of eight weights; the four of a level come together.
  const Vector order = _mm512_set_epi8(
      63, 47, 31, 15, 62, 46, 30, 14, 61, 45, 29, 13, 60, 44, 28, 12, 59, 43, 27, 11, 58, 42, 26,
      10, 57, 41, 25, 9, 56, 40, 24, 8, 55, 39, 23, 7, 54, 38, 22, 6, 53, 37, 21, 5, 52, 36, 20, 4,
      51, 35, 19, 3, 50, 34, 18, 2, 49, 33, 17, 1, 48, 32, 16, 0);
  const Vector turned = _mm512_gf2p8affine_epi64_epi8(turn, bits, 0);
  return _mm512_popcnt_epi32(_mm512_permutexvar_epi8(order, turned));
}

HWY_INLINE void store_set(__mmask16 levels, std::uint8_t* out) {
  _store_mask16(reinterpret_cast<__mmask16*>(out), levels);
}

HWY_INLINE void store_weights(__mmask64 weights, std::uint64_t* out) {
  _store_mask64(reinterpret_cast<__mmask64*>(out), weights);
}

// Two parts from number `at` of the batch on. `codes`: as unpack() gives them; `beyond`: as
// subtract() does.
HWY_INLINE void look_at_two(const std::array<Vector, 2>& codes, const std::array<Vector, 2>& beyond,
                            std::size_t at, Batch& batch) {
  const std::size_t pair = at / 2;
  // A byte for each weight: eight of the first part, eight of the second, and so on.
  const Vector bytes = _mm512_packus_epi16(codes[0], codes[1]);
  const Vector distance = _mm512_packs_epi16(beyond[0], beyond[1]);
  const Vector bit_of_level =
      _mm512_broadcast_i32x4(_mm_set_epi8(64, 32, 16, 8, 4, 2, 1, 0, 1, 2, 4, 8, 16, 32, 64, -128));
  // Where weights of level 0 are not 0, all levels are taken to be at the next number, which no
  // step explains.
  const Vector bits_beside = _mm512_broadcast_i32x4(
      _mm_set_epi8(64, 32, 16, 8, 4, 2, 1, -1, 1, 2, 4, 8, 16, 32, 64, -128));
  const auto elsewhere = _mm512_test_epi8_mask(distance, distance);
  const Vector counts = count_levels(_mm512_permutexvar_epi8(bytes, bit_of_level));
  const Vector beside = count_levels(_mm512_maskz_permutexvar_epi8(elsewhere, bytes, bits_beside));
  _mm512_store_si512(&batch.counts[pair], counts);
  _mm512_store_si512(&batch.beside_counts[pair], beside);
  store_set(_mm512_test_epi32_mask(counts, counts), &batch.present[at]);
  const auto has_beside = _mm512_test_epi32_mask(beside, beside);
  store_set(has_beside, &batch.beside[at]);
  store_set(_mm512_mask_cmpneq_epi32_mask(has_beside, beside, counts), &batch.apart[at]);
  const Vector but_one = _mm512_set1_epi8(-2);
  store_weights(_mm512_test_epi8_mask(distance, but_one), &batch.not_further[pair]);
  store_weights(_mm512_test_epi8_mask(_mm512_add_epi8(distance, _mm512_set1_epi8(1)), but_one),
                &batch.not_nearer[pair]);
}

// Four parts: number `part` of the row, `at` of the batch.
HWY_INLINE void look_at_four(const KeptRow& row, std::size_t part, std::size_t at, Batch& batch) {
  const Vector codes = _mm512_loadu_si512(row.codes + part * kPartCodeBytes);
  const std::uint8_t* const source = row.source + part * kPartSourceBytes;
  const std::array four = {unpack<0>(codes), unpack<1>(codes), unpack<2>(codes), unpack<3>(codes)};
  std::array<Vector, kKeptParts> beyond;
  for (std::size_t j = 0; j < beyond.size(); ++j) {
    beyond[j] = subtract(source + j * kPartSourceBytes, multiply(four[j], batch, at + j));
  }
  look_at_two({four[0], four[1]}, {beyond[0], beyond[1]}, at, batch);
  look_at_two({four[2], four[3]}, {beyond[2], beyond[3]}, at + 2, batch);
}

// ---- 16 parts -----------------------------------------------------------------------------------

// A bit for each part of which a weight is in the sets.
HWY_INLINE std::uint32_t parts_with_any(Vector weights) {
  const Vector halves = _mm512_or_si512(weights, _mm512_ror_epi64(weights, 32));
  const Quarter any = _mm512_cvtepi64_epi16(_mm512_or_si512(halves, _mm512_ror_epi64(halves, 16)));
  return _mm_test_epi8_mask(any, any);
}

// Whether one of a four is among them, for all of the four.
HWY_INLINE std::uint32_t fours_with_any(std::uint32_t parts) {
  const std::uint32_t two = parts | parts >> 1U;
  return ((two | two >> 2U) & 0x1111U) * 0xfU;
}

// Of groups of so many parts, how many have all of their bits set.
HWY_INLINE std::uint64_t whole_groups(std::uint32_t parts, std::size_t parts_per_group) {
  if (parts_per_group > 1) parts &= parts >> 1U & 0x5555U;
  if (parts_per_group > 2) parts &= parts >> 2U & 0x1111U;
  return static_cast<std::uint64_t>(std::popcount(parts));
}

// Finds those that have kept their levels, from number `first` of the batch on: each weight is the
// product or the next number, all of a part to one side, all of a level alike.
HWY_INLINE void find_kept(std::size_t first, Batch& batch) {
  const std::uint32_t side = parts_with_any(load(&batch.not_further[first / 2]));
  const std::uint32_t not_nearer = parts_with_any(load(&batch.not_nearer[first / 2]));
  const Quarter apart = load_quarter(&batch.apart[first]);
  const Quarter beside = load_quarter(&batch.beside[first]);
  const std::uint32_t may_be = batch.may_be[first / kLanes];
  const std::uint32_t others =
      (side & not_nearer) | std::uint32_t{_mm_test_epi8_mask(apart, apart)} |
      std::uint32_t{_mm_cmpeq_epi8_mask(beside, _mm_set1_epi8(-1))} | (may_be ^ 0xffffU);
  batch.kept[first / kLanes] = static_cast<std::uint16_t>(fours_with_any(others) ^ 0xffffU);
  batch.side[first / kLanes] = static_cast<std::uint16_t>(side);
  const Vector units = _mm512_slli_epi32(load(&batch.significand[first]), 6);
  static_assert(sizeof(LevelUnits) == 1U << 6U);
  _mm512_store_si512(&batch.units[first],
                     _mm512_mask_add_epi32(units, static_cast<__mmask16>(side), units,
                                           _mm512_set1_epi32(sizeof(kLevelUnits[0]))));
}

HWY_INLINE void count_groups(const KeptRow& row, std::size_t first, const Batch& batch,
                             KeptTotals& out) {
  const __mmask16 kept = batch.kept[first / kLanes];
  const Quarter beside = load_quarter(&batch.beside[first]);
  const Quarter present = load_quarter(&batch.present[first]);
  out.groups_identical +=
      whole_groups(_mm_mask_testn_epi8_mask(kept, beside, beside), row.parts_per_group);
  out.dead_groups +=
      whole_groups(_mm_mask_testn_epi8_mask(kept, present, present), row.parts_per_group);
}

// ---- sums ---------------------------------------------------------------------------------------

// Counts of weights, lanes of them to be taken together.
struct Counters {
  Vector levels;  // by level
  Vector beside;  // likewise, at the next number
  Vector highest;
};

HWY_INLINE Vector count_highest(const std::uint8_t* codes) {
  const Vector bits = _mm512_loadu_si512(codes);
  const Vector two = _mm512_and_si512(bits, _mm512_srli_epi16(bits, 1));
  return _mm512_popcnt_epi64(
      _mm512_ternarylogic_epi64(two, _mm512_srli_epi16(two, 2), _mm512_set1_epi8(0x11), 0x80));
}

template <class T>
HWY_INLINE const T* at_byte(const T* table, std::uint32_t bytes) {
  return reinterpret_cast<const T*>(reinterpret_cast<const std::uint8_t*>(table) + bytes);
}

template <class T>
HWY_INLINE T* at_byte(T* table, std::uint32_t bytes) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uint8_t*>(table) + bytes);
}

// `counts`: 16 bits each, three times of those at the next number, then of all.
HWY_INLINE void add_part(Vector counts, const Batch& batch, std::size_t at, Sums& sums) {
  FourSums& to = *at_byte(sums.data(), batch.sums[at]);
  auto& high = to.high[at % kKeptParts];
  auto& low = to.low[at % kKeptParts];
  const Vector units = load(at_byte(kLevelUnits[0].data(), batch.units[at]));
  _mm512_store_si512(&high, _mm512_add_epi32(load(&high), _mm512_madd_epi16(counts, units)));
  const Quarter squares = load_quarter(&kLowSquares[batch.significand[at]]);
  const Quarter all = _mm512_extracti32x4_epi32(counts, 3);
  _mm_store_si128(reinterpret_cast<Quarter*>(&low),
                  _mm_add_epi32(load_quarter(&low), _mm_madd_epi16(all, squares)));
}

HWY_INLINE void add_two(const Batch& batch, std::size_t at, Counters& counters, Sums& sums) {
  const Vector of_first =
      _mm512_set_epi16(14, 12, 10, 8, 6, 4, 2, 0, 46, 44, 42, 40, 38, 36, 34, 32, 46, 44, 42, 40,
                       38, 36, 34, 32, 46, 44, 42, 40, 38, 36, 34, 32);
  const Vector of_second = _mm512_or_si512(of_first, _mm512_set1_epi16(16));
  const Vector counts = load(&batch.counts[at / 2]);
  const Vector beside = load(&batch.beside_counts[at / 2]);
  add_part(_mm512_permutex2var_epi16(counts, of_first, beside), batch, at, sums);
  add_part(_mm512_permutex2var_epi16(counts, of_second, beside), batch, at + 1, sums);
  counters.levels = _mm512_add_epi32(counters.levels, counts);
  counters.beside = _mm512_add_epi32(counters.beside, beside);
}

// What has been added up of a row.
struct RowSums {
  Counters counters;
  Sums sums;
};

HWY_INLINE void clear(const KeptRow& row, RowSums& sums) {
  const Vector zero = _mm512_setzero_si512();
  sums.counters = {.levels = zero, .beside = zero, .highest = zero};
  for (std::size_t power = 0; power <= row.powers; ++power) {
    FourSums& of = sums.sums[power];
    for (auto& high : of.high) _mm512_store_si512(&high, zero);
    static_assert(sizeof(of.low) == sizeof(zero));
    _mm512_store_si512(&of.low, zero);
  }
}

HWY_INLINE std::int64_t sum_of(Quarter lanes) {
  const Quarter two = _mm_add_epi32(lanes, _mm_shuffle_epi32(lanes, 0x4e));
  return std::int64_t{_mm_extract_epi32(two, 0)} + _mm_extract_epi32(two, 1);
}

// `field`: the exponent of the unit.
HWY_INLINE void add_up(const FourSums& sums, std::uint32_t field, KeptTotals& out) {
  Vector high = load(&sums.high[0]);
  Quarter low = load_quarter(&sums.low[0]);
  for (std::size_t j = 1; j < kKeptParts; ++j) {
    high = _mm512_add_epi32(high, load(&sums.high[j]));
    low = _mm_add_epi32(low, load_quarter(&sums.low[j]));
  }
  const std::int64_t error = sum_of(_mm512_castsi512_si128(high));
  const std::int64_t squared_error = sum_of(_mm512_extracti32x4_epi32(high, 1));
  const std::int64_t cross = sum_of(_mm512_extracti32x4_epi32(high, 2)) * 8;
  const std::int64_t build =
      sum_of(_mm512_extracti32x4_epi32(high, 3)) * (1 << kLowSquareBits) + sum_of(low);
  const auto unit = static_cast<double>(std::bit_cast<float>(field << 23U));
  const double square = unit * unit;
  // v = y + e here.
  out.abs_error += static_cast<double>(error) * unit;
  out.squared_error += static_cast<double>(squared_error) * square;
  out.squared_source += static_cast<double>(build + 2 * cross + squared_error) * square;
  out.product += static_cast<double>(build + cross) * square;
}

HWY_INLINE void add_up(const KeptRow& row, const RowSums& sums, KeptTotals& out) {
  for (std::uint32_t power = 0; power <= row.powers; ++power) {
    add_up(sums.sums[power], row.least_field + power - kUnitBits, out);
  }
  const Counters& counters = sums.counters;
  constexpr __mmask16 kLowest = 0x8080;
  out.identical -= static_cast<std::uint32_t>(_mm512_reduce_add_epi32(counters.beside));
  out.low += static_cast<std::uint32_t>(_mm512_mask_reduce_add_epi32(kLowest, counters.levels));
  out.high += static_cast<std::uint64_t>(_mm512_reduce_add_epi64(counters.highest));
}

// ---- notes --------------------------------------------------------------------------------------

HWY_INLINE Vector load_eight(const std::uint8_t* sets) {
  return _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const Quarter*>(sets)));
}

// All sets at the next number that a step allows, as eight bytes.
HWY_INLINE long long allowed_sets(const Batch& batch, std::size_t at) {
  const SetsAtNext& sets = kSetsAtNext[0].data()[batch.units[at] / sizeof(LevelUnits)];
  long long all = 0;
  static_assert(sizeof(all) == sizeof(sets));
  std::memcpy(&all, sets.data(), sizeof(all));
  return all;
}

// Bit j: whether one of the sets of part j that a step allows, as far as its levels are present, is
// just that of the levels beside. `first`: of eight parts.
HWY_INLINE __mmask8 match_sets(const Batch& batch, std::size_t first) {
  const Vector spread =
      _mm512_broadcast_i32x4(_mm_set_epi8(8, 8, 8, 8, 8, 8, 8, 8, 0, 0, 0, 0, 0, 0, 0, 0));
  const Vector sets =
      _mm512_set_epi64(allowed_sets(batch, first + 7), allowed_sets(batch, first + 6),
                       allowed_sets(batch, first + 5), allowed_sets(batch, first + 4),
                       allowed_sets(batch, first + 3), allowed_sets(batch, first + 2),
                       allowed_sets(batch, first + 1), allowed_sets(batch, first));
  const Vector present =
      _mm512_and_si512(sets, _mm512_shuffle_epi8(load_eight(&batch.present[first]), spread));
  const Vector same = _mm512_movm_epi8(_mm512_cmpeq_epi8_mask(
      present, _mm512_shuffle_epi8(load_eight(&batch.beside[first]), spread)));
  return _mm512_test_epi64_mask(same, same);
}

// What is to be noted of 16 parts, as KeptLevels has it.
HWY_INLINE Quarter describe_parts(const Batch& batch, std::size_t first) {
  const Vector present = _mm512_cvtepu8_epi32(load_quarter(&batch.present[first]));
  const Vector beside = _mm512_cvtepu8_epi32(load_quarter(&batch.beside[first]));
  const Vector certain_words = _mm512_broadcast_i64x4(
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kCertainBits.data())));
  const Vector word = _mm512_permutexvar_epi32(_mm512_srli_epi32(present, 5), certain_words);
  const auto is_certain = _mm512_test_epi32_mask(
      _mm512_srlv_epi32(word, _mm512_and_si512(present, _mm512_set1_epi32(31))),
      _mm512_set1_epi32(1));
  const auto matches = _mm512_kunpackb(match_sets(batch, first + 8), match_sets(batch, first));
  const Vector top = _mm512_sub_epi32(_mm512_set1_epi32(32), _mm512_lzcnt_epi32(present));
  const Vector larger =
      _mm512_mask_mov_epi32(_mm512_set1_epi32(KeptLevels::settled(0, KeptLevels::Scale::kSmaller)),
                            batch.side[first / kLanes],
                            _mm512_set1_epi32(KeptLevels::settled(0, KeptLevels::Scale::kLarger)));
  const Vector scale = _mm512_maskz_mov_epi32(_mm512_test_epi32_mask(beside, beside), larger);
  const Vector settled = _mm512_maskz_or_epi32(matches, top, scale);
  const Vector note =
      _mm512_mask_mov_epi32(_mm512_set1_epi32(KeptLevels::kOpen), is_certain, settled);
  static_assert(KeptLevels::kUnknown == 0);
  return _mm512_maskz_cvtepi32_epi8(batch.kept[first / kLanes], note);
}

// The largest errors of four parts, at `at` of the batch, in units. Whether one is the worst.
HWY_NOINLINE bool find_largest(const KeptRow& row, std::size_t part, const Batch& batch,
                               std::size_t at, const KeptSums& out) {
  bool is_worst = false;
  for (std::size_t j = 0; j < kKeptParts; ++j) {
    const LevelTable& to_next = at_byte(kLevelUnits[0].data(), batch.units[at + j])->to_next;
    int largest = 0;
    for (std::size_t level = 0; level < kMagnitudes; ++level) {
      const bool is_beside = (batch.beside[at + j] >> level & 1U) != 0;
      if (is_beside) largest = std::max<int>(largest, to_next[level]);
    }
    out.largest[part + j] = static_cast<std::int16_t>(largest);
    const int exponent = std::ilogb(row.scales[part + j]) - kUnitBits;
    is_worst = is_worst || std::ldexp(largest, exponent) > row.worst_error;
  }
  return is_worst;
}

// ---- a batch ------------------------------------------------------------------------------------

// Bits of a four, of 16 each.
HWY_INLINE unsigned bits_of_four(std::span<const std::uint16_t> sixteens, std::size_t at) {
  return unsigned{sixteens[at / kLanes]} >> at % kLanes & 0xfU;
}

// Adds a batch of `count` parts, from number `first` of the row on, to the sums of the row. Returns
// how many fours are left to others.
HWY_INLINE std::size_t add_kept(const KeptRow& row, std::size_t first, std::size_t count,
                                const Batch& batch, RowSums& sums, const KeptSums& out) {
  std::size_t others = 0;
  Counters counters = sums.counters;
  for (std::size_t at = 0; at < count; at += kKeptParts) {
    const std::size_t part = first + at;
    const bool kept = bits_of_four(batch.kept, at) != 0;
    BlockCounts& counts = out.counts[part / kKeptParts];
    if (!kept) {
      ++others;
      continue;
    }
    counts.fits = true;
    counts.kept = true;
    add_two(batch, at, counters, sums.sums);
    add_two(batch, at + 2, counters, sums.sums);
    counters.highest =
        _mm512_add_epi64(counters.highest, count_highest(row.codes + part * kPartCodeBytes));
    if (bits_of_four(batch.may_be_worse, at) == 0) continue;
    counts.worse = find_largest(row, part, batch, at, out);
    out.totals.is_worse = out.totals.is_worse || counts.worse;
  }
  sums.counters = counters;
  return others;
}

// Of `count` parts, from number `first` of the row on. Returns how many fours are left to others.
HWY_INLINE std::size_t look_at_batch(const KeptRow& row, std::size_t first, std::size_t count,
                                     RowSums& sums, const KeptSums& out) {
  Batch batch;
  if (count < kBatch) clear(batch);
  select_tables(row, first, count, batch);
  for (std::size_t at = 0; at < count; at += kKeptParts) {
    const std::size_t part = first + at;
    prefetch_parts(row.codes + part * kPartCodeBytes, row.source + part * kPartSourceBytes,
                   kKeptParts);
    look_at_four(row, part, at, batch);
  }
  for (std::size_t at = 0; at < count; at += kLanes) find_kept(at, batch);
  const std::size_t others = add_kept(row, first, count, batch, sums, out);
  out.totals.identical += (count - others * kKeptParts) * kPartWeights;
  for (std::size_t at = 0; at < count; at += kLanes) {
    count_groups(row, at, batch, out.totals);
    if (out.notes == nullptr) continue;
    _mm_mask_storeu_epi8(out.notes + first + at, first_lanes(count - at),
                         describe_parts(batch, at));
  }
  return others;
}

std::size_t look_at_row(const KeptRow& row, const KeptSums& out) {
  const std::size_t parts = out.counts.size() * kKeptParts;
  std::size_t others = 0;
  RowSums sums;
  for (std::size_t first = 0; first < parts; first += kBatch) {
    if (first % kMostParts == 0) clear(row, sums);
    others += look_at_batch(row, first, std::min(kBatch, parts - first), sums, out);
    const bool is_last = first + kBatch >= parts;
    if (is_last || (first + kBatch) % kMostParts == 0) add_up(row, sums, out.totals);
  }
  return others;
}

#endif

}  // namespace gridscope::quant::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace gridscope::quant {

HWY_EXPORT(can_look);
HWY_EXPORT(look_at_row);

bool can_look_for_kept() {
  return HWY_DYNAMIC_DISPATCH(can_look)();
}

std::size_t look_for_kept(const KeptRow& row, const KeptSums& out) {
  return HWY_DYNAMIC_DISPATCH(look_at_row)(row, out);
}

}  // namespace gridscope::quant

#endif
