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
#include <cstring>
#include <span>

#include "gridscope/quant/error_sums.hpp"
#include "quant/kernels/certain_levels.hpp"
#include "quant/kernels/int4_units.hpp"
#include "quant/kernels/kept_batch-inl.hpp"
#include "quant/kernels/kept_tables.hpp"
#include "quant/kernels/prefetch.hpp"

#if HWY_TARGET == HWY_AVX3_DL
HWY_PUSH_ATTRIBUTES(GRIDSCOPE_KEPT_ATTRIBUTES)
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
HWY_INLINE std::size_t add_fours(const KeptRow& row, std::size_t first, std::size_t count,
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
  for (std::size_t at = 0; at < count; at += kLanes) find_kept(row, first + at, at, batch);
  const std::size_t others = add_fours(row, first, count, batch, sums, out);
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
