// A group's weights are looked up by code among the values of the 16 levels and compared with the
// stored ones. The levels that its codes hold are looked up as sets of bits, and a table of all
// sets says which of them leave one grid only.

#include "gridscope/quant/settled_grids.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/kernels/settle_grids.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <tuple>

#include "gridscope/core/endian.hpp"
#include "gridscope/quant/codec.hpp"
#include "quant/int4_groups.hpp"
#include "quant/kernels/certain_levels.hpp"

HWY_BEFORE_NAMESPACE();
namespace gridscope::quant::HWY_NAMESPACE {

// By code, bit q - 1 for level q or -q.
using Table = std::array<std::uint8_t, 16>;
constexpr Table kMagnitudes = {128, 64, 32, 16, 8, 4, 2, 1, 0, 1, 2, 4, 8, 16, 32, 64};

// A group of the build and of the source.
struct Group {
  std::span<const std::byte> codes;
  std::span<const std::byte> weights;
};

// The magnitudes of the levels, or 0 when the levels times the step, rounded, are not the weights.
unsigned explain_plainly(const Group& group, float step) {
  unsigned magnitudes = 0;
  for (std::size_t i = 0; 2 * i < group.weights.size(); ++i) {
    const auto pair = std::to_integer<unsigned>(group.codes[i / 2]);
    const std::size_t code = pair >> (i % 2 * 4) & 0xfU;
    const double level = static_cast<int>(code) + kInt4Lowest;
    const double expected = bf16_value(to_bf16(level * static_cast<double>(step)));
    const auto stored = load_le<std::uint16_t>(group.weights.subspan(2 * i));
    if (expected != bf16_value(stored)) return 0;
    magnitudes |= kMagnitudes[code];
  }
  return magnitudes;
}

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

unsigned explain(const Group& group, float step) {
  return explain_plainly(group, step);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::Full128<std::uint8_t>;
using Words = hn::Repartition<std::uint16_t, Bytes>;

// 16 numbers as bytes, from vectors of any width.
template <class V>
HWY_INLINE hn::VFromD<Bytes> to_bytes(const V& numbers) {
  if constexpr (std::tuple_size_v<V> == 1) {
    return hn::TruncateTo(Bytes(), numbers[0]);
  } else if constexpr (std::tuple_size_v<V> == 2) {
    const hn::Half<Bytes> half;
    return hn::Combine(Bytes(), hn::TruncateTo(half, numbers[1]), hn::TruncateTo(half, numbers[0]));
  } else {
    const hn::Half<hn::Half<Bytes>> quarter;
    HWY_ALIGN Table bytes;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      hn::StoreU(hn::TruncateTo(quarter, numbers[i]), quarter, bytes.data() + 4 * i);
    }
    return hn::Load(Bytes(), bytes.data());
  }
}

// What each code stands for, both bytes of the BF16 number by themselves.
struct Values {
  hn::VFromD<Bytes> low;
  hn::VFromD<Bytes> high;
};

// Products of levels with the step are exact in float.
HWY_INLINE Values list_values(float step) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  std::array<hn::VFromD<decltype(bits)>, 16 / hn::MaxLanes(decltype(d){})> low;
  auto high = low;
  for (std::size_t i = 0; i < low.size(); ++i) {
    const int first = static_cast<int>(i * hn::MaxLanes(d)) + kInt4Lowest;
    const auto product =
        hn::BitCast(bits, hn::Mul(hn::Iota(d, static_cast<float>(first)), hn::Set(d, step)));
    const auto last = hn::And(hn::ShiftRight<16>(product), hn::Set(bits, 1));
    const auto rounded = hn::Add(product, hn::Add(last, hn::Set(bits, 0x7fff)));
    low[i] = hn::ShiftRight<16>(rounded);
    high[i] = hn::ShiftRight<24>(rounded);
  }
  return {.low = to_bytes(low), .high = to_bytes(high)};
}

// 16 weights, codes in their order: the bits that differ.
HWY_INLINE hn::VFromD<Words> differences(hn::VFromD<Bytes> codes, const Values& values,
                                         const std::uint8_t* stored) {
  const Bytes d;
  const auto low = hn::TableLookupBytes(values.low, codes);
  const auto high = hn::TableLookupBytes(values.high, codes);
  const auto first = hn::Xor(hn::InterleaveLower(d, low, high), hn::LoadU(d, stored));
  const auto second = hn::Xor(hn::InterleaveUpper(d, low, high), hn::LoadU(d, stored + 16));
  return hn::BitCast(Words(), hn::Or(first, second));
}

// All bytes in one.
HWY_INLINE unsigned fold(hn::VFromD<Bytes> bytes) {
  const hn::Repartition<std::uint64_t, Bytes> d;
  const auto halves = hn::BitCast(d, bytes);
  std::uint64_t all = hn::GetLane(hn::Or(halves, hn::Shuffle01(halves)));
  all |= all >> 32U;
  all |= all >> 16U;
  return static_cast<unsigned>((all | all >> 8U) & 0xffU);
}

HWY_INLINE unsigned explain(const Group& group, float step) {
  const Bytes d;
  if (group.codes.size() % hn::Lanes(d) != 0) return explain_plainly(group, step);
  const Values values = list_values(step);
  const auto magnitudes_of = hn::LoadU(d, kMagnitudes.data());
  const auto* codes = reinterpret_cast<const std::uint8_t*>(group.codes.data());
  const auto* stored = reinterpret_cast<const std::uint8_t*>(group.weights.data());
  auto magnitudes = hn::Zero(d);
  auto different = hn::Zero(Words());
  for (std::size_t i = 0; i < group.codes.size(); i += hn::Lanes(d)) {
    const auto pairs = hn::LoadU(d, codes + i);
    const auto shifted = hn::ShiftRight<4>(hn::BitCast(Words(), pairs));
    const auto even = hn::And(pairs, hn::Set(d, 0xf));
    const auto odd = hn::BitCast(d, hn::And(shifted, hn::Set(Words(), 0x0f0f)));
    magnitudes = hn::Or(magnitudes, hn::Or(hn::TableLookupBytes(magnitudes_of, even),
                                           hn::TableLookupBytes(magnitudes_of, odd)));
    const auto first = hn::InterleaveLower(d, even, odd);
    const auto second = hn::InterleaveUpper(d, even, odd);
    different = hn::Or(different, hn::Or(differences(first, values, stored + 4 * i),
                                         differences(second, values, stored + 4 * i + 32)));
  }
  // Signs are not looked at: a step that is not 0 has shown them to be the same.
  const auto magnitudes_differ = hn::Add(different, different);
  const bool same = hn::AllTrue(Words(), hn::Eq(magnitudes_differ, hn::Zero(Words())));
  return same ? fold(magnitudes) : 0;
}

#endif

// Whether the scale is far enough from where BF16 has fewer bits, or none, and no level moves by
// half a step when it takes the place of the step.
bool is_usable(float step, float scale) {
  const float magnitude = std::fabs(scale);
  return magnitude > 1e-30F && magnitude < 1e29F && std::fabs(step - scale) < 0.05F * magnitude;
}

// Without branches on the answers, which are hard to foretell.
void settle_each(const Int4Rows& build, const SourceRows& source, std::span<const float> steps,
                 SettledGroups& out) {
  const std::size_t group_bytes = build.group_size / 2;
  out.open.resize(steps.size());
  std::size_t open = 0;
  std::size_t i = 0;
  for (std::uint64_t row = 0; row < build.rows; ++row) {
    const auto codes = build.codes.subspan(row * build.row_bytes);
    for (std::uint64_t g = 0; g < build.groups; ++g, ++i) {
      const Group group{.codes = codes.subspan(g * group_bytes, group_bytes),
                        .weights = source.bytes.subspan(i * 4 * group_bytes, 4 * group_bytes)};
      const float scale = build.scales[i];
      const bool is_symmetric = build.zeros.empty() || build.zeros[i] == 0;
      const bool may_settle = is_symmetric && is_usable(steps[i], scale);
      const unsigned magnitudes = may_settle ? explain(group, steps[i]) : 0;
      const bool settles = kCertainLevels[magnitudes];
      out.open[open] = static_cast<std::uint32_t>(i);
      open += settles ? 0 : 1;
      ++out.top_levels[settles ? static_cast<std::size_t>(std::bit_width(magnitudes)) : 0];
      const float size = std::fabs(scale);
      const float of_step = std::fabs(steps[i]);
      out.smaller_scales += settles && size < of_step ? 1 : 0;
      out.larger_scales += settles && size > of_step ? 1 : 0;
    }
  }
  out.open.resize(open);
}

}  // namespace gridscope::quant::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace gridscope::quant {

HWY_EXPORT(settle_each);

void settle_grids(const Int4Rows& build, const SourceRows& source, std::span<const float> steps,
                  SettledGroups& out) {
  out.top_levels = {};
  out.smaller_scales = 0;
  out.larger_scales = 0;
  HWY_DYNAMIC_DISPATCH(settle_each)(build, source, steps, out);
  out.top_levels[0] = 0;
}

}  // namespace gridscope::quant

#endif
