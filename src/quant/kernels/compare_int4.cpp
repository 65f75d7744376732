// The fused comparison: rows of parts, whose sums in units (compare_parts-inl.hpp) are those of
// their groups, and other groups in plain arithmetic.

#include "gridscope/quant/error_sums.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/kernels/compare_int4.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "quant/int4_groups.hpp"
#include "quant/kernels/compare_parts-inl.hpp"
#include "quant/kernels/int4_parts-inl.hpp"
#include "quant/kernels/int4_units.hpp"
#include "quant/kernels/kept_levels.hpp"
#include "quant/kernels/part_sums.hpp"
#include "quant/kernels/prefetch.hpp"

HWY_BEFORE_NAMESPACE();
namespace gridscope::quant::HWY_NAMESPACE {

// Of all rows, which the known worst error has been added to.
ErrorSums without_known(ErrorSums sums, double known_worst) {
  if (sums.worst.error <= known_worst) sums.worst = {};
  return sums;
}

ErrorSums compare_plainly(const Int4Rows& build, const SourceRows& source, double known_worst) {
  ErrorSums tile{.worst = {.error = known_worst}};
  for (std::uint64_t row = 0; row < build.rows; ++row) {
    ErrorSums sums{.worst = tile.worst};
    add_int4_groups(build, source, row, {.first = 0, .count = build.groups}, sums);
    tile.add(sums);
  }
  return without_known(tile, known_worst);
}

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

ErrorSums compare_int4(const Int4Rows& build, const SourceRows& source, double known_worst,
                       KeptLevels* /*notes*/) {
  return compare_plainly(build, source, known_worst);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// One row and the memory to work on any.
struct Row {
  const Int4Rows& build;
  const SourceRows& source;
  std::size_t parts_per_group = 1;
  std::size_t parts = 0;  // as far as full vectors go
  Parts about;
  PartSums sums;
  std::vector<BlockCounts> counts;
  std::vector<float> scales;          // of each part, up to a whole vector of them
  std::vector<std::int8_t> zeros;     // likewise
  std::vector<UnitTable> own_tables;  // where kBf16Tables does not serve
  KeptTotals kept;                    // of the vectors that did
  bool may_have_kept = false;
  std::uint64_t pause = 0;        // rows in which kept levels are not looked for
  std::uint8_t* notes = nullptr;  // of each group, as KeptLevels has them; or null
  std::uint64_t number = 0;
};

void make_own_tables(Row& row) {
  row.own_tables.resize(row.build.groups);
  row.about.tables = row.own_tables[0].data();
  for (std::size_t g = 0; g < row.build.groups; ++g) {
    const std::size_t first = g * row.parts_per_group;
    const float unit = row.about.unit[first];
    if (row.about.fits[first] != 0) {
      make_table(row.scales[first], row.zeros[first], unit, row.own_tables[g]);
    }
    for (std::size_t part = first; part < first + row.parts_per_group; ++part) {
      row.about.table[part] = static_cast<std::uint32_t>(g * sizeof(UnitTable));
    }
  }
}

// Each group's number for all of its parts; the first one again where a vector is not full.
template <typename T>
void spread_groups(const std::vector<T>& groups, const Row& row, std::vector<T>& parts) {
  const auto of_this = std::span(groups).subspan(row.number * row.build.groups, row.build.groups);
  auto out = parts.begin();
  if (row.parts_per_group == 1) {
    out = std::ranges::copy(of_this, out).out;
  } else {
    for (const T& value : of_this) out = std::fill_n(out, row.parts_per_group, value);
  }
  std::fill(out, parts.end(), of_this.front());
}

PartTerms terms_of(const Row& row, double worst_error) {
  return {.scales = row.scales, .zeros = row.zeros, .worst_error = static_cast<float>(worst_error)};
}

// What parts need that are not known to have kept their levels.
void prepare_parts(Row& row, const RowTraits& traits, double worst_error) {
  row.sums.make_room();
  describe_parts(terms_of(row, worst_error), row.about);
  row.about.tables = kBf16Tables[0].data();
  if (traits.needs_tables) make_own_tables(row);
}

// The sums of a group: as PartSums has them, of all of its parts.
struct GroupTotals {
  std::array<std::int64_t, 4> products = {};
  std::int64_t build = 0;
};

GroupTotals add_parts(const PartSums& sums, std::size_t first, std::size_t count) {
  GroupTotals total;
  for (std::size_t part = first; part < first + count; ++part) {
    for (std::size_t i = 0; i < total.products.size(); ++i) {
      total.products[i] += sums.products[part][i];
    }
    total.build += sums.squared_build(part);
  }
  return total;
}

void count_zeros(const Row& row, RowRange groups, ErrorSums& sums) {
  for (std::uint64_t g = groups.first; g < groups.end(); ++g) {
    if (row.counts[g * row.parts_per_group / kBlocks].kept) continue;
    const GroupTotals total = add_parts(row.sums, g * row.parts_per_group, row.parts_per_group);
    const bool dead = total.build == 0;
    const bool source_dead = total.products[2] == 0;
    sums.groups_identical += total.products[0] == 0 ? 1 : 0;
    sums.dead_groups += dead ? 1 : 0;
    sums.source_dead_groups += source_dead ? 1 : 0;
    sums.dead_in_both += dead && source_dead ? 1 : 0;
  }
}

// Groups of one part each without a dead one: all that are left to count are the identical ones.
bool count_identical(const Row& row, RowRange groups, ErrorSums& sums) {
  const Ints d;
  const auto kind = hn::And(hn::Iota(d, 0), hn::Set(d, 3));
  std::size_t identical = 0;
  std::size_t dead = 0;
  for (std::uint64_t g = groups.first; g < groups.end(); g += kBlocks) {
    if (row.counts[g / kBlocks].kept) continue;
    const auto is_zero = hn::Eq(hn::LoadU(d, row.sums.products[g].data()), hn::Zero(d));
    identical += hn::CountTrue(d, hn::And(is_zero, hn::Eq(kind, hn::Zero(d))));
    // What is dead on either side has no product with the other.
    dead += hn::CountTrue(d, hn::And(is_zero, hn::Eq(kind, hn::Set(d, 3))));
  }
  if (dead == 0) sums.groups_identical += identical;
  return dead == 0;
}

// Adds groups to the sums of their row as if their lanes had been added up. Each sum waits for what
// was added before, so all five are taken at once. kParts: of a group, when known before; else 0.
template <std::size_t kParts>
void add_group_sums(const Row& row, RowRange groups, ErrorSums& sums) {
  const hn::CappedTag<double, 4> d;
  const hn::Rebind<std::int32_t, decltype(d)> ints;
  constexpr std::size_t kWidth = hn::MaxLanes(decltype(d){});
  const std::size_t parts = kParts != 0 ? kParts : row.parts_per_group;
  HWY_ALIGN std::array<double, 4> four = {sums.abs_error, sums.squared_error, sums.squared_source,
                                          sums.product};
  const auto is_error = hn::FirstN(d, 1);
  auto added = hn::Load(d, four.data());
  auto added_after = hn::Load(d, four.data() + 4 - kWidth);  // where a vector has two lanes
  double squared_build = sums.squared_build;
  for (std::uint64_t g = groups.first; g < groups.end(); ++g) {
    const auto unit = static_cast<double>(row.about.unit[g * parts]);
    const double square = unit * unit;
    auto total = hn::Zero(d);
    auto total_after = hn::Zero(d);
    std::int64_t build = 0;
    for (std::size_t part = g * parts; part < (g + 1) * parts; ++part) {
      const std::int32_t* products = row.sums.products[part].data();
      total = hn::Add(total, hn::PromoteTo(d, hn::LoadU(ints, products)));
      total_after = hn::Add(total_after, hn::PromoteTo(d, hn::LoadU(ints, products + 4 - kWidth)));
      build += row.sums.squared_build(part);
    }
    // Products with powers of two are exact.
    const auto squares = hn::Set(d, square);
    added = hn::MulAdd(total, hn::IfThenElse(is_error, hn::Set(d, unit), squares), added);
    added_after = hn::MulAdd(total_after, squares, added_after);
    squared_build += static_cast<double>(build) * square;
  }
  if constexpr (kWidth < 4) hn::Store(added_after, d, four.data() + 4 - kWidth);
  hn::Store(added, d, four.data());
  sums.abs_error = four[0];
  sums.squared_error = four[1];
  sums.squared_source = four[2];
  sums.product = four[3];
  sums.squared_build = squared_build;
}

// The same for all vectors of a row but for those with kept levels, where no sum on the way has
// more bits than a double: then they may be added up in any order, which need not wait.
void add_exact_sums(const Row& row, ErrorSums& sums) {
  const hn::CappedTag<double, 4> d;
  const hn::Rebind<std::int32_t, decltype(d)> ints;
  const auto is_error = hn::FirstN(d, 1);
  std::array<hn::VFromD<decltype(d)>, kBlocks> added;
  added.fill(hn::Zero(d));
  for (std::size_t part = 0; part < row.parts; part += kBlocks) {
    if (row.counts[part / kBlocks].kept) continue;
    for (std::size_t j = 0; j < kBlocks; ++j) {
      const auto unit = hn::Set(d, static_cast<double>(row.about.unit[part + j]));
      const auto factor = hn::IfThenElse(is_error, unit, hn::Mul(unit, unit));
      const auto products = hn::PromoteTo(d, hn::LoadU(ints, row.sums.products[part + j].data()));
      added[j] = hn::MulAdd(products, factor, added[j]);
    }
  }
  auto all = added[0];
  for (std::size_t j = 1; j < kBlocks; ++j) all = hn::Add(all, added[j]);
  HWY_ALIGN std::array<double, 4> four;
  hn::Store(all, d, four.data());
  sums.abs_error += four[0];
  sums.squared_error += four[1];
  sums.squared_source += four[2];
  sums.squared_build += 2 * four[3] - four[2] + four[1];
  sums.product += four[3];
}

// Looks closer at the groups in which something is worse than what has been worst.
void note_worst(const Row& row, RowRange groups, ErrorSums& sums) {
  ErrorSums again{.worst = sums.worst};
  for (std::uint64_t g = groups.first; g < groups.end(); ++g) {
    const std::size_t first = g * row.parts_per_group;
    const auto unit = static_cast<double>(row.about.unit[first]);
    double most = -1.0;
    for (std::size_t part = first; part < first + row.parts_per_group; ++part) {
      if (row.counts[part / kBlocks].worse) most = std::max(most, row.sums.largest[part] * unit);
    }
    if (most <= again.worst.error) continue;
    add_int4_groups(row.build, row.source, row.number, {.first = g, .count = 1}, again);
  }
  sums.worst = again.worst;
}

// The counts of all vectors together; `fits` only when all do.
BlockCounts sum_counts(std::span<const BlockCounts> blocks) {
  BlockCounts sum{.fits = true};
  for (const BlockCounts& block : blocks) {
    sum.identical += block.identical;
    sum.moved += block.moved;
    sum.low += block.low;
    sum.high += block.high;
    sum.fits = sum.fits && block.fits;
    sum.worse = sum.worse || block.worse;
  }
  return sum;
}

// Of the vectors with kept levels, in any order too.
void add_kept(const KeptTotals& kept, ErrorSums& sums) {
  sums.values_identical += kept.identical;
  sums.saturated_low += kept.low;
  sums.saturated_high += kept.high;
  sums.groups_identical += kept.groups_identical;
  sums.dead_groups += kept.dead_groups;
  sums.source_dead_groups += kept.dead_groups;
  sums.dead_in_both += kept.dead_groups;
  sums.abs_error += kept.abs_error;
  sums.squared_error += kept.squared_error;
  sums.squared_source += kept.squared_source;
  sums.squared_build += 2 * kept.product - kept.squared_source + kept.squared_error;
  sums.product += kept.product;
}

// Groups that are whole vectors together, from the sums of their parts. False, and nothing is
// added, when one of them does not fit. `is_exact`: they are all of the row's, and as
// add_exact_sums() demands; else none has kept levels.
bool add_whole_vectors(const Row& row, RowRange groups, bool is_exact, ErrorSums& sums) {
  const std::size_t first = groups.first * row.parts_per_group;
  const std::size_t count = groups.count * row.parts_per_group;
  const BlockCounts counts =
      sum_counts(std::span(row.counts).subspan(first / kBlocks, count / kBlocks));
  if (!counts.fits) return false;
  if (is_exact) {
    add_kept(row.kept, sums);
    add_exact_sums(row, sums);
  } else if (row.parts_per_group == 1) {
    add_group_sums<1>(row, groups, sums);
  } else {
    add_group_sums<0>(row, groups, sums);
  }
  const bool is_counted = row.parts_per_group == 1 && count_identical(row, groups, sums);
  if (!is_counted) count_zeros(row, groups, sums);
  sums.weights += groups.count * row.build.group_size;
  sums.groups += groups.count;
  sums.values_identical += counts.identical;
  sums.moved += counts.moved;
  sums.saturated_low += counts.low;
  sums.saturated_high += counts.high;
  if (!row.build.zeros.empty()) {
    for (std::size_t part = first; part < first + count; part += row.parts_per_group) {
      sums.zero_points_used += row.zeros[part] != 0 ? 1 : 0;
    }
  }
  if (counts.worse) note_worst(row, groups, sums);
  return true;
}

bool all_fit(const Row& row, std::size_t part) {
  return std::ranges::all_of(std::span(row.about.fits).subspan(part, kBlocks),
                             [](std::uint32_t fits) { return fits != 0; });
}

// Rows after one in which many groups did not keep their levels are spared the try.
constexpr std::uint64_t kPause = 7;
constexpr std::size_t kMostOthers = 4;  // one in

// A row's bytes.
struct RowBytes {
  const std::uint8_t* codes;
  const std::uint8_t* source;
};

// Looks for vectors with kept levels where sums may be added up in any order. Returns how many have
// not been found to be such.
std::size_t find_kept(Row& row, const RowTraits& traits, const RowBytes& bytes,
                      double worst_error) {
  const std::size_t vectors = row.counts.size();
  std::ranges::fill(row.counts, BlockCounts{});
  row.kept = {};
  if (!row.may_have_kept || !traits.sums_are_exact) return vectors;
  if (row.pause > 0) {
    --row.pause;
    return vectors;
  }
  const std::size_t others = look_for_kept(
      {.codes = bytes.codes,
       .source = bytes.source,
       .scales = row.scales.data(),
       .parts_per_group = row.parts_per_group,
       .least_field = traits.least_unit + kUnitBits,
       .powers = traits.powers,
       .worst_error = worst_error},
      {.counts = row.counts, .totals = row.kept, .largest = row.sums.largest, .notes = row.notes});
  if (others * kMostOthers > vectors) row.pause = kPause;
  return others;
}

// The vectors that have not kept their levels. Returns whether all of them fit.
bool add_others(Row& row, const RowTraits& traits, const RowBytes& bytes) {
  bool fit = true;
  for (std::size_t part = 0; part < row.parts; part += kBlocks) {
    BlockCounts& counts = row.counts[part / kBlocks];
    if (counts.kept) continue;
    prefetch_parts(bytes.codes + part * kPartCodeBytes, bytes.source + part * kPartSourceBytes,
                   kBlocks);
    counts = add_blocks(row.about, part, bytes.codes, bytes.source, row.sums);
    counts.fits = counts.fits && (traits.all_fit || all_fit(row, part));
    fit = fit && counts.fits;
  }
  return fit;
}

// A row of vectors that all have.
void add_kept_row(const Row& row, ErrorSums& sums) {
  add_kept(row.kept, sums);
  sums.weights += row.build.groups * row.build.group_size;
  sums.groups += row.build.groups;
  if (row.kept.is_worse) note_worst(row, {.first = 0, .count = row.build.groups}, sums);
}

// Sums of a row of which not all fits are added in order, which those of kept levels cannot be.
void forget_kept(Row& row) {
  row.kept = {};
  for (BlockCounts& counts : row.counts) counts.kept = false;
}

void add_row(Row& row, ErrorSums& sums) {
  spread_groups(row.build.scales, row, row.scales);
  if (!row.build.zeros.empty()) spread_groups(row.build.zeros, row, row.zeros);
  const RowTraits traits = describe_units(terms_of(row, sums.worst.error), row.about);
  const RowBytes bytes = {.codes = reinterpret_cast<const std::uint8_t*>(row.build.codes.data()) +
                                   row.number * row.build.row_bytes,
                          .source = reinterpret_cast<const std::uint8_t*>(row.source.bytes.data()) +
                                    row.number * row.build.groups * row.build.group_size * 2};
  const std::size_t others = find_kept(row, traits, bytes, sums.worst.error);
  if (others == 0 && row.parts == row.parts_per_group * row.build.groups) {
    add_kept_row(row, sums);
    return;
  }
  if (others > 0) {
    prepare_parts(row, traits, sums.worst.error);
    if (!add_others(row, traits, bytes) && others < row.counts.size()) {
      forget_kept(row);
      add_others(row, traits, bytes);
    }
  }
  const std::uint64_t step = std::max<std::uint64_t>(1, kBlocks / row.parts_per_group);
  const std::uint64_t whole = row.parts / (step * row.parts_per_group) * step;
  const bool is_exact = traits.sums_are_exact && kBlocks > 1;
  if (!add_whole_vectors(row, {.first = 0, .count = whole}, is_exact, sums)) {
    for (std::uint64_t g = 0; g < whole; g += step) {
      const RowRange groups{.first = g, .count = step};
      if (add_whole_vectors(row, groups, false, sums)) continue;
      add_int4_groups(row.build, row.source, row.number, groups, sums);
    }
  }
  add_int4_groups(row.build, row.source, row.number,
                  {.first = whole, .count = row.build.groups - whole}, sums);
}

// Whether groups are cut at vectors, or vectors at groups.
bool is_whole_vectors(std::uint64_t group_size) {
  if (group_size % kPartWeights != 0) return false;
  const std::size_t parts = group_size / kPartWeights;
  return parts % kBlocks == 0 || kBlocks % parts == 0;
}

// Whether kept levels can be looked for: in vectors of as many parts and of whole groups, of
// symmetric levels.
bool may_have_kept(const Int4Rows& build) {
  return kBlocks == kKeptParts && build.group_size <= kBlocks * kPartWeights &&
         build.zeros.empty() && can_look_for_kept();
}

ErrorSums compare_int4(const Int4Rows& build, const SourceRows& source, double known_worst,
                       KeptLevels* notes) {
  if (!is_whole_vectors(build.group_size)) return compare_plainly(build, source, known_worst);
  const std::size_t parts = build.groups * build.group_size / kPartWeights;
  const std::size_t room = hwy::RoundUpTo(parts, hn::Lanes(Floats()));
  Row row{.build = build,
          .source = source,
          .parts_per_group = build.group_size / kPartWeights,
          .parts = parts / kBlocks * kBlocks,
          .about = Parts(room + kSpread),
          .sums = PartSums(parts),
          .counts = std::vector<BlockCounts>(parts / kBlocks),
          .scales = std::vector<float>(room),
          .zeros = std::vector<std::int8_t>(room),
          .own_tables = {},
          .kept = {},
          .may_have_kept = may_have_kept(build)};
  if (notes != nullptr && row.may_have_kept && row.parts_per_group == 1) {
    notes->groups.assign(build.rows * build.groups, KeptLevels::kUnknown);
    row.notes = notes->groups.data();
  }
  ErrorSums tile{.worst = {.error = known_worst}};
  for (; row.number < build.rows; ++row.number) {
    ErrorSums sums{.worst = tile.worst};
    add_row(row, sums);
    tile.add(sums);
    if (row.notes != nullptr) row.notes += build.groups;
  }
  return without_known(tile, known_worst);
}

#endif

}  // namespace gridscope::quant::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace gridscope::quant {

HWY_EXPORT(compare_int4);

ErrorSums compare_int4_bf16(const Int4Rows& build, const SourceRows& source, double known_worst,
                            KeptLevels& kept) {
  kept.groups.clear();
  return HWY_DYNAMIC_DISPATCH(compare_int4)(build, source, known_worst, &kept);
}

ErrorSums compare_int4_bf16(const Int4Rows& build, const SourceRows& source) {
  return HWY_DYNAMIC_DISPATCH(compare_int4)(build, source, WorstError().error, nullptr);
}

}  // namespace gridscope::quant

#endif
