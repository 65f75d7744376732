// The fused count of level moves against the plain one, on every CPU target.

#include <gmock/gmock.h>

#include <random>

#include "gridscope/quant/cpu_target.hpp"
#include "gridscope/quant/level_moves.hpp"
#include "quant/int4_pair.hpp"
#include "support/matchers.hpp"

namespace gridscope::quant {
namespace {

using test::Build;
using test::Int4Pair;

class LevelMovesInt4 : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_THAT(force_cpu_target(GetParam()), test::IsOk()); }
  void TearDown() override { ASSERT_THAT(force_cpu_target(""), test::IsOk()); }
};

LevelMoves expect_as_plain(const Int4Pair& pair, std::uint64_t source_group_size) {
  const auto bytes = pair.source_bytes();
  const SourceRows source{.dtype = Dtype::kBF16, .bytes = bytes};
  std::vector<GridFit> fits(pair.source.size() / source_group_size);
  fit_grids(bytes, source_group_size, {}, fits);
  const SourceGrid grid{.group_size = source_group_size, .fits = fits};
  const LevelMoves plain = count_level_moves(pair.row_block(), source, grid);
  EXPECT_EQ(count_level_moves(pair.int4_rows(3), source, grid), plain);
  return plain;
}

TEST_P(LevelMovesInt4, FindNoneInARepack) {
  const auto pair = test::make_pair({.rows = 4, .columns = 512}, 1);
  const LevelMoves moves = expect_as_plain(pair, 32);
  EXPECT_GT(moves.weights(), pair.source.size() / 2);
  EXPECT_EQ(moves.of(0), moves.weights());
}

TEST_P(LevelMovesInt4, FindTheOneThatWasPlanted) {
  auto pair = test::make_pair({.rows = 4, .columns = 512}, 1);
  const std::size_t at = 700;
  pair.codes[at] = static_cast<std::uint8_t>(pair.codes[at] == 15 ? 14 : pair.codes[at] + 1);
  const LevelMoves moves = expect_as_plain(pair, 32);
  EXPECT_EQ(moves.of(0), moves.weights() - 1);
  EXPECT_EQ(moves.of(1) + moves.of(-1), 1);
}

TEST_P(LevelMovesInt4, AreThePlainOnesForGroupsOfAnySize) {
  unsigned seed = 10;
  for (const std::uint64_t build_size : {16U, 32U, 64U, 128U}) {
    for (const std::uint64_t source_size : {16U, 32U, 64U}) {
      for (const bool zero_points : {false, true}) {
        expect_as_plain(test::make_pair({.rows = 2,
                                         .columns = 256,
                                         .group_size = build_size,
                                         .build = Build::kRequantized,
                                         .scale_dtype = Dtype::kF16,
                                         .zero_points = zero_points},
                                        ++seed),
                        source_size);
      }
    }
  }
}

TEST_P(LevelMovesInt4, AreThePlainOnesWhateverTheCodesAndScales) {
  std::mt19937 random(12);
  auto pair = test::make_pair({.rows = 2, .columns = 512}, 4);
  for (std::uint8_t& code : pair.codes) code = static_cast<std::uint8_t>(random() % 16);
  const LevelMoves scattered = expect_as_plain(pair, 32);
  EXPECT_GT(scattered.of(9), 0);
  for (const float scale : {0.0F, 1e-30F, 1.0F, 1e30F, std::nanf("")}) {
    pair.scales[random() % pair.scales.size()] = scale;
    expect_as_plain(pair, 32);
  }
  // Half the step of the source: every odd code is a tie.
  auto halved = test::make_pair({.rows = 1, .columns = 128}, 5);
  std::vector<GridFit> fits(4);
  const auto bytes = halved.source_bytes();
  fit_grids(bytes, 32, {}, fits);
  for (std::size_t g = 0; g < 4; ++g) {
    fits[g].verdict = GridClass::kOnGrid;
    fits[g].step = 2 * static_cast<double>(halved.scales[g]);
  }
  const SourceGrid grid{.group_size = 32, .fits = fits};
  const SourceRows source{.dtype = Dtype::kBF16, .bytes = bytes};
  const LevelMoves fused = count_level_moves(halved.int4_rows(), source, grid);
  EXPECT_GT(fused.ties, 0);
  EXPECT_EQ(fused, count_level_moves(halved.row_block(), source, grid));
}

INSTANTIATE_TEST_SUITE_P(Targets, LevelMovesInt4, ::testing::ValuesIn(cpu_targets()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace gridscope::quant
