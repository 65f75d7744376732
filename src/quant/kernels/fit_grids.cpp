// fit_grid() for many groups of BF16 numbers and levels in [-8, 7].
//
// Most levels that the largest weight might have are ruled out without looking at intervals: some
// weight then lies too far from any level. For those that are left the ends of R(v) / q are
// compared as 840 * end / q, where 840 is the least common multiple of 1 to 8: whole multiples of
// 9-bit numbers by 10-bit ones, exact in float. Groups with extreme exponents go to fit_grid().

#include "gridscope/quant/grid.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/kernels/fit_grids.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <span>
#include <vector>

#include "gridscope/quant/codec.hpp"

HWY_BEFORE_NAMESPACE();
namespace gridscope::quant::HWY_NAMESPACE {

// One group by the definition.
class PlainFit {
 public:
  explicit PlainFit(std::size_t group_size) : numbers_(group_size), values_(group_size) {}

  GridFit operator()(std::span<const std::byte> group, LevelRange range) {
    load_numbers(Dtype::kBF16, group, numbers_);
    std::ranges::transform(numbers_, values_.begin(),
                           [](double number) { return static_cast<float>(number); });
    return fit_grid(values_, Dtype::kBF16, range, {});
  }

 private:
  std::vector<double> numbers_;
  std::vector<float> values_;
};

void fit_plainly(std::span<const std::byte> bf16, std::uint64_t group_size, LevelRange range,
                 std::span<GridFit> fits) {
  PlainFit plain(group_size);
  for (std::size_t g = 0; g < fits.size(); ++g) {
    fits[g] = plain(bf16.subspan(g * group_size * 2, group_size * 2), range);
  }
}

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

void fit_each(std::span<const std::byte> bf16, std::uint64_t group_size, LevelRange range,
              std::span<GridFit> fits) {
  fit_plainly(bf16, group_size, range, fits);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::ScalableTag<std::uint16_t>;
using Floats = hn::ScalableTag<float>;
using FloatBits = hn::RebindToUnsigned<Floats>;
using HalfWords = hn::Rebind<std::uint16_t, FloatBits>;

constexpr std::size_t kUsualSize = 32;
constexpr int kTopLevel = 8;
constexpr float kCommonMultiple = 840.0F;
// Largest magnitudes from 2^-100 to 2^100: nothing below overflows or loses bits.
constexpr std::uint16_t kLeastLargest = 27 << 7;
constexpr std::uint16_t kMostLargest = 227 << 7;
constexpr std::uint16_t kInfinite = 0x7f80;
// How far a weight can be from its level when the step is the largest weight over its level: 1/16,
// and a little for rounding in float.
constexpr float kTolerance = 0.0635F;

// Groups of the usual size have it at compile time: then all loops over them are unrolled.
template <std::size_t kSize>
struct Group {
  const std::uint8_t* words;
  std::size_t given_size;
  float* values;  // magnitudes
  float* lows;    // 840 * low end / level
  float* highs;

  [[nodiscard]] std::size_t size() const { return kSize != 0 ? kSize : given_size; }
};

template <std::size_t kSize>
HWY_INLINE hn::VFromD<Words> load_words(const Group<kSize>& group, std::size_t first) {
  const hn::Repartition<std::uint8_t, Words> bytes;
  return hn::BitCast(Words(), hn::LoadU(bytes, group.words + 2 * first));
}

struct Magnitudes {
  std::uint16_t largest = 0;
  std::uint16_t smallest = 0;  // but for zero
};

// Stores the magnitudes as floats on the way.
template <std::size_t kSize>
HWY_INLINE Magnitudes load_magnitudes(const Group<kSize>& group) {
  const Words d;
  const FloatBits bits;
  auto largest = hn::Zero(d);
  auto smallest = hn::Set(d, 0xffff);
  for (std::size_t i = 0; i < group.size(); i += hn::Lanes(d)) {
    const auto magnitude = hn::And(load_words(group, i), hn::Set(d, 0x7fff));
    largest = hn::Max(largest, magnitude);
    smallest = hn::Min(smallest, hn::Sub(magnitude, hn::Set(d, 1)));
    const auto low = hn::PromoteTo(bits, hn::LowerHalf(magnitude));
    const auto high = hn::PromoteTo(bits, hn::UpperHalf(HalfWords(), magnitude));
    hn::StoreU(hn::BitCast(Floats(), hn::ShiftLeft<16>(low)), Floats(), group.values + i);
    hn::StoreU(hn::BitCast(Floats(), hn::ShiftLeft<16>(high)), Floats(),
               group.values + i + hn::Lanes(bits));
  }
  return {.largest = hn::GetLane(hn::MaxOfLanes(d, largest)),
          .smallest = static_cast<std::uint16_t>(hn::GetLane(hn::MinOfLanes(d, smallest)) + 1)};
}

// Whether every weight is near a level when the largest one has this one.
template <std::size_t kSize>
HWY_INLINE bool all_near(const Group<kSize>& group, float per_step) {
  const Floats d;
  auto farthest = hn::Zero(d);
  for (std::size_t i = 0; i < group.size(); i += hn::Lanes(d)) {
    const auto ratio = hn::Mul(hn::LoadU(d, group.values + i), hn::Set(d, per_step));
    farthest = hn::Max(farthest, hn::Abs(hn::Sub(ratio, hn::Round(ratio))));
  }
  return hn::AllTrue(d, hn::Le(farthest, hn::Set(d, kTolerance)));
}

struct Ends {
  float low = 0.0F;
  float high = 0.0F;
};

template <std::size_t kSize>
HWY_INLINE Ends intersect(const Group<kSize>& group, float per_step) {
  const Floats d;
  const FloatBits bits;
  const auto infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  auto lowest = hn::Zero(d);
  auto highest = infinity;
  for (std::size_t i = 0; i < group.size(); i += hn::Lanes(d)) {
    const auto value = hn::LoadU(d, group.values + i);
    const auto level = hn::Round(hn::Mul(value, hn::Set(d, per_step)));
    const auto factor = hn::Div(hn::Set(d, kCommonMultiple), level);
    // Half a unit of the eighth bit is bit 15 of a float, across powers of two as well.
    const auto half = hn::Set(bits, 0x8000);
    const auto code = hn::BitCast(bits, value);
    const auto is_zero = hn::Eq(value, hn::Zero(d));
    const auto low =
        hn::IfThenZeroElse(is_zero, hn::Mul(hn::BitCast(d, hn::Sub(code, half)), factor));
    const auto high =
        hn::IfThenElse(is_zero, infinity, hn::Mul(hn::BitCast(d, hn::Add(code, half)), factor));
    hn::StoreU(low, d, group.lows + i);
    hn::StoreU(high, d, group.highs + i);
    lowest = hn::Max(lowest, low);
    highest = hn::Min(highest, high);
  }
  return {.low = hn::GetLane(hn::MaxOfLanes(d, lowest)),
          .high = hn::GetLane(hn::MinOfLanes(d, highest))};
}

// Whether only numbers with an even last bit have the end `end`, which then belongs to the
// interval.
template <std::size_t kSize>
HWY_INLINE bool is_even_end(const Group<kSize>& group, const float* ends, float end) {
  const Floats d;
  const FloatBits bits;
  auto odd = hn::Zero(bits);
  for (std::size_t i = 0; i < group.size(); i += hn::Lanes(d)) {
    const auto code = hn::BitCast(bits, hn::LoadU(d, group.values + i));
    const auto is_end = hn::Eq(hn::LoadU(d, ends + i), hn::Set(d, end));
    odd = hn::Or(odd, hn::IfThenElseZero(hn::RebindMask(bits, is_end), code));
  }
  return hn::AllFalse(bits, hn::TestBit(odd, hn::Set(bits, 0x10000)));
}

template <std::size_t kSize>
HWY_INLINE bool is_empty(const Group<kSize>& group, const Ends& ends) {
  if (ends.low != ends.high) return ends.low > ends.high;
  return !is_even_end(group, group.lows, ends.low) || !is_even_end(group, group.highs, ends.high);
}

struct Occurrence {
  bool positive = false;         // the largest magnitude occurs as a positive number
  bool negative = false;         // and as a negative one
  bool negative_first = false;   // and first as a negative one
  bool third_magnitude = false;  // there is one that is neither 0 nor the largest nor the smallest
};

template <std::size_t kSize>
HWY_INLINE Occurrence look_around(const Group<kSize>& group, const Magnitudes& of) {
  const Words d;
  const auto positive = hn::Set(d, of.largest);
  const auto negative = hn::Set(d, static_cast<std::uint16_t>(of.largest | 0x8000U));
  Occurrence found;
  for (std::size_t i = 0; i < group.size(); i += hn::Lanes(d)) {
    const auto stored = load_words(group, i);
    const auto magnitude = hn::And(stored, hn::Set(d, 0x7fff));
    const auto is_positive = hn::Eq(stored, positive);
    const auto is_negative = hn::Eq(stored, negative);
    const bool first = !found.positive && !found.negative;
    found.positive |= !hn::AllFalse(d, is_positive);
    found.negative |= !hn::AllFalse(d, is_negative);
    if (first && (found.positive || found.negative)) {
      const auto at = hn::FindFirstTrue(d, hn::Or(is_positive, is_negative));
      found.negative_first = group.words[2 * (i + static_cast<std::size_t>(at)) + 1] >= 0x80;
    }
    const auto between =
        hn::And(hn::Lt(magnitude, positive), hn::Gt(magnitude, hn::Set(d, of.smallest)));
    found.third_magnitude |= !hn::AllFalse(d, between);
  }
  return found;
}

float bf16_float(std::uint16_t code) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16U);
}

constexpr std::uint32_t bit(int level) {
  return 1U << static_cast<unsigned>(level);
}

// Levels that the largest weight may have as far as the distances of the others from levels tell.
template <std::size_t kSize>
HWY_INLINE std::uint32_t near_levels(const Group<kSize>& group, float per_level) {
  std::uint32_t levels = 0;
  for (int level = kTopLevel / 2 + 1; level <= kTopLevel; ++level) {
    levels |= all_near(group, static_cast<float>(level) * per_level) ? bit(level) : 0;
  }
  // A grid is half of one with half its step.
  for (int level = kTopLevel / 2; level > 0; --level) {
    if ((levels & bit(2 * level)) == 0) continue;
    levels |= all_near(group, static_cast<float>(level) * per_level) ? bit(level) : 0;
  }
  return levels;
}

// The fit with level `top`, whose ends were the last to be intersected; not yet its verdict.
template <std::size_t kSize>
HWY_INLINE void describe_fit(const Group<kSize>& group, const Occurrence& found, const Ends& ends,
                             int top, GridFit& fit) {
  const bool positive = top < kTopLevel || !found.positive;
  fit.step_low = static_cast<double>(ends.low) / static_cast<double>(kCommonMultiple);
  fit.step_high = static_cast<double>(ends.high) / static_cast<double>(kCommonMultiple);
  fit.step = (positive ? 1.0 : -1.0) * (fit.step_low + (fit.step_high - fit.step_low) / 2);
  fit.low_is_feasible = is_even_end(group, group.lows, ends.low);
  fit.high_is_feasible = is_even_end(group, group.highs, ends.high);
  fit.top_level = positive != found.negative_first ? top : -top;
}

// Requires: some weight is not zero, all are finite.
template <std::size_t kSize>
HWY_INLINE void fit_levels(const Group<kSize>& group, const Magnitudes& of, GridFit& fit) {
  const Occurrence found = look_around(group, of);
  const float per_level = 1.0F / bf16_float(of.largest);
  const float smallest = bf16_float(of.smallest) * per_level;
  std::uint32_t candidates = near_levels(group, per_level);
  // No step makes both 8 and -8 levels.
  if (found.positive && found.negative) candidates &= ~bit(kTopLevel);
  while (candidates != 0) {
    const int level = std::bit_width(candidates) - 1;
    candidates &= ~bit(level);
    // Else the smallest weight would have level 0.
    if (smallest * static_cast<float>(level) < 0.5F) break;
    const Ends ends = intersect(group, static_cast<float>(level) * per_level);
    if (is_empty(group, ends)) continue;
    if (fit.feasible == 0) describe_fit(group, found, ends, level, fit);
    fit.feasible |= bit(level);
  }
  if (fit.feasible == 0) return;
  // Of feasible levels those that do not divide the largest belong to other grids.
  const int top = std::bit_width(fit.feasible) - 1;
  bool clear = found.third_magnitude;
  for (int level = 2; level < top; ++level) {
    clear = clear && ((fit.feasible & bit(level)) == 0 || top % level == 0);
  }
  fit.verdict = clear ? GridClass::kOnGrid : GridClass::kAmbiguous;
}

// False where fit_grid() has to decide.
template <std::size_t kSize>
HWY_INLINE bool fit_fast(const Group<kSize>& group, GridFit& fit) {
  fit = {};
  const Magnitudes of = load_magnitudes(group);
  if (of.largest >= kInfinite) {
    fit.verdict = GridClass::kNonFinite;
  } else if (of.largest == 0) {
    fit.verdict = GridClass::kDead;
  } else if (of.largest < kLeastLargest || of.largest >= kMostLargest) {
    return false;
  } else {
    fit_levels(group, of, fit);
  }
  return true;
}

template <std::size_t kSize>
void fit_usual_range(std::span<const std::byte> bf16, std::uint64_t group_size,
                     std::span<GridFit> fits) {
  PlainFit plain(group_size);
  std::vector<float> memory(3 * group_size);
  for (std::size_t g = 0; g < fits.size(); ++g) {
    const auto bytes = bf16.subspan(g * group_size * 2, group_size * 2);
    const Group<kSize> group{.words = reinterpret_cast<const std::uint8_t*>(bytes.data()),
                             .given_size = group_size,
                             .values = memory.data(),
                             .lows = memory.data() + group_size,
                             .highs = memory.data() + 2 * group_size};
    if (!fit_fast(group, fits[g])) fits[g] = plain(bytes, {});
  }
}

void fit_each(std::span<const std::byte> bf16, std::uint64_t group_size, LevelRange range,
              std::span<GridFit> fits) {
  const bool usual = range.lowest == -kTopLevel && range.highest == kTopLevel - 1;
  if (!usual || group_size % hn::Lanes(Words()) != 0) {
    fit_plainly(bf16, group_size, range, fits);
  } else if (group_size == kUsualSize) {
    fit_usual_range<kUsualSize>(bf16, group_size, fits);
  } else {
    fit_usual_range<0>(bf16, group_size, fits);
  }
}

#endif

}  // namespace gridscope::quant::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace gridscope::quant {

HWY_EXPORT(fit_each);

void fit_grids(std::span<const std::byte> bf16, std::uint64_t group_size, LevelRange range,
               std::span<GridFit> fits) {
  HWY_DYNAMIC_DISPATCH(fit_each)(bf16, group_size, range, fits);
}

}  // namespace gridscope::quant

#endif
