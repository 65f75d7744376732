// Of a group of 4-bit codes all values are one of 16, so their nearest levels on the source's
// lattice are a table of 16 bytes, found in float unless a value is too near to halfway; the levels
// of the source are its weights over the step, rounded, which the step of a grid makes unambiguous
// in float. Nearly all moves are by one level at the most: those are counted a vector at a time.

#include "gridscope/quant/level_moves.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/kernels/level_moves_int4.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "gridscope/core/endian.hpp"
#include "gridscope/quant/codec.hpp"
#include "quant/int4_groups.hpp"
#include "quant/kernels/rounding-inl.hpp"
#include "quant/nearest_level.hpp"

HWY_BEFORE_NAMESPACE();
namespace gridscope::quant::HWY_NAMESPACE {

// Neighbouring weights that share a group of the build and one of the source.
struct Segment {
  std::span<const std::byte> codes;
  std::span<const std::byte> weights;
  float scale = 0.0F;  // of the build
  int zero = 0;
  double step = 0.0;  // of the source

  [[nodiscard]] std::size_t size() const { return weights.size() / 2; }
};

// By code.
std::array<NearestLevel, 16> nearest_levels(const Segment& segment) {
  std::array<NearestLevel, 16> levels = {};
  for (int code = 0; code < 16; ++code) {
    const double value = (code + kInt4Lowest - segment.zero) * static_cast<double>(segment.scale);
    levels[static_cast<std::size_t>(code)] = nearest_level(value / segment.step);
  }
  return levels;
}

void count_plainly(const Segment& segment, LevelMoves& moves) {
  const auto levels = nearest_levels(segment);
  for (std::size_t i = 0; i < segment.size(); ++i) {
    const auto pair = std::to_integer<unsigned>(segment.codes[i / 2]);
    const double weight = bf16_value(load_le<std::uint16_t>(segment.weights.subspan(2 * i)));
    const int level = static_cast<int>(std::lround(weight / segment.step));
    count_move(level, levels[pair >> (i % 2 * 4) & 0xfU], moves);
  }
}

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

void count_segment(const Segment& segment, LevelMoves& moves) {
  count_plainly(segment, moves);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::Full128<std::uint8_t>;
using Floats = hn::CappedTag<float, 16>;
using Ints = hn::RebindToSigned<Floats>;
using FloatBits = hn::RebindToUnsigned<Floats>;

constexpr std::size_t kTogether = 2 * hn::MaxLanes(Bytes{});

using Table = std::array<std::int8_t, 16>;

// The nearest levels by code. False where float cannot tell: near to halfway, or far away.
HWY_INLINE bool find_levels(const Segment& segment, float per_step, Table& table) {
  // Steps so alike that at level 8 they are less than half a step apart.
  if (segment.zero == 0 && std::fabs(segment.scale * per_step - 1.0F) < 0.0624F) {
    table = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
    return true;
  }
  const Floats d;
  const hn::Rebind<std::int8_t, Floats> bytes;
  // Three roundings to float are off by less than 2^-22 of at most 99.
  const auto clear = hn::Set(d, 0.4999F);
  const auto ratio = hn::Set(d, segment.scale * per_step);
  auto is_clear = hn::Eq(clear, clear);
  for (std::size_t code = 0; code < table.size(); code += hn::Lanes(d)) {
    const int first = static_cast<int>(code) + kInt4Lowest - segment.zero;
    const auto position = hn::Mul(hn::Iota(d, static_cast<float>(first)), ratio);
    const auto rest = hn::Abs(hn::Sub(position, hn::Round(position)));
    const auto is_near = hn::Lt(hn::Abs(position), hn::Set(d, NearestLevel::kFar - 1.0F));
    is_clear = hn::And(is_clear, hn::And(is_near, hn::Lt(rest, clear)));
    hn::StoreU(hn::DemoteTo(bytes, nearest_small(d, position, hn::Set(d, 1.0F))), bytes,
               table.data() + code);
  }
  return hn::AllTrue(d, is_clear);
}

// The nearest levels of kTogether codes in the order of their columns.
HWY_INLINE void look_up(const std::uint8_t* codes, const std::int8_t* table, std::int8_t* levels) {
  const Bytes d;
  const hn::Repartition<std::uint16_t, Bytes> words;
  const auto bytes_of_table = hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(table));
  const auto pairs = hn::LoadU(d, codes);
  const auto low = hn::And(pairs, hn::Set(d, 0xf));
  const auto high =
      hn::BitCast(d, hn::And(hn::ShiftRight<4>(hn::BitCast(words, pairs)), hn::Set(words, 0x0f0f)));
  const auto even = hn::TableLookupBytes(bytes_of_table, low);
  const auto odd = hn::TableLookupBytes(bytes_of_table, high);
  auto* out = reinterpret_cast<std::uint8_t*>(levels);
  hn::StoreU(hn::InterleaveLower(d, even, odd), d, out);
  hn::StoreU(hn::InterleaveUpper(d, even, odd), d, out + 16);
}

// How far the weights have moved.
HWY_INLINE hn::VFromD<Ints> find_moves(const std::uint8_t* weights, const std::int8_t* levels,
                                       float per_step) {
  const FloatBits bits;
  const hn::Rebind<std::uint16_t, Floats> words;
  const hn::Rebind<std::int8_t, Floats> shorts;
  const hn::Repartition<std::uint8_t, decltype(words)> bytes;
  const auto stored = hn::BitCast(words, hn::LoadU(bytes, weights));
  const auto value = hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(bits, stored)));
  const auto from = nearest_small(Floats(), value, hn::Set(Floats(), per_step));
  return hn::Sub(hn::PromoteTo(Ints(), hn::LoadU(shorts, levels)), from);
}

HWY_INLINE void count_vector(hn::VFromD<Ints> difference, LevelMoves& moves) {
  const Ints d;
  const std::size_t none = hn::CountTrue(d, hn::Eq(difference, hn::Zero(d)));
  const std::size_t up = hn::CountTrue(d, hn::Eq(difference, hn::Set(d, 1)));
  const std::size_t down = hn::CountTrue(d, hn::Eq(difference, hn::Set(d, -1)));
  if (none + up + down == hn::Lanes(d)) {
    moves.counts[LevelMoves::kFarthest] += none;
    moves.counts[LevelMoves::kFarthest + 1] += up;
    moves.counts[LevelMoves::kFarthest - 1] += down;
    return;
  }
  std::array<std::int32_t, hn::MaxLanes(Ints{})> differences = {};
  hn::StoreU(difference, d, differences.data());
  for (const std::int32_t move : differences) count_move(0, {.level = move}, moves);
}

// kTogether weights.
HWY_INLINE void count_together(const std::uint8_t* weights, const std::int8_t* levels,
                               float per_step, LevelMoves& moves) {
  const Ints d;
  std::array<hn::VFromD<Ints>, kTogether / hn::MaxLanes(Ints{})> differences;
  auto any = hn::Zero(d);
  for (std::size_t i = 0; i < differences.size(); ++i) {
    const std::size_t first = i * hn::MaxLanes(d);
    differences[i] = find_moves(weights + 2 * first, levels + first, per_step);
    any = hn::Or(any, differences[i]);
  }
  if (hn::AllTrue(d, hn::Eq(any, hn::Zero(d)))) {
    moves.counts[LevelMoves::kFarthest] += kTogether;
    return;
  }
  for (const auto& difference : differences) count_vector(difference, moves);
}

void count_segment(const Segment& segment, LevelMoves& moves) {
  constexpr double kMostExtreme = 1e30;  // of steps that have an inverse in float
  const double size = std::fabs(segment.step);
  const bool is_usual = size < kMostExtreme && size * kMostExtreme > 1.0;
  const auto per_step = static_cast<float>(1.0 / segment.step);
  Table table;
  if (!is_usual || segment.size() % kTogether != 0 || !find_levels(segment, per_step, table)) {
    count_plainly(segment, moves);
    return;
  }
  const auto* codes = reinterpret_cast<const std::uint8_t*>(segment.codes.data());
  const auto* weights = reinterpret_cast<const std::uint8_t*>(segment.weights.data());
  std::array<std::int8_t, kTogether> levels;
  for (std::size_t first = 0; first < segment.size(); first += kTogether) {
    look_up(codes + first / 2, table.data(), levels.data());
    count_together(weights + 2 * first, levels.data(), per_step, moves);
  }
}

#endif

void count_row(const Int4Rows& build, const SourceRows& source, const SourceGrid& grid,
               std::uint64_t row, LevelMoves& moves) {
  const std::uint64_t columns = build.groups * build.group_size;
  const auto codes = build.codes.subspan(row * build.row_bytes);
  const auto weights = source.bytes.subspan(row * columns * 2);
  const auto fits = grid.fits.subspan(row * (columns / grid.group_size));
  std::uint64_t group = 0;
  std::uint64_t source_group = 0;
  for (std::uint64_t first = 0; first < columns;) {
    const std::uint64_t group_end = (group + 1) * build.group_size;
    const std::uint64_t source_end = (source_group + 1) * grid.group_size;
    const std::uint64_t end = std::min(group_end, source_end);
    const GridFit& fit = fits[source_group];
    if (fit.verdict == GridClass::kOnGrid) {
      const std::uint64_t index = row * build.groups + group;
      const int zero = build.zeros.empty() ? 0 : build.zeros[index];
      count_segment({.codes = codes.subspan(first / 2, (end - first) / 2),
                     .weights = weights.subspan(2 * first, 2 * (end - first)),
                     .scale = build.scales[index],
                     .zero = zero,
                     .step = fit.step},
                    moves);
    }
    first = end;
    if (end == group_end) ++group;
    if (end == source_end) ++source_group;
  }
}

void count_rows(const Int4Rows& build, const SourceRows& source, const SourceGrid& grid,
                LevelMoves& moves) {
  for (std::uint64_t row = 0; row < build.rows; ++row) count_row(build, source, grid, row, moves);
}

void count_groups(const Int4Rows& build, const SourceRows& source, const SourceGrid& grid,
                  std::span<const std::uint32_t> groups, LevelMoves& moves) {
  const std::size_t size = build.group_size;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (grid.fits[i].verdict != GridClass::kOnGrid) continue;
    const std::size_t group = groups[i];
    const std::size_t first_code =
        group / build.groups * build.row_bytes + group % build.groups * size / 2;
    count_segment({.codes = build.codes.subspan(first_code, size / 2),
                   .weights = source.bytes.subspan(2 * group * size, 2 * size),
                   .scale = build.scales[group],
                   .zero = build.zeros.empty() ? 0 : build.zeros[group],
                   .step = grid.fits[i].step},
                  moves);
  }
}

}  // namespace gridscope::quant::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace gridscope::quant {

HWY_EXPORT(count_rows);
HWY_EXPORT(count_groups);

LevelMoves count_level_moves(const Int4Rows& build, const SourceRows& source,
                             const SourceGrid& grid) {
  LevelMoves moves;
  HWY_DYNAMIC_DISPATCH(count_rows)(build, source, grid, moves);
  return moves;
}

LevelMoves count_level_moves(const Int4Rows& build, const SourceRows& source,
                             const SourceGrid& grid, std::span<const std::uint32_t> groups) {
  LevelMoves moves;
  HWY_DYNAMIC_DISPATCH(count_groups)(build, source, grid, groups, moves);
  return moves;
}

}  // namespace gridscope::quant

#endif
