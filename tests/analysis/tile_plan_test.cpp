#include "gridscope/analysis/tile_plan.hpp"

#include <gtest/gtest.h>

namespace gridscope::analysis {
namespace {

using quant::Companion;
using quant::Scheme;

model::Weight weight(Scheme scheme, std::uint64_t rows, std::uint64_t columns,
                     std::uint64_t bytes) {
  model::Weight made{.name = "w", .canonical = "w", .spec = {.scheme = scheme}};
  made.shape = {rows, columns};
  made.places[static_cast<std::size_t>(Companion::kCodes)] = {
      .file = 0, .offset = 0, .bytes = bytes};
  return made;
}

model::WeightPair pair(std::uint64_t rows, std::uint64_t columns) {
  model::WeightPair made;
  made.source_rows = made.build_rows = {.first = 0, .count = rows};
  made.columns = columns;
  return made;
}

// Tiles follow each other without gap or overlap, and blocks divide them.
void expect_covers(const TilePlan& plan) {
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < plan.tiles(); ++i) {
    const quant::RowRange tile = plan.tile(i);
    EXPECT_EQ(tile.first, next);
    EXPECT_GT(tile.count, 0U);
    next = tile.end();
  }
  EXPECT_EQ(next, plan.rows);
  if (plan.tiles() > 1) {
    EXPECT_EQ(plan.tile_rows % plan.block_rows, 0U);
  }
}

TEST(TilePlan, CutsALargeWeightIntoTilesOfBoundedSize) {
  const auto source = weight(Scheme::kPlain, 4096, 2816, 4096ULL * 2816 * 2);
  const auto build = weight(Scheme::kCtPackQuantized, 4096, 2816, 4096ULL * 2816 / 2);
  const TilePlan plan = plan_tiles(source, build, pair(4096, 2816));
  EXPECT_EQ(plan.bytes_per_row, 2816U * 5 / 2);
  EXPECT_GT(plan.tiles(), 1U);
  EXPECT_LE(plan.tile_bytes(), 16U * 1024 * 1024);
  expect_covers(plan);
}

TEST(TilePlan, SamplesTheFirstBlockAndFewOthers) {
  const auto source = weight(Scheme::kPlain, 4096, 2816, 4096ULL * 2816 * 2);
  const auto build = weight(Scheme::kCtPackQuantized, 4096, 2816, 4096ULL * 2816 / 2);
  const TilePlan plan = plan_tiles(source, build, pair(4096, 2816));
  std::vector<std::uint64_t> samples;
  for (std::uint64_t tile = 0; tile < plan.tiles(); ++tile) {
    for (const quant::RowRange block : cut(plan.tile(tile), plan.block_rows)) {
      if (plan.is_sample(block)) samples.push_back(block.first);
    }
  }
  EXPECT_EQ(samples, (std::vector<std::uint64_t>{0, 48 * 23, 96 * 23, 144 * 23}));
}

TEST(TilePlan, CutsRowsIntoNeighbours) {
  EXPECT_EQ(cut({.first = 3, .count = 7}, 3),
            (std::vector<quant::RowRange>{
                {.first = 3, .count = 3}, {.first = 6, .count = 3}, {.first = 9, .count = 1}}));
  EXPECT_EQ(cut({.first = 3, .count = 7}, 8),
            (std::vector{quant::RowRange{.first = 3, .count = 7}}));
}

TEST(TilePlan, ReadsWhatRunsDownTheInputsWhole) {
  const auto source = weight(Scheme::kPlain, 4096, 2816, 4096ULL * 2816 * 2);
  const auto build = weight(Scheme::kGptq, 4096, 2816, 4096ULL * 2816 / 2);
  EXPECT_EQ(plan_tiles(source, build, pair(4096, 2816)).tiles(), 1U);
  const auto head = weight(Scheme::kPlain, 262144, 2816, 262144ULL * 2816 * 2);
  const auto codes = weight(Scheme::kGptq, 262144, 2816, 262144ULL * 2816 / 2);
  const TilePlan plan = plan_tiles(head, codes, pair(262144, 2816));
  EXPECT_LE(plan.tile_bytes(), 32U * 1024 * 1024);
  expect_covers(plan);
}

TEST(TilePlan, KeepsHeadsTogether) {
  const auto source = weight(Scheme::kPlain, 8192, 4096, 8192ULL * 4096 * 2);
  const auto build = weight(Scheme::kGgufBlock, 8192, 4096, 8192ULL * 4096 / 32 * 18);
  model::WeightPair heads = pair(8192, 4096);
  heads.build_rows.rotary_head = 128;
  const TilePlan plan = plan_tiles(source, build, heads);
  EXPECT_EQ(plan.block_rows % 128, 0U);
  expect_covers(plan);
}

TEST(TilePlan, HasAtLeastOneRow) {
  const auto source = weight(Scheme::kPlain, 3, 100'000'000, 600'000'000);
  const auto build = weight(Scheme::kPlain, 3, 100'000'000, 600'000'000);
  const TilePlan plan = plan_tiles(source, build, pair(3, 100'000'000));
  EXPECT_EQ(plan.tile_rows, 1U);
  expect_covers(plan);
  const auto scalar = weight(Scheme::kPlain, 1, 1, 2);
  expect_covers(plan_tiles(scalar, scalar, pair(1, 1)));
}

TEST(TilePlan, CountsRowsThatAreSkippedOver) {
  const auto source = weight(Scheme::kPlain, 2048, 64, 2048ULL * 64 * 2);
  const auto build = weight(Scheme::kPlain, 1024, 64, 1024ULL * 64 * 2);
  model::WeightPair every_other = pair(1024, 64);
  every_other.source_rows = {.first = 1, .count = 1024, .stride = 2};
  EXPECT_EQ(plan_tiles(source, build, every_other).bytes_per_row, 64U * 2 * 3);
}

TEST(TilePlan, LeavesOutWhatIsReadWhole) {
  auto build = weight(Scheme::kGptq, 16, 64, 512);
  build.places[static_cast<std::size_t>(Companion::kGroupIndex)] = {
      .file = 0, .offset = 0, .bytes = 256};
  EXPECT_EQ(bytes_per_row(build, 64), 32U);
}

TEST(TilePlan, TakesTheRowsOfAFlatWeightFromThePair) {
  auto build = weight(Scheme::kBnbNf4, 16, 64, 512);
  build.shape = {16 * 64};
  build.is_flat = true;
  EXPECT_EQ(bytes_per_row(build, 64), 32U);
}

}  // namespace
}  // namespace gridscope::analysis
