// A group's weights are looked up by code among the values of the 16 levels and compared with the
// stored ones. The levels that its codes hold are looked up as sets of bits, and a table of all
// sets says which of them leave one grid only.

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

#include "gridscope/core/endian.hpp"
#include "gridscope/quant/codec.hpp"
#include "quant/int4_groups.hpp"
#include "quant/kernels/certain_levels.hpp"

HWY_BEFORE_NAMESPACE();
namespace gridscope::quant::HWY_NAMESPACE {

// Which levels there are: bit q - 1 for q, and for -q.
struct Levels {
  unsigned positive = 0;
  unsigned negative = 0;
};

// By code.
using Table = std::array<std::uint8_t, 16>;
constexpr Table kPositive = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64};
constexpr Table kNegative = {128, 64, 32, 16, 8, 4, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0};

Levels find_plainly(std::span<const std::byte> codes) {
  Levels levels;
  for (const std::byte pair : codes) {
    const auto even = std::to_integer<std::size_t>(pair & std::byte{0xf});
    const auto odd = std::to_integer<std::size_t>(pair >> 4U);
    levels.positive |= static_cast<unsigned>(kPositive[even] | kPositive[odd]);
    levels.negative |= static_cast<unsigned>(kNegative[even] | kNegative[odd]);
  }
  return levels;
}

bool gives_plainly(std::span<const std::byte> codes, float step,
                   std::span<const std::byte> weights) {
  for (std::size_t i = 0; 2 * i < weights.size(); ++i) {
    const auto pair = std::to_integer<unsigned>(codes[i / 2]);
    const int level = static_cast<int>(pair >> (i % 2 * 4) & 0xfU) + kInt4Lowest;
    const double expected = rounded_to(Dtype::kBF16, level * static_cast<double>(step));
    if (expected != bf16_value(load_le<std::uint16_t>(weights.subspan(2 * i)))) return false;
  }
  return true;
}

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

Levels find_levels(std::span<const std::byte> codes) {
  return find_plainly(codes);
}

bool gives(std::span<const std::byte> codes, float step, std::span<const std::byte> weights) {
  return gives_plainly(codes, step, weights);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::Full128<std::uint8_t>;
using Words = hn::Repartition<std::uint16_t, Bytes>;
using Halves = hn::Repartition<std::uint64_t, Bytes>;

struct Nibbles {
  hn::VFromD<Bytes> even;
  hn::VFromD<Bytes> odd;
};

HWY_INLINE Nibbles load_nibbles(const std::uint8_t* codes) {
  const Bytes d;
  const auto pairs = hn::LoadU(d, codes);
  const auto shifted = hn::ShiftRight<4>(hn::BitCast(Words(), pairs));
  return {.even = hn::And(pairs, hn::Set(d, 0xf)),
          .odd = hn::BitCast(d, hn::And(shifted, hn::Set(Words(), 0x0f0f)))};
}

// All bytes of eight in one.
unsigned fold(std::uint64_t bytes) {
  bytes |= bytes >> 32U;
  bytes |= bytes >> 16U;
  return static_cast<unsigned>((bytes | bytes >> 8U) & 0xffU);
}

Levels fold(hn::VFromD<Bytes> positive, hn::VFromD<Bytes> negative) {
  const Halves d;
  const auto a = hn::BitCast(d, positive);
  const auto b = hn::BitCast(d, negative);
  std::array<std::uint64_t, 2> both = {};
  hn::StoreU(hn::Or(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)), d, both.data());
  return {.positive = fold(both[0]), .negative = fold(both[1])};
}

Levels find_levels(std::span<const std::byte> codes) {
  const Bytes d;
  if (codes.size() % hn::Lanes(d) != 0) return find_plainly(codes);
  const auto positive_of = hn::LoadU(d, kPositive.data());
  const auto negative_of = hn::LoadU(d, kNegative.data());
  auto positive = hn::Zero(d);
  auto negative = hn::Zero(d);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(codes.data());
  for (std::size_t i = 0; i < codes.size(); i += hn::Lanes(d)) {
    const Nibbles pairs = load_nibbles(bytes + i);
    positive = hn::Or(positive, hn::Or(hn::TableLookupBytes(positive_of, pairs.even),
                                       hn::TableLookupBytes(positive_of, pairs.odd)));
    negative = hn::Or(negative, hn::Or(hn::TableLookupBytes(negative_of, pairs.even),
                                       hn::TableLookupBytes(negative_of, pairs.odd)));
  }
  return fold(positive, negative);
}

// Values of all levels by code, the bytes of BF16 numbers apart.
struct Values {
  HWY_ALIGN Table low;
  HWY_ALIGN Table high;
};

// Products with the step are exact in float.
void list_values(float step, Values& values) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  for (std::size_t code = 0; code < values.low.size(); code += hn::Lanes(d)) {
    const auto level = hn::Iota(d, static_cast<float>(static_cast<int>(code) + kInt4Lowest));
    const auto product = hn::BitCast(bits, hn::Mul(level, hn::Set(d, step)));
    const auto last = hn::And(hn::ShiftRight<16>(product), hn::Set(bits, 1));
    const auto rounded = hn::Add(product, hn::Add(last, hn::Set(bits, 0x7fff)));
    hn::StoreU(hn::TruncateTo(bytes, hn::ShiftRight<16>(rounded)), bytes, values.low.data() + code);
    hn::StoreU(hn::TruncateTo(bytes, hn::ShiftRight<24>(rounded)), bytes,
               values.high.data() + code);
  }
}

// Where both are numbers and differ; -0 equals 0.
HWY_INLINE hn::VFromD<Words> differences(hn::VFromD<Words> a, const std::uint8_t* stored) {
  const auto b = hn::BitCast(Words(), hn::LoadU(Bytes(), stored));
  const auto either = hn::Or(a, b);
  const auto is_zero = hn::Eq(hn::Add(either, either), hn::Zero(Words()));
  return hn::IfThenZeroElse(is_zero, hn::Xor(a, b));
}

// Whether the levels times the step, rounded, are the weights.
bool gives(std::span<const std::byte> codes, float step, std::span<const std::byte> weights) {
  const Bytes d;
  if (codes.size() % hn::Lanes(d) != 0) return gives_plainly(codes, step, weights);
  Values values;
  list_values(step, values);
  const auto low = hn::Load(d, values.low.data());
  const auto high = hn::Load(d, values.high.data());
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(codes.data());
  const auto* stored = reinterpret_cast<const std::uint8_t*>(weights.data());
  auto different = hn::Zero(Words());
  const auto compare = [&](hn::VFromD<Bytes> ordered) HWY_ATTR {
    const auto of_low = hn::TableLookupBytes(low, ordered);
    const auto of_high = hn::TableLookupBytes(high, ordered);
    const auto first = hn::BitCast(Words(), hn::InterleaveLower(d, of_low, of_high));
    const auto second = hn::BitCast(Words(), hn::InterleaveUpper(d, of_low, of_high));
    different = hn::Or(different, differences(first, stored));
    different = hn::Or(different, differences(second, stored + 16));
    stored += 32;
  };
  for (std::size_t i = 0; i < codes.size(); i += hn::Lanes(d)) {
    const Nibbles pairs = load_nibbles(bytes + i);
    compare(hn::InterleaveLower(d, pairs.even, pairs.odd));
    compare(hn::InterleaveUpper(d, pairs.even, pairs.odd));
  }
  return hn::AllTrue(Words(), hn::Eq(different, hn::Zero(Words())));
}

#endif

// Whether the first weight of the largest magnitude has a negative level.
bool is_negative_first(std::span<const std::byte> codes, const Levels& levels, int top) {
  const auto has_top = [&](unsigned of) { return std::cmp_equal(std::bit_width(of), top); };
  if (!has_top(levels.positive)) return true;
  if (!has_top(levels.negative)) return false;
  for (std::size_t i = 0;; ++i) {
    const auto pair = std::to_integer<unsigned>(codes[i / 2]);
    const int level = static_cast<int>(pair >> (i % 2 * 4) & 0xfU) + kInt4Lowest;
    if (std::abs(level) == top) return level < 0;
  }
}

// Far enough from where BF16 has fewer bits, or none.
bool is_usual(float scale) {
  const float magnitude = std::fabs(scale);
  return magnitude > 1e-30F && magnitude < 1e29F;
}

std::int8_t top_level(std::span<const std::byte> codes, float scale) {
  const Levels levels = find_levels(codes);
  const unsigned magnitudes = levels.positive | levels.negative;
  if (!kCertainLevels[magnitudes]) return 0;
  const int top = static_cast<int>(std::bit_width(magnitudes));
  const bool is_negative = is_negative_first(codes, levels, top);
  // A grid's step is positive unless there is a level -8.
  const bool turns = scale < 0 && top < -kInt4Lowest;
  return static_cast<std::int8_t>(is_negative != turns ? -top : top);
}

// Whether no level moves by half a step when the scale takes the place of the step.
bool is_near(float step, float scale) {
  return std::fabs(step / scale - 1.0F) < 0.05F;
}

void settle_each(const Int4Rows& build, const SourceRows& source, std::span<const float> steps,
                 std::span<std::int8_t> top_levels) {
  const std::size_t group_bytes = build.group_size / 2;
  std::size_t i = 0;
  for (std::uint64_t row = 0; row < build.rows; ++row) {
    auto codes = build.codes.subspan(row * build.row_bytes);
    for (std::uint64_t g = 0; g < build.groups; ++g, ++i) {
      const float scale = build.scales[i];
      const auto of_group = codes.first(group_bytes);
      codes = codes.subspan(group_bytes);
      top_levels[i] = 0;
      const bool is_symmetric = build.zeros.empty() || build.zeros[i] == 0;
      if (!is_symmetric || !is_usual(scale)) continue;
      const auto weights = source.bytes.subspan(i * build.group_size * 2, build.group_size * 2);
      const bool is_identical = steps[i] == scale;
      if (!is_identical && (!is_near(steps[i], scale) || !gives(of_group, steps[i], weights))) {
        continue;
      }
      top_levels[i] = top_level(of_group, scale);
    }
  }
}

}  // namespace gridscope::quant::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace gridscope::quant {

HWY_EXPORT(settle_each);

void settle_grids(const Int4Rows& build, const SourceRows& source, std::span<const float> steps,
                  std::span<std::int8_t> top_levels) {
  HWY_DYNAMIC_DISPATCH(settle_each)(build, source, steps, top_levels);
}

}  // namespace gridscope::quant

#endif
