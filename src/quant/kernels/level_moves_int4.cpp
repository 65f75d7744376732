// Of a group of 4-bit codes all values are one of 16, so their nearest levels on the source's
// lattice are a table of 16 bytes; the levels of the source are its weights over the step, rounded,
// which the step of a grid makes unambiguous in float. Where all weights of a vector agree, as they
// mostly do, counting is one addition.

#include "gridscope/quant/level_moves.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/kernels/level_moves_int4.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>

#include "gridscope/core/endian.hpp"
#include "gridscope/quant/codec.hpp"
#include "quant/int4_groups.hpp"
#include "quant/nearest_level.hpp"

HWY_BEFORE_NAMESPACE();
namespace gridscope::quant::HWY_NAMESPACE {

// Neighbouring weights that share a group of the build and one of the source.
struct Segment {
  std::span<const std::byte> codes;
  std::span<const std::byte> weights;
  double step = 0.0;
  std::array<NearestLevel, 16> levels = {};  // by code

  [[nodiscard]] std::size_t size() const { return weights.size() / 2; }
};

void count_plainly(const Segment& segment, LevelMoves& moves) {
  for (std::size_t i = 0; i < segment.size(); ++i) {
    const auto pair = std::to_integer<unsigned>(segment.codes[i / 2]);
    const double weight = bf16_value(load_le<std::uint16_t>(segment.weights.subspan(2 * i)));
    const int level = static_cast<int>(std::lround(weight / segment.step));
    count_move(level, segment.levels[pair >> (i % 2 * 4) & 0xfU], moves);
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

void count_each(const std::int32_t* differences, std::size_t count, LevelMoves& moves) {
  for (std::size_t i = 0; i < count; ++i) {
    count_move(0, {.level = differences[i]}, moves);
  }
}

HWY_INLINE void count_vector(const std::uint8_t* weights, const std::int8_t* levels, float per_step,
                             LevelMoves& moves) {
  const Floats d;
  const Ints ints;
  const FloatBits bits;
  const hn::Rebind<std::uint16_t, Floats> words;
  const hn::Rebind<std::int8_t, Floats> shorts;
  const hn::Repartition<std::uint8_t, decltype(words)> bytes;
  const auto stored = hn::BitCast(words, hn::LoadU(bytes, weights));
  const auto value = hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits, stored)));
  const auto from = hn::NearestInt(hn::Mul(value, hn::Set(d, per_step)));
  const auto to = hn::PromoteTo(ints, hn::LoadU(shorts, levels));
  const auto difference = hn::Sub(to, from);
  if (hn::AllTrue(ints, hn::Eq(difference, hn::Zero(ints)))) {
    moves.counts[LevelMoves::kFarthest] += hn::Lanes(d);
    return;
  }
  HWY_ALIGN std::int32_t differences[hn::MaxLanes(Ints{})];
  hn::Store(difference, ints, differences);
  count_each(differences, hn::Lanes(d), moves);
}

void count_segment(const Segment& segment, LevelMoves& moves) {
  const bool has_ties =
      std::ranges::any_of(segment.levels, [](const NearestLevel& level) { return level.is_tie; });
  if (has_ties || segment.size() % kTogether != 0) {
    count_plainly(segment, moves);
    return;
  }
  std::array<std::int8_t, 16> table = {};
  std::ranges::transform(segment.levels, table.begin(), [](const NearestLevel& level) {
    return static_cast<std::int8_t>(level.level);
  });
  const auto per_step = static_cast<float>(1.0 / segment.step);
  const auto* codes = reinterpret_cast<const std::uint8_t*>(segment.codes.data());
  const auto* weights = reinterpret_cast<const std::uint8_t*>(segment.weights.data());
  std::array<std::int8_t, kTogether> levels = {};
  for (std::size_t first = 0; first < segment.size(); first += kTogether) {
    look_up(codes + first / 2, table.data(), levels.data());
    for (std::size_t i = 0; i < kTogether; i += hn::Lanes(Floats())) {
      count_vector(weights + 2 * (first + i), levels.data() + i, per_step, moves);
    }
  }
}

#endif

std::array<NearestLevel, 16> nearest_levels(float scale, int zero, double step) {
  std::array<NearestLevel, 16> levels = {};
  for (int code = 0; code < 16; ++code) {
    const double value = (code + kInt4Lowest - zero) * static_cast<double>(scale);
    levels[static_cast<std::size_t>(code)] = nearest_level(value / step);
  }
  return levels;
}

void count_row(const Int4Rows& build, const SourceRows& source, const SourceGrid& grid,
               std::uint64_t row, LevelMoves& moves) {
  const std::uint64_t columns = build.groups * build.group_size;
  const auto codes = build.codes.subspan(row * build.row_bytes);
  const auto weights = source.bytes.subspan(row * columns * 2);
  const auto fits = grid.fits.subspan(row * (columns / grid.group_size));
  for (std::uint64_t first = 0; first < columns;) {
    const std::uint64_t group = first / build.group_size;
    const std::uint64_t source_group = first / grid.group_size;
    const std::uint64_t end =
        std::min((group + 1) * build.group_size, (source_group + 1) * grid.group_size);
    const GridFit& fit = fits[source_group];
    if (fit.verdict == GridClass::kOnGrid) {
      const std::uint64_t index = row * build.groups + group;
      const int zero = build.zeros.empty() ? 0 : build.zeros[index];
      count_segment({.codes = codes.subspan(first / 2, (end - first) / 2),
                     .weights = weights.subspan(2 * first, 2 * (end - first)),
                     .step = fit.step,
                     .levels = nearest_levels(build.scales[index], zero, fit.step)},
                    moves);
    }
    first = end;
  }
}

void count_rows(const Int4Rows& build, const SourceRows& source, const SourceGrid& grid,
                LevelMoves& moves) {
  for (std::uint64_t row = 0; row < build.rows; ++row) count_row(build, source, grid, row, moves);
}

}  // namespace gridscope::quant::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace gridscope::quant {

HWY_EXPORT(count_rows);

LevelMoves count_level_moves(const Int4Rows& build, const SourceRows& source,
                             const SourceGrid& grid) {
  LevelMoves moves;
  HWY_DYNAMIC_DISPATCH(count_rows)(build, source, grid, moves);
  return moves;
}

}  // namespace gridscope::quant

#endif
