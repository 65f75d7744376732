// What follows from the scales and zero points of a row for each part of 32 weights. Compiled once
// for every CPU target that includes it, hence the guard that toggles.

#if defined(GRIDSCOPE_QUANT_KERNELS_INT4_PARTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GRIDSCOPE_QUANT_KERNELS_INT4_PARTS_INL
#undef GRIDSCOPE_QUANT_KERNELS_INT4_PARTS_INL
#else
#define GRIDSCOPE_QUANT_KERNELS_INT4_PARTS_INL
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "quant/int4_groups.hpp"
#include "quant/kernels/int4_units.hpp"

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

HWY_BEFORE_NAMESPACE();
namespace gridscope::quant::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using FloatBits = hn::ScalableTag<std::uint32_t>;
using Ints = hn::ScalableTag<std::int32_t>;

// What is known of each part of a row before its weights are looked at. Of the 32-bit numbers both
// halves hold the same.
struct Parts {
  std::vector<float> unit;
  std::vector<std::uint32_t> fits;  // 1: its scale does
  // Empty until there is a row that needs them.
  std::vector<std::uint32_t> base;       // twice the least BF16 magnitude within the window
  std::vector<std::uint32_t> per_unit;   // 1 / unit, as a float
  std::vector<std::uint32_t> half_step;  // |scale| / 2, in units, rounded down
  std::vector<std::uint32_t> worst;      // the worst error so far, likewise; -1: none
  std::vector<std::uint32_t> table;      // where its UnitTable starts
  const std::uint8_t* tables = nullptr;

  explicit Parts(std::size_t count) : unit(count), fits(count) {}

  void make_room() {
    for (auto* numbers : {&base, &per_unit, &half_step, &worst, &table}) {
      numbers->resize(unit.size());
    }
  }
};

// In units; only for groups that fit.
inline void make_table(float scale, int zero, float unit, UnitTable& table) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const hn::RebindToSigned<decltype(d)> ints;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  const auto per_unit = hn::Set(d, 1.0F / unit);
  for (std::size_t code = 0; code < 16; code += hn::Lanes(d)) {
    const auto level = hn::Iota(d, static_cast<float>(static_cast<int>(code) + kInt4Lowest - zero));
    const auto product = hn::BitCast(bits, hn::Mul(level, hn::Set(d, scale)));
    // To BF16, to nearest even.
    const auto last = hn::And(hn::ShiftRight<16>(product), hn::Set(bits, 1));
    const auto rounded =
        hn::And(hn::Add(product, hn::Add(last, hn::Set(bits, 0x7fff))), hn::Set(bits, 0xffff0000U));
    const auto units = hn::NearestInt(hn::Mul(hn::BitCast(d, rounded), per_unit));
    const auto byte = hn::Set(ints, 0xff);
    hn::StoreU(hn::DemoteTo(bytes, hn::And(units, byte)), bytes, table.data() + code);
    hn::StoreU(hn::DemoteTo(bytes, hn::And(hn::ShiftRight<8>(units), byte)), bytes,
               table.data() + 16 + code);
  }
}

// Each 16-bit number in both halves.
HWY_INLINE hn::VFromD<FloatBits> twice(hn::VFromD<FloatBits> numbers) {
  return hn::Or(numbers, hn::ShiftLeft<16>(numbers));
}

struct RowTraits {
  bool all_fit = false;
  bool needs_tables = false;  // a scale is no BF16 number, or a zero point is used
  // All fit, and no sum over the row comes to 2^53 of its smallest terms.
  bool sums_are_exact = false;
  // Then: how many powers of two the units are apart at most.
  std::uint32_t least_unit = 0;  // as its field of a float
  std::uint32_t powers = 0;
};

// A square is 2^26 of its unit's at most, 2 v y twice that.
inline bool sums_are_exact(std::size_t weights, std::uint32_t powers) {
  constexpr std::uint64_t kMost = 1ULL << (53 - 28);
  static_assert(kMost >> 2 * (kMostPowers + 1) <= kPartWeights);
  return powers <= kMostPowers && (std::uint64_t{weights} << 2 * powers) < kMost;
}

// Of each part.
struct PartTerms {
  std::span<const float> scales;  // whole vectors of them
  std::span<const std::int8_t> zeros;
  float worst_error = 0.0F;  // so far
};

// How many powers of two the unit lies below the scale.
HWY_INLINE hn::VFromD<FloatBits> unit_bits_of(hn::VFromD<FloatBits> zeros) {
  const FloatBits d;
  return hn::IfThenElse(hn::Eq(zeros, hn::Zero(d)), hn::Set(d, kUnitBits),
                        hn::Set(d, kUnitBits - 1));
}

HWY_INLINE hn::VFromD<FloatBits> load_zeros(const std::int8_t* zeros) {
  const Ints d;
  const hn::Rebind<std::int8_t, Ints> bytes;
  return hn::BitCast(FloatBits(), hn::PromoteTo(d, hn::LoadU(bytes, zeros)));
}

// Units, and which scales fit.
inline RowTraits describe_units(const PartTerms& terms, Parts& parts) {
  const Floats d;
  const FloatBits bits_d;
  auto unfit = hn::Zero(bits_d);
  auto odd = hn::Zero(bits_d);
  auto least_unit = hn::Set(bits_d, 255U << 23U);
  auto most_unit = hn::Zero(bits_d);
  for (std::size_t i = 0; i < terms.scales.size(); i += hn::Lanes(d)) {
    const auto bits = hn::BitCast(bits_d, hn::LoadU(d, &terms.scales[i]));
    const auto zero = load_zeros(&terms.zeros[i]);
    const auto exponent = hn::And(hn::ShiftRight<23>(bits), hn::Set(bits_d, 0xff));
    const auto in_range = hn::And(hn::Gt(exponent, hn::Set(bits_d, kLeastExponent - 1)),
                                  hn::Lt(exponent, hn::Set(bits_d, kMostExponent + 1)));
    // With four bits to spare the product with any level is exact in float.
    const auto is_short = hn::Eq(hn::And(bits, hn::Set(bits_d, 0xf)), hn::Zero(bits_d));
    const auto fits = hn::IfThenElseZero(hn::And(in_range, is_short), hn::Set(bits_d, 1));
    const auto unit = hn::ShiftLeft<23>(
        hn::IfThenElse(in_range, hn::Sub(exponent, unit_bits_of(zero)), hn::Set(bits_d, 127)));
    unfit = hn::Or(unfit, hn::Xor(fits, hn::Set(bits_d, 1)));
    odd = hn::Or(odd, hn::Or(zero, hn::And(bits, hn::Set(bits_d, 0xffff))));
    least_unit = hn::Min(least_unit, unit);
    most_unit = hn::Max(most_unit, unit);
    hn::StoreU(fits, bits_d, &parts.fits[i]);
    hn::StoreU(hn::BitCast(d, unit), d, &parts.unit[i]);
  }
  const bool all_fit = hn::AllTrue(bits_d, hn::Eq(unfit, hn::Zero(bits_d)));
  const std::uint32_t least = hn::GetLane(hn::MinOfLanes(bits_d, least_unit)) >> 23U;
  const std::uint32_t most = hn::GetLane(hn::MaxOfLanes(bits_d, most_unit)) >> 23U;
  return {
      .all_fit = all_fit,
      .needs_tables = !hn::AllTrue(bits_d, hn::Eq(odd, hn::Zero(bits_d))),
      .sums_are_exact = all_fit && sums_are_exact(terms.scales.size() * kPartWeights, most - least),
      .least_unit = least,
      .powers = most - least};
}

// All else. Requires: the units are there.
inline void describe_parts(const PartTerms& terms, Parts& parts) {
  parts.make_room();
  const Floats d;
  const FloatBits bits_d;
  const Ints ints;
  for (std::size_t i = 0; i < terms.scales.size(); i += hn::Lanes(d)) {
    const auto bits = hn::BitCast(bits_d, hn::LoadU(d, &terms.scales[i]));
    const auto unit = hn::BitCast(bits_d, hn::LoadU(d, &parts.unit[i]));
    const auto zero = load_zeros(&terms.zeros[i]);
    const auto window = hn::Add(hn::ShiftRight<23>(unit), hn::Set(bits_d, 7));
    const auto significand =
        hn::Or(hn::And(bits, hn::Set(bits_d, 0x7fffff)), hn::Set(bits_d, 0x800000));
    const auto half = hn::ShiftRight<24 - kUnitBits>(significand);
    const auto is_symmetric = hn::Eq(zero, hn::Zero(bits_d));
    const auto per_unit = hn::Sub(hn::Set(bits_d, 254U << 23U), unit);
    const auto worst = hn::Mul(hn::Set(d, terms.worst_error), hn::BitCast(d, per_unit));
    const auto kept = hn::Max(hn::Set(d, -1.0F), hn::Min(hn::Floor(worst), hn::Set(d, 32767.0F)));
    const auto kept_bits = hn::BitCast(bits_d, hn::ConvertTo(ints, kept));
    const auto table = hn::Or(hn::And(hn::ShiftRight<24>(bits), hn::Set(bits_d, 0x80)),
                              hn::And(hn::ShiftRight<16>(bits), hn::Set(bits_d, 0x7f)));
    hn::StoreU(twice(hn::And(hn::ShiftLeft<8>(window), hn::Set(bits_d, 0xffff))), bits_d,
               &parts.base[i]);
    hn::StoreU(twice(hn::IfThenElse(is_symmetric, half, hn::ShiftRight<1>(half))), bits_d,
               &parts.half_step[i]);
    hn::StoreU(per_unit, bits_d, &parts.per_unit[i]);
    hn::StoreU(twice(hn::And(kept_bits, hn::Set(bits_d, 0xffff))), bits_d, &parts.worst[i]);
    hn::StoreU(hn::ShiftLeft<5>(table), bits_d, &parts.table[i]);
  }
  static_assert(sizeof(UnitTable) == 1U << 5U);
}

}  // namespace gridscope::quant::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
#endif
