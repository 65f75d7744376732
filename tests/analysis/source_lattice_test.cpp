#include "gridscope/analysis/source_lattice.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

#include "analysis/small_models.hpp"

namespace gridscope::analysis {
namespace {

using test::on_grid;
using test::products_of;

using ::testing::ElementsAre;

using ::testing::IsEmpty;
using ::testing::Pair;

// Numbers as a source stores them.
struct Stored {
  std::vector<std::byte> bytes;
  Dtype dtype = Dtype::kBF16;

  explicit Stored(const std::vector<double>& values, Dtype type = Dtype::kBF16)
      : bytes(values.size() * dtype_info(type).block_bits / 8), dtype(type) {
    quant::store_numbers(type, values, bytes);
  }
  [[nodiscard]] quant::SourceRows rows() const { return {.dtype = dtype, .bytes = bytes}; }
};

Stored stored(const quant::LeveledWeight& weight, Dtype dtype = Dtype::kBF16) {
  return Stored(products_of(weight), dtype);
}

std::vector<double> noise(std::size_t size) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal(0.0, 0.02);
  std::vector<double> values(size);
  for (double& value : values) value = normal(random);
  return values;
}

// A build's rows in regular groups.
quant::RowBlock block_of(const quant::LeveledWeight& weight) {
  const std::uint64_t groups = weight.columns / weight.group_size;
  return {.rows = weight.rows,
          .columns = weight.columns,
          .values = products_of(weight),
          .levels = weight.levels,
          .stride = groups,
          .scales = weight.scales};
}

std::uint64_t find_group_size(const quant::SourceRows& rows, std::uint64_t columns) {
  GroupSizeVote vote(columns);
  vote.add(rows);
  return vote.winner();
}

TEST(FindGroupSize, FindsTheSizeOfTheGrid) {
  for (const std::uint64_t size : {16U, 32U, 64U, 128U, 256U}) {
    EXPECT_EQ(find_group_size(stored(on_grid(8, 256, size)).rows(), 256), size);
  }
  EXPECT_EQ(find_group_size(stored(on_grid(8, 96, 96)).rows(), 96), 96U) << "the whole row";
}

TEST(FindGroupSize, FindsItInEveryFloatType) {
  for (const Dtype dtype : {Dtype::kBF16, Dtype::kF16, Dtype::kF32, Dtype::kF64}) {
    EXPECT_EQ(find_group_size(stored(on_grid(8, 128, 32), dtype).rows(), 128), 32U)
        << dtype_name(dtype);
  }
}

TEST(FindGroupSize, FindsNoneInWeightsThatWereNeverQuantized) {
  EXPECT_EQ(find_group_size(Stored(noise(2048)).rows(), 256), 0U);
  EXPECT_EQ(find_group_size(Stored(std::vector<double>(256)).rows(), 64), 0U) << "all dead";
}

TEST(FindGroupSize, LetsSamplesVote) {
  const Stored usual = stored(on_grid(8, 256, 32));
  const Stored wide = stored(on_grid(8, 256, 256));
  const Stored dead(std::vector<double>(8 * 256));
  const Stored ragged(noise(8 * 256));
  GroupSizeVote vote(256);
  EXPECT_EQ(vote.winner(), 0U);
  for (const Stored* sample : {&wide, &dead, &usual, &usual}) vote.add(sample->rows());
  EXPECT_EQ(vote.winner(), 32U) << "rows with one step each are on a grid of 32 as well";
  for (const Stored* sample : {&ragged, &ragged}) vote.add(sample->rows());
  EXPECT_EQ(vote.winner(), 32U);
  vote.add(ragged.rows());
  EXPECT_EQ(vote.winner(), 0U) << "half of the samples is not most of them";
}

TEST(FindGroupSize, ForgivesAFewGroupsAndNotMany) {
  const auto with_damage = [](std::size_t groups) {
    std::vector<double> values = products_of(on_grid(50, 64, 32));
    for (std::size_t g = 0; g < groups; ++g) values[g * 32 + 5] = 1e-5;
    return find_group_size(Stored(values).rows(), 64);
  };
  EXPECT_EQ(with_damage(5), 32U);
  EXPECT_NE(with_damage(6), 32U);
}

TEST(CountClasses, CountsEveryGroupOnce) {
  std::vector<double> values = products_of(on_grid(1, 160, 32));
  const auto group = [&](std::size_t g) { return std::span(values).subspan(g * 32, 32); };
  std::ranges::fill(group(1), 0.0);
  group(2)[7] = std::numeric_limits<double>::quiet_NaN();
  std::ranges::fill(group(3), 0.0);
  group(3)[0] = 0.5;  // one magnitude tells nothing of the step
  std::ranges::copy(noise(32), group(4).begin());
  SourceGrid grid;
  const Stored source(values);
  count_classes(fit_lattice(source.rows(), 160, 32), GroupSizeFrom::kSource, grid);
  EXPECT_EQ(grid.groups, 5U);
  EXPECT_EQ(grid.on_grid, 1U);
  EXPECT_EQ(grid.dead, 1U);
  EXPECT_EQ(grid.non_finite, 1U);
  EXPECT_EQ(grid.ambiguous, 1U);
  EXPECT_EQ(grid.off_grid, 1U);
  EXPECT_THAT(grid.top_levels, ElementsAre(Pair(8, 1)));
  EXPECT_THAT(grid.group_sizes, ElementsAre(Pair(32, 160)));
}

TEST(CountClasses, CallsNoSizeFoundThatTheBuildGave) {
  SourceGrid grid;
  const Stored source(noise(64));
  count_classes(fit_lattice(source.rows(), 64, 32), GroupSizeFrom::kBuild, grid);
  EXPECT_EQ(grid.groups, 2U);
  EXPECT_THAT(grid.group_sizes, IsEmpty());
}

TEST(FitLattice, GivesTheSameFitsForEveryType) {
  const quant::LeveledWeight weight = on_grid(4, 64, 32);
  const SourceLattice lattice = fit_lattice(stored(weight, Dtype::kF32).rows(), 64, 32);
  ASSERT_EQ(lattice.fits.size(), 8U);
  EXPECT_EQ(lattice.groups_per_row(), 2U);
  for (std::size_t g = 0; g < lattice.fits.size(); ++g) {
    EXPECT_EQ(lattice.fits[g].verdict, quant::GridClass::kOnGrid);
    EXPECT_NEAR(lattice.fits[g].step, weight.scales[g], 1e-6 * weight.scales[g]);
  }
  EXPECT_EQ(&lattice.at(3, 63), &lattice.fits[7]);
  EXPECT_EQ(&lattice.at(2, 0), &lattice.fits[4]);
}

// The published rule judges by an error of 1/128 of the largest weight, the exact recovery by
// rounding: each finds grids that the other does not.
TEST(CountRule, DiffersFromTheExactRecoveryBothWays) {
  std::vector<double> values = products_of(on_grid(2, 64, 32));
  std::ranges::fill(std::span(values).subspan(0, 32), 0.0);
  values[0] = -8 * 0.0078125;
  for (std::size_t i = 1; i < 32; ++i) values[i] = 0.0078125 * (static_cast<int>(i % 7) + 0.03);
  const Stored source(values);
  SourceGrid grid;
  count_rule(fit_lattice(source.rows(), 64, 32), source.rows(), grid);
  EXPECT_EQ(grid.rule_groups, 2U) << "of the first row alone";
  EXPECT_EQ(grid.rule_accepts, 2U);
  EXPECT_EQ(grid.rule_accepts_alone, 1U);
  EXPECT_EQ(grid.rule_misses, 0U);
  // A negative step: +8 is no level of the rule.
  std::vector<double> mirrored = products_of(on_grid(1, 32, 32));
  for (double& value : mirrored) value = -value;
  SourceGrid negative;
  const Stored turned(mirrored);
  count_rule(fit_lattice(turned.rows(), 32, 32), turned.rows(), negative);
  EXPECT_EQ(negative.rule_misses, 1U);
  EXPECT_EQ(negative.rule_accepts, 0U);
}

// ---- moves --------------------------------------------------------------------------------------

class CountMoves : public ::testing::Test {
 protected:
  // Of a build's weights, by regular groups, against the lattice of `source`.
  GridTotals moves(const quant::RowBlock& build, std::uint64_t build_group = 32) {
    const Stored bytes = stored(source);
    const SourceLattice lattice = fit_lattice(bytes.rows(), source.columns, source.group_size);
    GridTotals totals;
    count_moves(lattice, bytes.rows(), quant::GroupLayout::regular(source.columns, build_group),
                build, totals);
    return totals;
  }

  quant::LeveledWeight source = on_grid(2, 64, 32);
};

TEST_F(CountMoves, FindsNoneInARepack) {
  const GridTotals totals = moves(block_of(source));
  EXPECT_THAT(totals.level_moves, IsEmpty());
  EXPECT_EQ(totals.level_ties, 0U);
  EXPECT_EQ(totals.level_moves_beyond, 0U);
  EXPECT_EQ(totals.lattice_weights, 128U);
  EXPECT_THAT(totals.scale_ratio.named(), ElementsAre(Pair("1", 4)));
}

TEST_F(CountMoves, CountsEachMoveByItsDistance) {
  quant::RowBlock build = block_of(source);
  build.values[0] += source.scales[0];
  build.values[1] -= 2 * source.scales[0];
  build.values[40] -= 2 * source.scales[1];
  build.values[41] += 0.4 * source.scales[1];
  build.values[42] += 17 * source.scales[1];
  const GridTotals totals = moves(build);
  EXPECT_THAT(totals.level_moves, ElementsAre(Pair(-2, 2), Pair(1, 1)));
  EXPECT_EQ(totals.level_moves_beyond, 1U);
}

TEST_F(CountMoves, CountsHalfwayForTheSmallerMove) {
  // The largest weight alone decides the step here, so that halfway is exact.
  source = on_grid(1, 32, 32);
  const Stored bytes = stored(source);
  SourceLattice lattice = fit_lattice(bytes.rows(), 32, 32);
  lattice.fits[0].step = source.scales[0];
  quant::RowBlock build = block_of(source);
  build.values[1] -= 0.5 * source.scales[0];
  build.values[2] += 1.5 * source.scales[0];
  GridTotals totals;
  count_moves(lattice, bytes.rows(), quant::GroupLayout::regular(32, 32), build, totals);
  EXPECT_EQ(totals.level_ties, 2U);
  EXPECT_THAT(totals.level_moves, ElementsAre(Pair(1, 1)));
}

TEST_F(CountMoves, FollowsANegativeStep) {
  for (double& scale : source.scales) scale = -scale;
  quant::RowBlock build = block_of(source);
  EXPECT_THAT(moves(build).level_moves, IsEmpty());
  EXPECT_THAT(moves(build).scale_ratio.named(), ElementsAre(Pair("1", 4)));
  build.values[9] += source.scales[0];
  EXPECT_THAT(moves(build).level_moves, ElementsAre(Pair(1, 1)));
}

TEST_F(CountMoves, LeavesOutGroupsThatAreNotOnTheGrid) {
  std::ranges::fill(std::span(source.levels).first(32), std::int16_t{0});
  quant::RowBlock build = block_of(source);
  build.values[3] = 1.0;
  const GridTotals totals = moves(build);
  EXPECT_EQ(totals.lattice_weights, 96U);
  EXPECT_THAT(totals.level_moves, IsEmpty());
  EXPECT_THAT(totals.scale_ratio.named(), ElementsAre(Pair("1", 3)));
}

TEST_F(CountMoves, PutsScaleRatiosIntoBins) {
  quant::RowBlock build = block_of(source);
  build.scales = {source.scales[0] * 0.9, source.scales[1] * 1.03, source.scales[2] * 4.5, 0.0};
  EXPECT_THAT(moves(build).scale_ratio.named(),
              ElementsAre(Pair("0", 1), Pair("0.875", 1), Pair("1+", 1), Pair(">=4", 1)));
}

// A step at an end of the interval that does not belong to it would give another weight.
TEST_F(CountMoves, CallsNoStepTheSourcesThatGivesOtherWeights) {
  source = on_grid(1, 32, 32);
  const Stored bytes = stored(source);
  SourceLattice lattice = fit_lattice(bytes.rows(), 32, 32);
  quant::GridFit& fit = lattice.fits[0];
  fit.step = 1.0;
  fit.step_low = 0.99;
  fit.step_high = 1.01;
  const auto bin = [&](double step, bool low, bool high) {
    fit.low_is_feasible = low;
    fit.high_is_feasible = high;
    quant::RowBlock build = block_of(source);
    build.scales = {step};
    GridTotals totals;
    count_moves(lattice, bytes.rows(), quant::GroupLayout::regular(32, 32), build, totals);
    return totals.scale_ratio.named().begin()->first;
  };
  EXPECT_EQ(bin(0.99, true, false), "1");
  EXPECT_EQ(bin(0.99, false, true), "0.9375");
  EXPECT_EQ(bin(1.01, false, true), "1");
  EXPECT_EQ(bin(1.01, true, false), "1+");
  EXPECT_EQ(bin(-1.0, false, false), "1");
}

TEST_F(CountMoves, ComparesStepsOnlyWithinOneGroupOfTheSource) {
  quant::RowBlock build = block_of(source);
  build.stride = 1;
  build.scales = {source.scales[0], source.scales[2]};
  EXPECT_THAT(moves(build, 64).scale_ratio.named(), IsEmpty())
      << "two groups of the source in each";

  // Blocks of 24 over the flattened tensor: of each row those count that cross no border.
  const auto ragged = quant::GroupLayout::regular(64, 24, 64 % 24);
  build.stride = ragged.stride();
  build.scales.assign(2 * build.stride, 1.0);
  std::uint64_t within = 0;
  for (std::uint64_t row = 0; row < 2; ++row) {
    for (std::uint64_t g = 0; g < ragged.groups(row); ++g) {
      const quant::RowRange range = ragged.positions(row, g);
      const bool crosses = range.first < 32 && range.end() > 32;
      if (!crosses && range.count > 0) ++within;
    }
  }
  const Stored bytes = stored(source);
  GridTotals totals;
  count_moves(fit_lattice(bytes.rows(), 64, 32), bytes.rows(), ragged, build, totals);
  EXPECT_THAT(totals.scale_ratio.named(), ElementsAre(Pair(">=4", within)));
}

TEST_F(CountMoves, NeedsNoScales) {
  quant::RowBlock build = block_of(source);
  build.scales.clear();
  const GridTotals totals = moves(build);
  EXPECT_EQ(totals.lattice_weights, 128U);
  EXPECT_THAT(totals.scale_ratio.named(), IsEmpty());
}

TEST_F(CountMoves, SaysTheSameOfCodesAsOfValues) {
  quant::LeveledWeight moved = source;
  moved.levels[10] = static_cast<std::int16_t>(moved.levels[10] > 0 ? 0 : 6);
  moved.scales[2] *= 2;
  const auto spec = quant::pack(moved, test::int4_format().like);
  ASSERT_THAT(spec, test::IsOk());
  quant::Int4Rows rows;
  rows.rows = 2;
  rows.codes = spec->find(quant::Companion::kCodes)->data;
  rows.row_bytes = 32;
  rows.group_size = 32;
  rows.groups = 2;
  rows.scales.assign(moved.scales.begin(), moved.scales.end());
  const Stored bytes = stored(source);
  GridTotals of_codes;
  count_moves(fit_lattice(bytes.rows(), 64, 32), bytes.rows(), rows, of_codes);
  EXPECT_EQ(of_codes, moves(block_of(moved)));
  EXPECT_FALSE(of_codes.level_moves.empty());
}

}  // namespace
}  // namespace gridscope::analysis
