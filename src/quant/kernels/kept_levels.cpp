// Weights of a build that kept the levels are the rounded products of level and scale, or the next
// number, and which of both depends on the level alone (kept_tables.hpp). So the numbers of 32
// weights are only compared with the products. All else follows from how often each level occurs,
// and how often at the next number: bits by level are turned into counts by level eight bytes at a
// time, and sums over 32 weights become sums over 8 levels.

#include "quant/kernels/kept_levels.hpp"

#define HWY_WANT_AVX3_DL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/kernels/kept_levels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
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
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR_AVX3 ",avx512cd,avx512vnni,avx512bitalg,gfni")
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
// Parts that are looked at before what was found of them is added up: what is to be done for a few
// is too long a chain for a CPU to begin with the next ones meanwhile.
constexpr std::size_t kBatch = 128;

HWY_INLINE Quarter load_quarter(const void* at) {
  return _mm_loadu_si128(static_cast<const Quarter*>(at));
}

// Block j of vector i: block i of vector j.
HWY_INLINE std::array<Vector, 4> turn_blocks(const std::array<Vector, 4>& v) {
  const Vector ab = _mm512_shuffle_i64x2(v[0], v[1], 0x44);
  const Vector cd = _mm512_shuffle_i64x2(v[2], v[3], 0x44);
  const Vector ab_after = _mm512_shuffle_i64x2(v[0], v[1], 0xee);
  const Vector cd_after = _mm512_shuffle_i64x2(v[2], v[3], 0xee);
  return {_mm512_shuffle_i64x2(ab, cd, 0x88), _mm512_shuffle_i64x2(ab, cd, 0xdd),
          _mm512_shuffle_i64x2(ab_after, cd_after, 0x88),
          _mm512_shuffle_i64x2(ab_after, cd_after, 0xdd)};
}

// ---- what is known by the scales ----------------------------------------------------------------

// How often each level occurs in four parts.
struct Levels {
  alignas(64) std::array<std::array<std::int16_t, kMagnitudes>, kKeptParts> counts;
  alignas(64) std::array<std::array<std::int16_t, kMagnitudes>, kKeptParts> beside;  // at the next
};

// Of the parts of a batch.
struct Batch {
  // By their scales: the eight bits that select ProductBits, the seven of them that select the
  // other tables; whether they may have kept levels.
  alignas(64) std::array<std::uint32_t, kBatch> products;
  alignas(64) std::array<std::uint32_t, kBatch> significand;
  alignas(64) std::array<std::uint32_t, kBatch> may_be;
  // Where they have. Sets of levels have bit q - 1 for q or -q, and once more in the upper byte.
  std::array<Levels, kBatch / kKeptParts> levels;
  alignas(64) std::array<std::uint16_t, kBatch> present;
  alignas(64) std::array<std::uint16_t, kBatch> beside;  // those at the next number
  alignas(64) std::array<std::uint16_t, kBatch> side;    // of them, as a number
  alignas(64) std::array<SetsAtNext, kBatch> sets;       // that the scale allows on that side
};

constexpr std::size_t kLanes = 16;  // of 32 bits

HWY_INLINE void select_tables(const float* scales, std::size_t count, Batch& batch) {
  for (std::size_t i = 0; i < count; i += kLanes) {
    const auto some =
        static_cast<__mmask16>(count - i < kLanes ? (1U << (count - i)) - 1 : 0xffffU);
    const Vector bits = _mm512_maskz_loadu_epi32(some, scales + i);
    const Vector field = _mm512_and_si512(_mm512_srli_epi32(bits, 23), _mm512_set1_epi32(0xff));
    const Vector above = _mm512_sub_epi32(field, _mm512_set1_epi32(kLeastField));
    const auto is_within =
        _mm512_cmple_epu32_mask(above, _mm512_set1_epi32(kMostField - kLeastField));
    const auto is_bf16 = _mm512_testn_epi32_mask(bits, _mm512_set1_epi32(0xffff));
    const Vector upper = _mm512_srli_epi32(bits, 16);
    const Vector significand = _mm512_and_si512(upper, _mm512_set1_epi32(0x7f));
    const Vector products = _mm512_and_si512(upper, _mm512_set1_epi32(0xff));
    _mm512_store_si512(&batch.significand[i], significand);
    _mm512_store_si512(&batch.products[i], products);
    _mm512_store_si512(&batch.may_be[i], _mm512_maskz_set1_epi32(is_within & is_bf16, 1));
  }
}

// ---- the weights of four parts ------------------------------------------------------------------

// A byte for each weight: of the first half of a part's columns, of the second. Block j: part j.
struct Halves {
  Vector first;
  Vector second;
};

struct Masks {
  __mmask64 first;
  __mmask64 second;
};

HWY_INLINE Halves unpack(const std::uint8_t* codes) {
  const Vector two = _mm512_loadu_si512(codes);
  const Vector low_bits = _mm512_set1_epi8(0xf);
  const Vector even = _mm512_and_si512(two, low_bits);
  const Vector odd = _mm512_and_si512(_mm512_srli_epi16(two, 4), low_bits);
  return {.first = _mm512_unpacklo_epi8(even, odd), .second = _mm512_unpackhi_epi8(even, odd)};
}

// One after the other.
HWY_INLINE Vector load_pair(const ProductBits& a, const ProductBits& b) {
  const __m256i first = _mm256_load_si256(reinterpret_cast<const __m256i*>(&a));
  const __m256i second = _mm256_load_si256(reinterpret_cast<const __m256i*>(&b));
  return _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
}

// The rounded products as BF16 numbers, a quarter of the columns each.
HWY_INLINE std::array<Vector, 4> multiply(const Halves& codes, const float* scales,
                                          const std::uint32_t* tables) {
  const Vector ab = load_pair(kProductBits[tables[0]], kProductBits[tables[1]]);
  const Vector cd = load_pair(kProductBits[tables[2]], kProductBits[tables[3]]);
  const Vector low = _mm512_shuffle_i64x2(ab, cd, 0x88);
  // The scale's upper byte goes to all but level 0.
  const Vector places = _mm512_set_epi64(0x0f0f0f0f0f0f0f0f, 0x0f0f0f0f0f0f0f0f, 0x0b0b0b0b0b0b0b0b,
                                         0x0b0b0b0b0b0b0b0b, 0x0707070707070707, 0x0707070707070707,
                                         0x0303030303030303, 0x0303030303030303);
  const Vector upper = _mm512_maskz_shuffle_epi8(
      0xfeff'feff'feff'feff, _mm512_broadcast_i32x4(load_quarter(scales)), places);
  const Vector high = _mm512_add_epi8(_mm512_shuffle_i64x2(ab, cd, 0xdd), upper);
  const Vector first_low = _mm512_shuffle_epi8(low, codes.first);
  const Vector first_high = _mm512_shuffle_epi8(high, codes.first);
  const Vector second_low = _mm512_shuffle_epi8(low, codes.second);
  const Vector second_high = _mm512_shuffle_epi8(high, codes.second);
  return {_mm512_unpacklo_epi8(first_low, first_high), _mm512_unpackhi_epi8(first_low, first_high),
          _mm512_unpacklo_epi8(second_low, second_high),
          _mm512_unpackhi_epi8(second_low, second_high)};
}

// By how many BF16 numbers the source lies beyond the products, as far as a byte goes.
HWY_INLINE Halves subtract(const std::uint8_t* source, const std::array<Vector, 4>& products) {
  const auto weights =
      turn_blocks({_mm512_loadu_si512(source), _mm512_loadu_si512(source + kPartSourceBytes),
                   _mm512_loadu_si512(source + 2 * kPartSourceBytes),
                   _mm512_loadu_si512(source + 3 * kPartSourceBytes)});
  std::array<Vector, 4> beyond;
  for (std::size_t i = 0; i < beyond.size(); ++i) {
    // 0 and -0 are as far from a product as that is from 0.
    const auto is_some = _mm512_test_epi16_mask(weights[i], _mm512_set1_epi16(0x7fff));
    beyond[i] = _mm512_mask_sub_epi16(products[i], is_some, weights[i], products[i]);
  }
  return {.first = _mm512_packs_epi16(beyond[0], beyond[1]),
          .second = _mm512_packs_epi16(beyond[2], beyond[3])};
}

// How often each level from 1 to 8 occurs, with either sign, among the weights of a mask: bytes
// 0 to 7 of each block, and once more.
HWY_INLINE Vector count_levels(const Halves& codes, Masks among) {
  const Vector bit_of_level =
      _mm512_broadcast_i32x4(_mm_set_epi8(64, 32, 16, 8, 4, 2, 1, 0, 1, 2, 4, 8, 16, 32, 64, -128));
  const Vector turn = _mm512_set1_epi64(static_cast<long long>(0x8040201008040201));
  const Vector first = _mm512_maskz_shuffle_epi8(among.first, bit_of_level, codes.first);
  const Vector second = _mm512_maskz_shuffle_epi8(among.second, bit_of_level, codes.second);
  const Vector counts =
      _mm512_add_epi8(_mm512_popcnt_epi8(_mm512_gf2p8affine_epi64_epi8(turn, first, 0)),
                      _mm512_popcnt_epi8(_mm512_gf2p8affine_epi64_epi8(turn, second, 0)));
  return _mm512_add_epi8(counts, _mm512_shuffle_epi32(counts, _MM_PERM_BADC));
}

// The highest bit of each 16 that have one set.
HWY_INLINE std::uint64_t sixteens_with_any(std::uint64_t bits) {
  constexpr std::uint64_t kRest = 0x7fff7fff7fff7fff;
  return (((bits & kRest) + kRest) | bits) & ~kRest;
}

// Whether each weight is the product or the next number, all of a part to one side, all of a level
// alike. Only then the others are complete: `at`: of the batch.
HWY_INLINE bool find_levels(const Halves& codes, const Halves& beyond, std::size_t at,
                            Batch& batch) {
  const Vector one = _mm512_set1_epi8(1);
  const Vector distance =
      _mm512_max_epu8(_mm512_abs_epi8(beyond.first), _mm512_abs_epi8(beyond.second));
  if (_mm512_cmpgt_epu8_mask(distance, one) != 0) return false;
  const Masks is_beside = {.first = _mm512_test_epi8_mask(beyond.first, beyond.first),
                           .second = _mm512_test_epi8_mask(beyond.second, beyond.second)};
  const std::uint64_t below =
      _mm512_movepi8_mask(beyond.first) | _mm512_movepi8_mask(beyond.second);
  const std::uint64_t above = (is_beside.first & ~_mm512_movepi8_mask(beyond.first)) |
                              (is_beside.second & ~_mm512_movepi8_mask(beyond.second));
  const std::uint64_t nearer = sixteens_with_any(below);
  const std::uint64_t to_both_sides = nearer & sixteens_with_any(above);
  const Vector null = _mm512_set1_epi8(-kInt4Lowest);
  const auto beside_null =
      _kor_mask64(_mm512_mask_cmpeq_epi8_mask(is_beside.first, codes.first, null),
                  _mm512_mask_cmpeq_epi8_mask(is_beside.second, codes.second, null));
  const Vector counts = count_levels(codes, {.first = ~__mmask64{}, .second = ~__mmask64{}});
  const Vector beside = count_levels(codes, is_beside);
  const auto at_next = _mm512_test_epi8_mask(beside, beside);
  const auto in_part = _mm512_mask_cmpneq_epi8_mask(at_next, counts, beside);
  // The squares of one level alone may be too large to add up.
  const auto alone = _mm512_cmpeq_epi8_mask(counts, _mm512_set1_epi8(kPartWeights));
  const Vector zero = _mm512_setzero_si512();
  Levels& levels = batch.levels[at / kKeptParts];
  _mm512_store_si512(levels.counts.data(), _mm512_unpacklo_epi8(counts, zero));
  _mm512_store_si512(levels.beside.data(), _mm512_unpacklo_epi8(beside, zero));
  _store_mask64(reinterpret_cast<__mmask64*>(&batch.present[at]),
                _mm512_test_epi8_mask(counts, counts));
  _store_mask64(reinterpret_cast<__mmask64*>(&batch.beside[at]), at_next);
  const std::uint64_t side = nearer >> 15U;
  std::memcpy(&batch.side[at], &side, sizeof(side));
  const auto bad = _kor_mask64(_kor_mask64(beside_null, in_part), alone);
  return (static_cast<std::uint64_t>(bad) | to_both_sides) == 0;
}

// ---- sums of four parts -------------------------------------------------------------------------

// Block q, lane j: the lanes of block q of vector j added up.
HWY_INLINE Vector add_each(const std::array<Vector, 4>& v) {
  const Vector ab =
      _mm512_add_epi32(_mm512_unpacklo_epi32(v[0], v[1]), _mm512_unpackhi_epi32(v[0], v[1]));
  const Vector cd =
      _mm512_add_epi32(_mm512_unpacklo_epi32(v[2], v[3]), _mm512_unpackhi_epi32(v[2], v[3]));
  return _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
}

HWY_INLINE __m256i add_each(const std::array<__m256i, 4>& v) {
  const __m256i ab =
      _mm256_add_epi32(_mm256_unpacklo_epi32(v[0], v[1]), _mm256_unpackhi_epi32(v[0], v[1]));
  const __m256i cd =
      _mm256_add_epi32(_mm256_unpacklo_epi32(v[2], v[3]), _mm256_unpackhi_epi32(v[2], v[3]));
  return _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
}

// Of the squares of the build, a lane for each part.
HWY_INLINE Quarter square_build(const Levels& levels, const std::uint32_t* tables) {
  std::array<__m256i, 4> halves;
  for (std::size_t j = 0; j < halves.size(); ++j) {
    const __m256i counts = _mm256_broadcastsi128_si256(load_quarter(levels.counts[j].data()));
    const void* const squares = &kLevelSquares[tables[j]];
    halves[j] = _mm256_madd_epi16(counts, _mm256_load_si256(static_cast<const __m256i*>(squares)));
  }
  const __m256i sums = add_each(halves);
  return _mm_add_epi32(_mm_slli_epi32(_mm256_castsi256_si128(sums), 15),
                       _mm256_extracti128_si256(sums, 1));
}

// Of the weights at the next number: blocks of errors, of their squares, of an eighth of their
// products with the build; a lane for each part.
HWY_INLINE Vector add_errors(const Levels& levels, const std::uint32_t* tables,
                             const std::uint16_t* sides) {
  std::array<Vector, 4> all;
  for (std::size_t j = 0; j < all.size(); ++j) {
    const Vector counts = _mm512_broadcast_i32x4(load_quarter(levels.beside[j].data()));
    all[j] = _mm512_madd_epi16(counts, _mm512_load_si512(&kLevelUnits[sides[j]][tables[j]]));
  }
  return add_each(all);
}

// The four numbers of each part next to one another, as PartSums has them.
HWY_INLINE Vector turn(const std::array<Quarter, 4>& v) {
  const __m256i ab = _mm256_inserti128_si256(_mm256_castsi128_si256(v[0]), v[1], 1);
  const __m256i cd = _mm256_inserti128_si256(_mm256_castsi128_si256(v[2]), v[3], 1);
  const Vector all = _mm512_inserti64x4(_mm512_castsi256_si512(ab), cd, 1);
  const Vector order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, all);
}

// Whether a number and the next one may be farther apart than the worst error so far.
HWY_INLINE bool may_be_worse(const float* scales, double worst_error) {
  const Quarter exponents = _mm_and_si128(load_quarter(scales), _mm_set1_epi32(0x7f800000));
  const auto of_scale = static_cast<float>(worst_error) * ((1 << kUnitBits) / kMostToNext);
  return _mm_cmp_ps_mask(_mm_castsi128_ps(exponents), _mm_set1_ps(of_scale), _CMP_GT_OQ) != 0;
}

// The largest errors of four parts, at `at` of the batch, in units. Whether one is the worst.
HWY_NOINLINE bool find_largest(const KeptRow& row, std::size_t part, const Batch& batch,
                               std::size_t at, PartSums& out) {
  bool is_worst = false;
  for (std::size_t j = 0; j < kKeptParts; ++j) {
    const LevelTable& to_next = kLevelUnits[batch.side[at + j]][batch.significand[at + j]].to_next;
    const auto& beside = batch.levels[at / kKeptParts].beside[j];
    int largest = 0;
    for (std::size_t level = 0; level < kMagnitudes; ++level) {
      if (beside[level] != 0) largest = std::max(largest, std::abs(to_next[level]));
    }
    out.largest[part + j] = static_cast<std::int16_t>(largest);
    const int exponent = std::ilogb(row.scales[part + j]) - kUnitBits;
    is_worst = is_worst || std::ldexp(largest, exponent) > row.worst_error;
  }
  return is_worst;
}

// Of four parts, number `part` of the row, `at` of the batch.
HWY_INLINE void add_four(const KeptRow& row, std::size_t part, Batch& batch, std::size_t at,
                         const KeptSums& out) {
  const Levels& levels = batch.levels[at / kKeptParts];
  for (std::size_t j = at; j < at + kKeptParts; ++j) {
    batch.sets[j] = kSetsAtNext[batch.side[j]][batch.significand[j]];
  }
  const Quarter build = square_build(levels, &batch.significand[at]);
  const Vector beside = add_errors(levels, &batch.significand[at], &batch.side[at]);
  const Quarter error = _mm_abs_epi32(_mm512_castsi512_si128(beside));
  const Quarter squared_error = _mm512_extracti32x4_epi32(beside, 1);
  const Quarter cross = _mm_slli_epi32(_mm512_extracti32x4_epi32(beside, 2), 3);
  // v = y + e here.
  const Quarter product = _mm_add_epi32(build, cross);
  const Quarter source = _mm_add_epi32(_mm_add_epi32(product, cross), squared_error);
  _mm512_storeu_si512(out.sums.products[part].data(),
                      turn({error, squared_error, source, product}));
  out.counts[part / kKeptParts].worse = may_be_worse(row.scales + part, row.worst_error) &&
                                        find_largest(row, part, batch, at, out.sums);
}

// ---- a batch ------------------------------------------------------------------------------------

HWY_INLINE std::uint32_t unsigned_sum(Vector lanes) {
  return static_cast<std::uint32_t>(_mm512_reduce_add_epi32(lanes));
}

// Counts of weights, lanes of them to be taken together.
struct Counters {
  Vector counts;   // 16 bits each: by level
  Vector beside;   // likewise
  Vector highest;  // 8 bits each
};

HWY_INLINE void count_highest(const Halves& codes, Vector& highest) {
  const Vector one = _mm512_set1_epi8(1);
  const Vector last = _mm512_set1_epi8(15);
  highest = _mm512_mask_add_epi8(highest, _mm512_cmpeq_epi8_mask(codes.first, last), highest, one);
  highest = _mm512_mask_add_epi8(highest, _mm512_cmpeq_epi8_mask(codes.second, last), highest, one);
}

HWY_INLINE void add_counters(const Counters& counters, KeptCounts& out) {
  const Vector ones = _mm512_set1_epi16(1);
  const Vector lowest = _mm512_maskz_mov_epi16(0x80808080, counters.counts);
  out.beside += unsigned_sum(_mm512_madd_epi16(counters.beside, ones));
  out.low += unsigned_sum(_mm512_madd_epi16(lowest, ones));
  out.high += unsigned_sum(_mm512_sad_epu8(counters.highest, _mm512_setzero_si512()));
}

// Four parts: number `part` of the row, `at` of the batch. Whether they have kept their levels.
HWY_INLINE bool look_at_four(const KeptRow& row, std::size_t part, std::size_t at, Batch& batch,
                             Counters& counters) {
  const Quarter may_be = load_quarter(&batch.may_be[at]);
  if (_mm_testn_epi32_mask(may_be, may_be) != 0) return false;
  const Halves codes = unpack(row.codes + part * kPartCodeBytes);
  const Halves beyond = subtract(row.source + part * kPartSourceBytes,
                                 multiply(codes, row.scales + part, &batch.products[at]));
  if (!find_levels(codes, beyond, at, batch)) return false;
  count_highest(codes, counters.highest);
  return true;
}

HWY_INLINE Vector load_eight(const std::uint16_t* sets) {
  return _mm512_cvtepu16_epi64(load_quarter(sets));
}

HWY_INLINE Vector load_sixteen(const std::uint16_t* sets) {
  const __m256i twice = _mm256_load_si256(reinterpret_cast<const __m256i*>(sets));
  return _mm512_and_si512(_mm512_cvtepu16_epi32(twice), _mm512_set1_epi32(0xff));
}

// Bit j: whether one of the sets of part j, as far as its levels are present, is just that of the
// levels beside. `first`: of eight parts.
HWY_INLINE __mmask8 match_sets(const Batch& batch, std::size_t first) {
  const Vector spread =
      _mm512_broadcast_i32x4(_mm_set_epi8(8, 8, 8, 8, 8, 8, 8, 8, 0, 0, 0, 0, 0, 0, 0, 0));
  const Vector sets = _mm512_load_si512(&batch.sets[first]);
  const Vector present =
      _mm512_and_si512(sets, _mm512_shuffle_epi8(load_eight(&batch.present[first]), spread));
  const Vector same = _mm512_movm_epi8(_mm512_cmpeq_epi8_mask(
      present, _mm512_shuffle_epi8(load_eight(&batch.beside[first]), spread)));
  return _mm512_test_epi64_mask(same, same);
}

// What is to be noted of 16 parts, as KeptLevels has it, but for those that are not kept.
HWY_INLINE Quarter describe_parts(const Batch& batch, std::size_t first) {
  const Vector present = load_sixteen(&batch.present[first]);
  const Vector beside = load_sixteen(&batch.beside[first]);
  const Vector certain_words = _mm512_broadcast_i64x4(
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kCertainBits.data())));
  const Vector word = _mm512_permutexvar_epi32(_mm512_srli_epi32(present, 5), certain_words);
  const auto is_certain = _mm512_test_epi32_mask(
      _mm512_srlv_epi32(word, _mm512_and_si512(present, _mm512_set1_epi32(31))),
      _mm512_set1_epi32(1));
  const auto matches = _mm512_kunpackb(match_sets(batch, first + 8), match_sets(batch, first));
  const Vector top = _mm512_sub_epi32(_mm512_set1_epi32(32), _mm512_lzcnt_epi32(present));
  const Vector side = load_sixteen(&batch.side[first]);
  const Vector larger =
      _mm512_mask_mov_epi32(_mm512_set1_epi32(KeptLevels::settled(0, KeptLevels::Scale::kSmaller)),
                            _mm512_test_epi32_mask(side, side),
                            _mm512_set1_epi32(KeptLevels::settled(0, KeptLevels::Scale::kLarger)));
  const Vector scale = _mm512_maskz_mov_epi32(_mm512_test_epi32_mask(beside, beside), larger);
  const Vector settled = _mm512_maskz_or_epi32(matches, top, scale);
  return _mm512_cvtepi32_epi8(
      _mm512_mask_mov_epi32(_mm512_set1_epi32(KeptLevels::kOpen), is_certain, settled));
}

// Notes on `count` parts of a batch, from number `first` of the row on.
HWY_INLINE void note(const Batch& batch, std::size_t first, std::size_t count,
                     const KeptSums& out) {
  for (std::size_t at = 0; at < count; at += kLanes) {
    alignas(16) std::array<std::uint8_t, kLanes> notes;
    _mm_store_si128(reinterpret_cast<Quarter*>(notes.data()), describe_parts(batch, at));
    std::copy_n(notes.begin(), std::min(kLanes, count - at), out.kept + first + at);
  }
  for (std::size_t part = first; part < first + count; part += kKeptParts) {
    if (out.counts[part / kKeptParts].fits) continue;
    std::fill_n(out.kept + part, kKeptParts, KeptLevels::kUnknown);
  }
}

// Likewise. Returns how many vectors are left to others.
HWY_INLINE std::size_t look_at_batch(const KeptRow& row, std::size_t first, std::size_t count,
                                     const KeptSums& out) {
  const Vector zero = _mm512_setzero_si512();
  Counters counters{.counts = zero, .beside = zero, .highest = zero};
  Batch batch;
  select_tables(row.scales + first, count, batch);
  std::size_t others = 0;
  for (std::size_t at = 0; at < count; at += kKeptParts) {
    const std::size_t part = first + at;
    prefetch_parts(row.codes + part * kPartCodeBytes, row.source + part * kPartSourceBytes,
                   kKeptParts);
    const bool kept = look_at_four(row, part, at, batch, counters);
    out.counts[part / kKeptParts] = {.fits = kept};
    others += kept ? 0 : 1;
  }
  for (std::size_t at = 0; at < count; at += kKeptParts) {
    const std::size_t part = first + at;
    if (!out.counts[part / kKeptParts].fits) continue;
    add_four(row, part, batch, at, out);
    const Levels& levels = batch.levels[at / kKeptParts];
    counters.counts = _mm512_add_epi16(counters.counts, _mm512_load_si512(&levels.counts));
    counters.beside = _mm512_add_epi16(counters.beside, _mm512_load_si512(&levels.beside));
  }
  add_counters(counters, out.totals);
  if (out.kept != nullptr) note(batch, first, count, out);
  return others;
}

std::size_t look_at_row(const KeptRow& row, const KeptSums& out) {
  const std::size_t parts = out.counts.size() * kKeptParts;
  std::size_t others = 0;
  for (std::size_t first = 0; first < parts; first += kBatch) {
    others += look_at_batch(row, first, std::min(kBatch, parts - first), out);
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
