// Each weight bounds the step: the level times the step lies between the middles to the BF16
// numbers beside the weight, or on one of them when the weight is even. Everything is multiplied by
// a number that all levels divide: the bounds then are exact in float, with bits to spare, and one
// that does not belong to the steps is put a little further in. The levels that the codes hold are
// looked up as sets of bits, and a table of all sets says which leave one grid only.

#include "gridscope/quant/settled_grids.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/kernels/settle_grids.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>

#include "quant/int4_groups.hpp"
#include "quant/kernels/certain_levels.hpp"
#include "quant/kernels/int4_units.hpp"

HWY_BEFORE_NAMESPACE();
namespace gridscope::quant::HWY_NAMESPACE {

// All of so many groups.
void leave_open(std::size_t count, SettledGroups& out) {
  out = {};
  out.open.resize(count);
  std::iota(out.open.begin(), out.open.end(), 0U);
}

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

void settle_each(const Int4Rows& build, const SourceRows& /*source*/, const KeptLevels& /*kept*/,
                 SettledGroups& out) {
  leave_open(build.rows * build.groups, out);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using FloatBits = hn::ScalableTag<std::uint32_t>;
using Bytes = hn::Full128<std::uint8_t>;
using Four = hn::Full128<float>;
using FourBits = hn::Full128<std::uint32_t>;

// Groups that are looked at together.
constexpr std::size_t kTogether = 4;
constexpr std::size_t kLanes = hn::MaxLanes(Floats{});

constexpr auto kMultiple = static_cast<float>(kCommonMultiple);
// Steps far from where BF16 has fewer bits, or none.
constexpr float kLeastStep = 1e-30F;
constexpr float kMostStep = 1e29F;
// What a bound that does not belong to the steps is put in by: 4 of the last bits, which come to 2
// to 8 of the bound's.
constexpr std::uint32_t kInward = 4;
// Above what that comes to, and below what bounds differ by.
constexpr float kRoom = 0x1p-19F;
// No level moves by half a step where a scale so near to the steps takes their place.
constexpr float kNear = 0.04F;

// The groups of a row from one on. kParts: of a group, when known before; else 0.
template <std::size_t kParts>
struct Groups {
  const std::uint8_t* codes;
  const std::uint8_t* weights;
  const float* scales;
  const std::int8_t* zeros;  // null: all 0
  std::size_t several;       // parts of a group

  HWY_INLINE std::size_t parts() const { return kParts != 0 ? kParts : several; }
  HWY_INLINE Groups from(std::size_t first) const {
    return {.codes = codes + first * parts() * kPartCodeBytes,
            .weights = weights + first * parts() * kPartSourceBytes,
            .scales = scales + first,
            .zeros = zeros == nullptr ? nullptr : zeros + first,
            .several = several};
  }
};

// Of steps, as magnitudes, taken lane by lane.
struct Bounds {
  hn::VFromD<Floats> low;
  hn::VFromD<Floats> high;
};

// What one group tells; the lanes of each are still to be taken together.
struct Look {
  Bounds bounds;
  hn::VFromD<Bytes> magnitudes;
};

// The multiple over the level of each code; level 0 bounds nothing, but for weights that are not 0.
HWY_INLINE hn::VFromD<Floats> multiples_over_levels(hn::VFromD<FloatBits> codes) {
  const Floats d;
  if constexpr (kLanes == 16) {
    constexpr float kAll = std::numeric_limits<float>::infinity();
    HWY_ALIGN static constexpr std::array<float, 16> kQuotients = {
        kMultiple / -8, kMultiple / -7, kMultiple / -6, kMultiple / -5,
        kMultiple / -4, kMultiple / -3, kMultiple / -2, kMultiple / -1,
        kAll,           kMultiple,      kMultiple / 2,  kMultiple / 3,
        kMultiple / 4,  kMultiple / 5,  kMultiple / 6,  kMultiple / 7};
    return hn::TableLookupLanes(hn::Load(d, kQuotients.data()), hn::IndicesFromVec(d, codes));
  } else {
    const hn::RebindToSigned<FloatBits> ints;
    const auto levels = hn::Add(hn::BitCast(ints, codes), hn::Set(ints, kInt4Lowest));
    return hn::Div(hn::Set(d, kMultiple), hn::ConvertTo(d, levels));
  }
}

// `weights`: BF16 numbers in the upper halves. What is less than 0 is NaN as a number, which bounds
// nothing on x86; elsewhere it may forbid all, which leaves a group open.
HWY_INLINE void narrow(hn::VFromD<FloatBits> weights, hn::VFromD<FloatBits> codes, Bounds& bounds) {
  const Floats d;
  const FloatBits bits_d;
  const auto multiple = multiples_over_levels(codes);
  const auto value = hn::Add(hn::BitCast(d, weights), hn::Zero(d));  // -0 becomes 0
  const auto bits = hn::BitCast(bits_d, value);
  const auto is_odd = hn::TestBit(bits, hn::Set(bits_d, 0x10000));
  const auto half =
      hn::IfThenElse(is_odd, hn::Set(bits_d, 0x8000 - kInward), hn::Set(bits_d, 0x8000));
  const auto below = hn::BitCast(d, hn::Sub(bits, half));
  // Some CPUs take long over numbers below the normal ones, which 0 would give.
  const auto normal = hn::Set(bits_d, 0x00800000);
  const auto above = hn::BitCast(d, hn::Max(hn::Add(bits, half), normal));
  bounds.low = hn::Max(hn::Mul(below, multiple), bounds.low);
  bounds.high = hn::Min(hn::Mul(above, multiple), bounds.high);
}

// The 128-bit blocks of a vector together.
template <class D, class Op>
HWY_INLINE auto fold_blocks([[maybe_unused]] D d, hn::VFromD<D> v, const Op& together) {
  if constexpr (hn::MaxLanes(D{}) * sizeof(hn::TFromD<D>) == 16) {
    return v;
  } else {
    const hn::Half<D> half;
    return fold_blocks(half, together(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), together);
  }
}

// The first one.
template <std::size_t kParts>
HWY_INLINE Look look_at(const Groups<kParts>& groups) {
  // By code, bit q - 1 for level q or -q.
  HWY_ALIGN static constexpr std::array<std::uint8_t, 16> kMagnitudes = {
      128, 64, 32, 16, 8, 4, 2, 1, 0, 1, 2, 4, 8, 16, 32, 64};
  const Bytes bytes;
  const FloatBits bits;
  const hn::Repartition<std::uint16_t, Bytes> pairs_d;
  const hn::Rebind<std::uint8_t, FloatBits> few_bytes;
  const auto table = hn::Load(bytes, kMagnitudes.data());
  const auto sign = hn::Set(bits, std::signbit(*groups.scales) ? 0x80008000U : 0U);
  Bounds bounds = {.low = hn::Set(Floats(), kMultiple * kLeastStep),
                   .high = hn::Set(Floats(), kMultiple * kMostStep)};
  auto magnitudes = hn::Zero(bytes);
  for (std::size_t part = 0; part < groups.parts(); ++part) {
    const std::uint8_t* codes = groups.codes + part * kPartCodeBytes;
    const std::uint8_t* weights = groups.weights + part * kPartSourceBytes;
    for (std::size_t i = 0; i < kPartCodeBytes; i += kLanes) {
      const auto stored = hn::LoadU(bits, reinterpret_cast<const std::uint32_t*>(weights) + i);
      const auto signed_alike = hn::Xor(stored, sign);
      const auto two = hn::PromoteTo(bits, hn::LoadU(few_bytes, codes + i));
      narrow(hn::ShiftLeft<16>(signed_alike), hn::And(two, hn::Set(bits, 0xf)), bounds);
      narrow(hn::And(signed_alike, hn::Set(bits, 0xffff0000U)), hn::ShiftRight<4>(two), bounds);
    }
    const auto two = hn::LoadU(bytes, codes);
    const auto odd = hn::BitCast(bytes, hn::ShiftRight<4>(hn::BitCast(pairs_d, two)));
    const auto low_bits = hn::Set(bytes, 0xf);
    magnitudes = hn::Or(magnitudes, hn::TableLookupBytes(table, hn::And(two, low_bits)));
    magnitudes = hn::Or(magnitudes, hn::TableLookupBytes(table, hn::And(odd, low_bits)));
  }
  return {.bounds = bounds, .magnitudes = magnitudes};
}

// Lane j of each block: the four lanes of that block of vector j together.
template <class V, class Op>
HWY_INLINE V fold_lanes(V a, V b, V c, V e, const Op& together) {
  const hn::DFromV<V> d;
  const hn::Repartition<std::uint64_t, decltype(d)> two;
  const auto ab =
      hn::BitCast(two, together(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  const auto ce =
      hn::BitCast(two, together(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e)));
  return together(hn::BitCast(d, hn::InterleaveLower(two, ab, ce)),
                  hn::BitCast(d, hn::InterleaveUpper(two, ab, ce)));
}

// Lane j: of group j.
struct Steps {
  hn::VFromD<Four> low;
  hn::VFromD<Four> high;
};

// What is found of four groups; bit j: of group j.
struct Findings {
  unsigned have_step;  // and it is clear where the scale lies
  unsigned smaller;    // the scale, than any step
  unsigned larger;
  std::array<std::uint32_t, kTogether> magnitudes;
};

// Of the four lanes.
template <class Mask>
HWY_INLINE unsigned bits_of(Mask mask) {
  std::array<std::uint8_t, 8> bits = {};
  hn::StoreMaskBits(Four(), mask, bits.data());
  return bits[0];
}

// But for the magnitudes.
HWY_INLINE void find_steps(const Steps& steps, const float* scales, Findings& found) {
  const Four d;
  const auto times = [&](hn::VFromD<Four> v, float factor)
                         HWY_ATTR { return hn::Mul(v, hn::Set(d, factor)); };
  const auto magnitude = hn::Abs(hn::LoadU(d, scales));
  const auto scale = times(magnitude, kMultiple);
  // 840 is 105 * 8: a scale of more than 17 significant bits is multiplied inexactly.
  const FourBits bits;
  const auto rest = hn::And(hn::BitCast(bits, magnitude), hn::Set(bits, 0x7f));
  const auto is_exact = hn::RebindMask(d, hn::Eq(rest, hn::Zero(bits)));
  const auto slack = hn::IfThenElse(is_exact, hn::Zero(d), times(scale, kRoom));
  const auto least = hn::Sub(scale, slack);
  const auto most = hn::Add(scale, slack);
  const auto among = hn::And(hn::Ge(least, steps.low), hn::Le(most, steps.high));
  const auto smaller = hn::Lt(most, steps.low);
  const auto larger = hn::Gt(least, steps.high);
  const auto is_near = hn::And(hn::Gt(scale, times(steps.high, 1 - kNear)),
                               hn::Lt(scale, times(steps.low, 1 + kNear)));
  const auto is_clear = hn::Or(among, hn::Or(smaller, larger));
  // Where the steps reach beyond the limits, their ends are not known.
  const auto is_within = hn::And(hn::Gt(steps.low, hn::Set(d, kMultiple * kLeastStep)),
                                 hn::Lt(steps.high, hn::Set(d, kMultiple * kMostStep)));
  const auto have = hn::And(hn::Le(steps.low, steps.high), is_within);
  found.have_step = bits_of(hn::And(have, hn::And(is_near, is_clear)));
  found.smaller = bits_of(smaller);
  found.larger = bits_of(larger);
}

HWY_INLINE void fold_sets(const Look& a, const Look& b, const Look& c, const Look& e,
                          Findings& found) {
  const FourBits d;
  const auto either = [](auto x, auto y) HWY_ATTR { return hn::Or(x, y); };
  const auto quarters =
      fold_lanes(hn::BitCast(d, a.magnitudes), hn::BitCast(d, b.magnitudes),
                 hn::BitCast(d, c.magnitudes), hn::BitCast(d, e.magnitudes), either);
  const auto halves = hn::Or(quarters, hn::ShiftRight<16>(quarters));
  hn::StoreU(hn::And(hn::Or(halves, hn::ShiftRight<8>(halves)), hn::Set(d, 0xff)), d,
             found.magnitudes.data());
}

template <std::size_t kParts>
HWY_INLINE Findings look_at_four(const Groups<kParts>& groups) {
  const auto larger = [](auto x, auto y) HWY_ATTR { return hn::Max(x, y); };
  const auto smaller = [](auto x, auto y) HWY_ATTR { return hn::Min(x, y); };
  const Look a = look_at(groups);
  const Look b = look_at(groups.from(1));
  const Look c = look_at(groups.from(2));
  const Look e = look_at(groups.from(3));
  const auto low = fold_lanes(a.bounds.low, b.bounds.low, c.bounds.low, e.bounds.low, larger);
  const auto high = fold_lanes(a.bounds.high, b.bounds.high, c.bounds.high, e.bounds.high, smaller);
  const Steps steps{.low = fold_blocks(Floats(), low, larger),
                    .high = fold_blocks(Floats(), high, smaller)};
  Findings found;
  find_steps(steps, groups.scales, found);
  fold_sets(a, b, c, e, found);
  return found;
}

// SettledGroups in the making. Every fourth group has its own counters: a counter is not added to
// again before it is stored.
struct Tally {
  std::array<std::array<std::uint64_t, 9>, kTogether> top_levels = {};
  std::uint64_t smaller = 0;
  std::uint64_t larger = 0;
  std::uint32_t* open;  // the next one's place
};

// Notes groups of which it is known how they settle, or that they do not: from number `first` on
// `count`, or as many as a vector has bytes, or those before a four in which one is not known.
// Returns how many.
HWY_INLINE std::size_t note_kept(const std::uint8_t* kept, std::size_t count, std::size_t first,
                                 Tally& tally) {
  const hn::ScalableTag<std::uint8_t> d;
  static_assert(KeptLevels::kUnknown == 0);
  std::array<std::uint8_t, hn::MaxLanes(d)> few = {};  // unknown after the last
  if (count < hn::Lanes(d)) {
    std::copy_n(kept, count, few.begin());
    kept = few.data();
  }
  auto groups = hn::LoadU(d, kept);
  const auto unknown = hn::FindFirstTrue(d, hn::Eq(groups, hn::Zero(d)));
  const std::size_t known = unknown < 0 ? hn::Lanes(d) : static_cast<std::size_t>(unknown);
  // The others are looked at in the fours in which they are without notes, so that none is left
  // over at the end of a row.
  const std::size_t noted = known / kTogether * kTogether;
  if (noted == 0) return 0;
  groups = hn::IfThenElseZero(hn::FirstN(d, noted), groups);
  const auto number_with = [&](hn::VFromD<decltype(d)> bits, unsigned value) HWY_ATTR {
    return hn::CountTrue(d, hn::Eq(bits, hn::Set(d, static_cast<std::uint8_t>(value))));
  };
  const auto levels = hn::And(groups, hn::Set(d, KeptLevels::kLevelBits));
  for (unsigned level = 1; level < tally.top_levels[0].size(); ++level) {
    tally.top_levels[0][level] += number_with(levels, level);
  }
  const auto scales = hn::AndNot(hn::Set(d, KeptLevels::kLevelBits), groups);
  tally.smaller += number_with(scales, KeptLevels::settled(0, KeptLevels::Scale::kSmaller));
  tally.larger += number_with(scales, KeptLevels::settled(0, KeptLevels::Scale::kLarger));
  static_assert(hn::MaxLanes(d) <= 64);
  std::uint64_t open = 0;
  hn::StoreMaskBits(d, hn::Eq(groups, hn::Set(d, KeptLevels::kOpen)),
                    reinterpret_cast<std::uint8_t*>(&open));
  for (; open != 0; open &= open - 1) {
    const auto place = static_cast<std::size_t>(std::countr_zero(open));
    *tally.open++ = static_cast<std::uint32_t>(first + place);
  }
  return noted;
}

// Notes what was found of groups from number `first` on. Without branches on it, which are hard to
// foretell. `symmetric`: bit j, of group j.
HWY_INLINE void note(const Findings& found, unsigned symmetric, std::size_t first, Tally& tally) {
  unsigned certain = 0;
  for (std::size_t j = 0; j < kTogether; ++j) {
    certain |= (kCertainLevels[found.magnitudes[j]] ? 1U : 0U) << j;
  }
  const unsigned settle = found.have_step & certain & symmetric;
  tally.smaller += static_cast<unsigned>(std::popcount(settle & found.smaller));
  tally.larger += static_cast<unsigned>(std::popcount(settle & found.larger));
  for (std::size_t j = 0; j < kTogether; ++j) {
    const unsigned settles = settle >> j & 1U;
    *tally.open = static_cast<std::uint32_t>(first + j);
    tally.open += settles ^ 1U;
    const auto top = static_cast<unsigned>(std::bit_width(found.magnitudes[j]));
    ++tally.top_levels[j][settles * top];
  }
}

HWY_INLINE unsigned find_symmetric(const std::int8_t* zeros) {
  if (zeros == nullptr) return 0xf;
  unsigned symmetric = 0;
  for (std::size_t j = 0; j < kTogether; ++j) symmetric |= (zeros[j] == 0 ? 1U : 0U) << j;
  return symmetric;
}

// All groups of a row but for a rest of less than four. `first`: the number of its first. `kept`:
// from that on, or null.
template <std::size_t kParts>
void settle_row(const Groups<kParts>& row, std::size_t count, std::size_t first,
                const std::uint8_t* kept, Tally& tally) {
  const std::size_t whole = count / kTogether * kTogether;
  std::size_t g = 0;
  while (g < whole) {
    const std::size_t noted =
        kept == nullptr ? 0 : note_kept(kept + g, whole - g, first + g, tally);
    g += noted;
    if (noted != 0) continue;
    const Groups<kParts> groups = row.from(g);
    note(look_at_four(groups), find_symmetric(groups.zeros), first + g, tally);
    g += kTogether;
  }
  for (; g < count; ++g) *tally.open++ = static_cast<std::uint32_t>(first + g);
}

template <std::size_t kParts>
void settle_rows(const Int4Rows& build, const SourceRows& source, const KeptLevels& kept,
                 Tally& tally) {
  Groups<kParts> row{.codes = reinterpret_cast<const std::uint8_t*>(build.codes.data()),
                     .weights = reinterpret_cast<const std::uint8_t*>(source.bytes.data()),
                     .scales = build.scales.data(),
                     .zeros = build.zeros.empty() ? nullptr : build.zeros.data(),
                     .several = build.group_size / kPartWeights};
  for (std::uint64_t number = 0; number < build.rows; ++number) {
    const std::size_t first = number * build.groups;
    settle_row(row, build.groups, first, kept.groups.empty() ? nullptr : &kept.groups[first],
               tally);
    const std::uint8_t* codes = row.codes;
    row = row.from(build.groups);
    row.codes = codes + build.row_bytes;
  }
}

void settle_each(const Int4Rows& build, const SourceRows& source, const KeptLevels& kept,
                 SettledGroups& out) {
  const std::size_t count = build.rows * build.groups;
  if (build.group_size % kPartWeights != 0) {
    leave_open(count, out);
    return;
  }
  out.open.resize(count + 1);  // one is written past the last
  Tally tally{.open = out.open.data()};
  if (build.group_size == kPartWeights) {
    settle_rows<1>(build, source, kept, tally);
  } else {
    settle_rows<0>(build, source, kept, tally);
  }
  out.open.resize(static_cast<std::size_t>(tally.open - out.open.data()));
  out.top_levels = {};
  for (const auto& levels : tally.top_levels) {
    std::ranges::transform(levels, out.top_levels, out.top_levels.begin(), std::plus());
  }
  out.top_levels[0] = 0;
  out.smaller_scales = tally.smaller;
  out.larger_scales = tally.larger;
}

#endif

}  // namespace gridscope::quant::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace gridscope::quant {

HWY_EXPORT(settle_each);

void settle_grids(const Int4Rows& build, const SourceRows& source, const KeptLevels& kept,
                  SettledGroups& out) {
  HWY_DYNAMIC_DISPATCH(settle_each)(build, source, kept, out);
}

}  // namespace gridscope::quant

#endif
