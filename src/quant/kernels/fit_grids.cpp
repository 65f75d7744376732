// fit_grid() for many groups of BF16 numbers and levels in [-8, 7], one group a lane.
//
// Most levels that the largest weight might have are ruled out without looking at intervals: the
// others then lie too far from any level. For those that are left the ends of R(v) / q are compared
// as 840 * end / q, where 840 is the least common multiple of 1 to 8: whole multiples of 9-bit
// numbers by 10-bit ones, 19 bits, exact in float. That leaves room in the last bit of the float
// for whether an end belongs to its interval: set for a low end that does not and a high end that
// does. So comparing ends as integers compares both, and an interval holds a step when its low end
// is less than its high end. Groups with extreme exponents go to fit_grid().

#include "gridscope/quant/grid.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/kernels/fit_grids.cpp"
#include <hwy/aligned_allocator.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <span>
#include <vector>

#include "gridscope/quant/codec.hpp"
#include "quant/int4_groups.hpp"
#include "quant/kernels/blocks-inl.hpp"
#include "quant/kernels/prefetch.hpp"
#include "quant/kernels/rounding-inl.hpp"

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

using Floats = hn::ScalableTag<float>;
using Bits = hn::RebindToUnsigned<Floats>;
using Ints = hn::RebindToSigned<Floats>;
using Shorts = hn::Repartition<std::int16_t, Floats>;

constexpr std::size_t kLanes = hn::MaxLanes(Floats{});
constexpr std::size_t kAhead = 2;     // batches that are fetched in advance
constexpr std::size_t kTogether = 8;  // numbers of a group that are loaded at once
constexpr int kTopLevel = 8;
// Largest magnitudes from 2^-100 to 2^100, as floats: nothing below overflows or loses bits.
constexpr std::int32_t kLeastLargest = 27 << 23;
constexpr std::int32_t kMostLargest = 227 << 23;
constexpr std::int32_t kInfinite = 255 << 23;
constexpr std::size_t kProbed = 8;  // weights of a group that choose the levels to be tried
// 2^-14, and a little for levels that are farther than their positions, and for rounding in float.
constexpr float kTolerance = 1.05F / 16384;
constexpr std::uint32_t kOddLevels = 0xaa;
constexpr int kEnoughMagnitudes = 3;

// As many groups as there are lanes, one after the other.
struct Batch {
  const std::uint8_t* words;
  std::size_t group_size;
  float* values;  // magnitudes: vector i has number i of every group

  [[nodiscard]] std::span<const std::byte> group(std::size_t lane) const {
    const std::size_t bytes = 2 * group_size;
    return std::as_bytes(std::span(words + lane * bytes, bytes));
  }
};

// By lane. Floats are kept as their bits.
struct Search {
  HWY_ALIGN std::array<std::int32_t, kLanes> largest;   // magnitude
  HWY_ALIGN std::array<std::int32_t, kLanes> positive;  // the largest, less than 0 if there is none
  HWY_ALIGN std::array<std::int32_t, kLanes> negative;  // likewise, its magnitude
  HWY_ALIGN std::array<std::uint32_t, kLanes> candidates;  // bit K: K is to be tried
  HWY_ALIGN std::array<std::int32_t, kLanes> top;          // the level of the largest, being tried
  HWY_ALIGN std::array<std::int32_t, kLanes> low;          // the steps that are left, times 840
  HWY_ALIGN std::array<std::int32_t, kLanes> high;
  HWY_ALIGN std::array<std::uint32_t, kLanes> levels;  // bit q: a weight has level q or -q
};

// Numbers 2i and 2i + 1 of every group.
struct Pairs {
  std::array<hn::VFromD<Bits>, kTogether / 2> of;
};

HWY_INLINE Pairs load_pairs(const std::uint8_t* words, std::size_t group_bytes) {
  const hn::Repartition<std::uint8_t, Bits> bytes;
  const hn::Repartition<std::uint64_t, Bits> quads;
  const Bits d;
  // Block j of the vectors has groups 4j to 4j + 3.
  const auto load = [&](std::size_t group) HWY_ATTR {
    return hn::BitCast(d, load_blocks(bytes, words + group * group_bytes, 4 * group_bytes));
  };
  const auto first = load(0);
  const auto second = load(1);
  const auto third = load(2);
  const auto fourth = load(3);
  const auto low_01 = hn::BitCast(quads, hn::InterleaveLower(d, first, second));
  const auto low_23 = hn::BitCast(quads, hn::InterleaveLower(d, third, fourth));
  const auto high_01 = hn::BitCast(quads, hn::InterleaveUpper(d, first, second));
  const auto high_23 = hn::BitCast(quads, hn::InterleaveUpper(d, third, fourth));
  return {.of = {hn::BitCast(d, hn::InterleaveLower(quads, low_01, low_23)),
                 hn::BitCast(d, hn::InterleaveUpper(quads, low_01, low_23)),
                 hn::BitCast(d, hn::InterleaveLower(quads, high_01, high_23)),
                 hn::BitCast(d, hn::InterleaveUpper(quads, high_01, high_23))}};
}

// The larger one of both halves of each lane, as the upper half.
HWY_INLINE hn::VFromD<Ints> larger_half(hn::VFromD<Shorts> halves) {
  const Ints d;
  const auto lanes = hn::BitCast(d, halves);
  return hn::Max(hn::And(lanes, hn::Set(d, -0x10000)), hn::ShiftLeft<16>(lanes));
}

// As 16-bit integers positive numbers are in their order and negative ones below all of them.
HWY_INLINE void load_values(const Batch& batch, Search& search) {
  const Bits d;
  const auto sign = hn::Set(Shorts(), std::int16_t{-0x8000});
  auto positive = sign;
  auto negative = sign;
  for (std::size_t i = 0; i < batch.group_size; i += kTogether) {
    const Pairs pairs = load_pairs(batch.words + 2 * i, 2 * batch.group_size);
    for (std::size_t k = 0; k < kTogether / 2; ++k) {
      const auto stored = hn::BitCast(Shorts(), pairs.of[k]);
      positive = hn::Max(positive, stored);
      negative = hn::Max(negative, hn::Xor(stored, sign));
      const auto magnitudes = hn::BitCast(d, hn::AndNot(sign, stored));
      float* out = batch.values + (i + 2 * k) * kLanes;
      hn::Store(hn::BitCast(Floats(), hn::ShiftLeft<16>(magnitudes)), Floats(), out);
      hn::Store(hn::BitCast(Floats(), hn::And(magnitudes, hn::Set(d, 0xffff0000U))), Floats(),
                out + kLanes);
    }
  }
  const Ints ints;
  hn::Store(larger_half(positive), ints, search.positive.data());
  hn::Store(larger_half(negative), ints, search.negative.data());
  hn::Store(hn::Max(larger_half(positive), larger_half(negative)), ints, search.largest.data());
}

// The largest weights, or 1 in lanes where they are too large or too small.
HWY_INLINE hn::VFromD<Floats> usable_largest(const Search& search) {
  const Ints d;
  const auto largest = hn::Load(d, search.largest.data());
  const auto usable = hn::And(hn::Gt(largest, hn::Set(d, kLeastLargest - 1)),
                              hn::Lt(largest, hn::Set(d, kMostLargest)));
  return hn::IfThenElse(hn::RebindMask(Floats(), usable), hn::BitCast(Floats(), largest),
                        hn::Set(Floats(), 1.0F));
}

// The bits of magnitudes less 1: of the largest one in the place of zeros, which any step explains,
// and of all that are larger.
HWY_INLINE hn::VFromD<Bits> load_usable(const Batch& batch, std::size_t i,
                                        hn::VFromD<Floats> largest) {
  const Bits d;
  const auto one = hn::Set(d, 1);
  const auto stored = hn::BitCast(d, hn::Load(Floats(), batch.values + i * kLanes));
  return hn::Min(hn::Sub(stored, one), hn::Sub(hn::BitCast(d, largest), one));
}

// Levels 5 to 8 as far as the distances of a few weights from levels tell. The distance from level
// q is at most q * 2^-7, so the sum of their squares is at most that of the levels times 2^-14.
HWY_INLINE void find_candidates(const Batch& batch, Search& search) {
  constexpr std::size_t kLeast = kTopLevel / 2 + 1;
  const Floats d;
  const auto largest = usable_largest(search);
  const auto per_level = hn::Div(hn::Set(d, 1.0F), largest);
  auto squares = hn::Zero(d);
  std::array<hn::VFromD<Floats>, kTopLevel - kLeast + 1> distances;
  for (auto& sum : distances) sum = hn::Zero(d);
  for (std::size_t i = 0; i < std::min(kProbed, batch.group_size); ++i) {
    const auto ratio = hn::Mul(hn::BitCast(d, load_usable(batch, i, largest)), per_level);
    squares = hn::MulAdd(ratio, ratio, squares);
    for (std::size_t k = 0; k < distances.size(); ++k) {
      const auto position = hn::Mul(ratio, hn::Set(d, static_cast<float>(kLeast + k)));
      const auto distance = hn::Sub(position, hn::Round(position));
      distances[k] = hn::MulAdd(distance, distance, distances[k]);
    }
  }
  const Bits bits;
  auto candidates = hn::Zero(bits);
  for (std::size_t k = 0; k < distances.size(); ++k) {
    const std::size_t level = kLeast + k;
    const auto most = hn::Mul(squares, hn::Set(d, static_cast<float>(level * level) * kTolerance));
    const auto is_near = hn::RebindMask(bits, hn::Le(distances[k], most));
    candidates = hn::Or(candidates, hn::IfThenElseZero(is_near, hn::Set(bits, 1U << level)));
  }
  hn::Store(candidates, bits, search.candidates.data());
}

// 840 / level.
HWY_INLINE hn::VFromD<Floats> per_level(hn::VFromD<Ints> level) {
  const Floats d;
  if constexpr (kLanes > kTopLevel) {
    HWY_ALIGN static constexpr std::array<float, 16> kQuotients = {
        std::numeric_limits<float>::infinity(), 840, 420, 280, 210, 168, 140, 120, 105};
    return hn::TableLookupLanes(hn::Load(d, kQuotients.data()), hn::IndicesFromVec(d, level));
  } else {
    return hn::Div(hn::Set(d, static_cast<float>(kCommonMultiple)), hn::ConvertTo(d, level));
  }
}

// Intersects R(v) / q over the groups. A weight with level 0 leaves nothing.
HWY_INLINE void intersect(const Batch& batch, Search& search) {
  const Floats d;
  const Bits bits;
  const Ints ints;
  const auto one = hn::Set(bits, 1);
  // Half a unit of the eighth bit is bit 15 of a float, across powers of two as well.
  const auto to_low = hn::Set(bits, 1U - 0x8000U);
  const auto to_high = hn::Set(bits, 1U + 0x8000U);
  const auto largest = usable_largest(search);
  const auto per_step = hn::Div(hn::ConvertTo(d, hn::Load(ints, search.top.data())), largest);
  auto lowest = hn::Zero(ints);
  auto highest = hn::Set(ints, kInfinite);
  auto levels = hn::Zero(bits);
  for (std::size_t i = 0; i < batch.group_size; ++i) {
    const auto code = load_usable(batch, i, largest);
    const auto level = nearest_small(d, hn::BitCast(d, code), per_step);
    const auto factor = per_level(level);
    const auto low = hn::Mul(hn::BitCast(d, hn::Add(code, to_low)), factor);
    const auto high = hn::Mul(hn::BitCast(d, hn::Add(code, to_high)), factor);
    const auto is_even = hn::ShiftRight<16>(code);  // having 1 less turns the last bit over
    const auto out = hn::AndNot(is_even, one);
    const auto in = hn::And(is_even, one);
    lowest = hn::Max(lowest, hn::BitCast(ints, hn::Or(hn::BitCast(bits, low), out)));
    highest = hn::Min(highest, hn::BitCast(ints, hn::Or(hn::BitCast(bits, high), in)));
    levels = hn::Or(levels, hn::Shl(one, hn::BitCast(bits, level)));
  }
  hn::Store(lowest, ints, search.low.data());
  hn::Store(highest, ints, search.high.data());
  hn::Store(levels, bits, search.levels.data());
}

constexpr std::uint32_t bit(int level) {
  return 1U << static_cast<unsigned>(level);
}

double step_of(std::int32_t end) {
  return static_cast<double>(std::bit_cast<float>(end & ~1)) / kCommonMultiple;
}

// Whether the first weight of the largest magnitude is negative.
bool is_negative_first(const Batch& batch, const Search& search, std::size_t lane) {
  if (search.positive[lane] != search.negative[lane]) {
    return search.negative[lane] > search.positive[lane];
  }
  const std::uint8_t* word = batch.words + lane * batch.group_size * 2;
  while (((word[1] & 0x7f) << 24 | word[0] << 16) != search.largest[lane]) word += 2;
  return word[1] >= 0x80;
}

// The fit with the level that was tried: the highest that is feasible. Its verdict may yet change.
void describe_fit(const Batch& batch, const Search& search, std::size_t lane, GridFit& fit) {
  const int top = search.top[lane];
  const bool positive = top < kTopLevel || search.positive[lane] < search.negative[lane];
  fit.step_low = step_of(search.low[lane]);
  fit.step_high = step_of(search.high[lane]);
  fit.step = (positive ? 1.0 : -1.0) * (fit.step_low + (fit.step_high - fit.step_low) / 2);
  fit.low_is_feasible = (search.low[lane] & 1) == 0;
  fit.high_is_feasible = (search.high[lane] & 1) != 0;
  fit.top_level = positive != is_negative_first(batch, search, lane) ? top : -top;
  const bool clear = std::popcount(search.levels[lane]) >= kEnoughMagnitudes;
  fit.verdict = clear ? GridClass::kOnGrid : GridClass::kAmbiguous;
}

// What having tried a level says about the group.
void conclude(const Batch& batch, std::size_t lane, Search& search, GridFit& fit) {
  const int top = search.top[lane];
  search.candidates[lane] &= ~bit(top);
  if (search.low[lane] >= search.high[lane]) return;
  // Even levels of one step are levels of twice that step.
  const bool halves = top % 2 == 0 && (search.levels[lane] & kOddLevels) == 0;
  if (halves) search.candidates[lane] |= bit(top / 2);
  // No step makes both 8 and -8 levels.
  if (top == kTopLevel && search.positive[lane] == search.negative[lane]) return;
  if (fit.feasible == 0) {
    describe_fit(batch, search, lane, fit);
  } else {
    fit.verdict = GridClass::kAmbiguous;
  }
  fit.feasible |= bit(top);
}

// Chooses the levels to be tried next: false when none is left.
bool choose_tops(Search& search) {
  std::uint32_t any = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    any |= search.candidates[lane];
    search.top[lane] = static_cast<int>(std::bit_width(search.candidates[lane] | 1U)) - 1;
  }
  return any != 0;
}

// False where fit_grid() has to decide.
bool classify(std::int32_t largest, GridFit& fit) {
  // Copied: one that is made in place is put together from pieces, and read back with a stall.
  static constexpr GridFit kNone;
  fit = kNone;
  if (largest >= kInfinite) fit.verdict = GridClass::kNonFinite;
  if (largest == 0) fit.verdict = GridClass::kDead;
  return fit.verdict != GridClass::kOffGrid || (largest >= kLeastLargest && largest < kMostLargest);
}

void fit_batch(const Batch& batch, PlainFit& plain, std::span<GridFit> fits) {
  const std::size_t bytes = 2 * batch.group_size * kLanes;
  prefetch(batch.words + kAhead * bytes, bytes);
  Search search;
  load_values(batch, search);
  find_candidates(batch, search);
  std::fill(search.candidates.data() + fits.size(), search.candidates.data() + kLanes, 0U);
  for (std::size_t lane = 0; lane < fits.size(); ++lane) {
    const bool is_usual = classify(search.largest[lane], fits[lane]);
    if (!is_usual) fits[lane] = plain(batch.group(lane), {});
    if (!is_usual || fits[lane].verdict != GridClass::kOffGrid) search.candidates[lane] = 0;
  }
  while (choose_tops(search)) {
    intersect(batch, search);
    for (std::size_t lane = 0; lane < fits.size(); ++lane) {
      if (search.candidates[lane] != 0) conclude(batch, lane, search, fits[lane]);
    }
  }
}

void fit_usual_range(std::span<const std::byte> bf16, std::uint64_t group_size,
                     std::span<GridFit> fits) {
  PlainFit plain(group_size);
  const auto values = hwy::AllocateAligned<float>(group_size * kLanes);
  const std::size_t batch_bytes = group_size * 2 * kLanes;
  std::vector<std::byte> last;
  for (std::size_t first = 0; first < fits.size(); first += kLanes) {
    auto bytes = bf16.subspan(first * group_size * 2);
    if (bytes.size() < batch_bytes) {
      last.assign(bytes.begin(), bytes.end());
      last.resize(batch_bytes);
      bytes = last;
    }
    const Batch batch{.words = reinterpret_cast<const std::uint8_t*>(bytes.data()),
                      .group_size = group_size,
                      .values = values.get()};
    fit_batch(batch, plain, fits.subspan(first, std::min(kLanes, fits.size() - first)));
  }
}

void fit_each(std::span<const std::byte> bf16, std::uint64_t group_size, LevelRange range,
              std::span<GridFit> fits) {
  const bool usual = range.lowest == -kTopLevel && range.highest == kTopLevel - 1;
  if (usual && group_size % kTogether == 0) {
    fit_usual_range(bf16, group_size, fits);
  } else {
    fit_plainly(bf16, group_size, range, fits);
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

// Gathered first: that costs a tenth of the search.
void fit_grids_of(std::span<const std::byte> bf16, std::uint64_t group_size,
                  std::span<const std::uint32_t> groups, std::span<GridFit> fits) {
  const std::size_t bytes = 2 * group_size;
  std::vector<std::byte> gathered(groups.size() * bytes);
  auto out = gathered.begin();
  for (const std::uint32_t group : groups) {
    out = std::ranges::copy(bf16.subspan(group * bytes, bytes), out).out;
  }
  fit_grids(gathered, group_size, {}, fits);
}

}  // namespace gridscope::quant

#endif
