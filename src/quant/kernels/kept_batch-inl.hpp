// What is to be known of the weights of some parts of 32, for builds that kept the levels of their
// source (kept_levels.cpp). Compiled for the one CPU target that it is written for, hence the guard
// that toggles.

#if defined(GRIDSCOPE_QUANT_KERNELS_KEPT_BATCH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GRIDSCOPE_QUANT_KERNELS_KEPT_BATCH_INL
#undef GRIDSCOPE_QUANT_KERNELS_KEPT_BATCH_INL
#else
#define GRIDSCOPE_QUANT_KERNELS_KEPT_BATCH_INL
#endif

#include <hwy/highway.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "quant/kernels/int4_units.hpp"
#include "quant/kernels/kept_levels.hpp"
#include "quant/kernels/kept_tables.hpp"

#if HWY_TARGET == HWY_AVX3_DL

// Named one by one: Highway's own list for this target is about more, and about AVX-VNNI, which
// many of its CPUs have not. GFNI and conflict detection (for leading zeros), which it does not ask
// for, are asked for by can_look().
#undef GRIDSCOPE_KEPT_ATTRIBUTES
#define GRIDSCOPE_KEPT_ATTRIBUTES HWY_TARGET_STR_AVX3 ",avx512cd,avx512vbmi,avx512vpopcntdq,gfni"

HWY_PUSH_ATTRIBUTES(GRIDSCOPE_KEPT_ATTRIBUTES)
namespace gridscope::quant::HWY_NAMESPACE {

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
  // Where weights of level 0 are not 0, all levels are taken to be at the next number.
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

// Whether a weight of level 0 is not 0.
HWY_INLINE bool has_null_elsewhere(const KeptRow& row, std::size_t part) {
  const Vector codes =
      unpack<0>(_mm512_zextsi128_si512(load_quarter(row.codes + part * kPartCodeBytes)));
  const Vector weights = _mm512_loadu_si512(row.source + part * kPartSourceBytes);
  const auto is_null = _mm512_cmpeq_epi16_mask(_mm512_and_si512(codes, _mm512_set1_epi16(0xf)),
                                               _mm512_set1_epi16(-kInt4Lowest));
  return _mm512_mask_test_epi16_mask(is_null, weights, _mm512_set1_epi16(0x7fff)) != 0;
}

// Of 16 parts from number `part` of the row on, those of a set that have one.
HWY_NOINLINE std::uint32_t with_null_elsewhere(const KeptRow& row, std::size_t part,
                                               std::uint32_t parts) {
  std::uint32_t found = 0;
  for (std::uint32_t rest = parts; rest != 0; rest &= rest - 1) {
    const auto j = static_cast<std::uint32_t>(std::countr_zero(rest));
    found |= (has_null_elsewhere(row, part + j) ? 1U : 0U) << j;
  }
  return found;
}

// Finds those that have kept their levels, from number `first` of the batch and `part` of the row
// on: each weight is the product or the next number, all of a part to one side, all of a level
// alike.
HWY_INLINE void find_kept(const KeptRow& row, std::size_t part, std::size_t first, Batch& batch) {
  const std::uint32_t side = parts_with_any(load(&batch.not_further[first / 2]));
  const std::uint32_t not_nearer = parts_with_any(load(&batch.not_nearer[first / 2]));
  const Quarter apart = load_quarter(&batch.apart[first]);
  const Quarter beside = load_quarter(&batch.beside[first]);
  const std::uint32_t may_be = batch.may_be[first / kLanes];
  std::uint32_t others =
      (side & not_nearer) | std::uint32_t{_mm_test_epi8_mask(apart, apart)} | (may_be ^ 0xffffU);
  const std::uint32_t of_all_levels = _mm_cmpeq_epi8_mask(beside, _mm_set1_epi8(-1)) & ~others;
  if (of_all_levels != 0) others |= with_null_elsewhere(row, part, of_all_levels);
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

}  // namespace gridscope::quant::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
#endif
