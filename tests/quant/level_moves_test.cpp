#include "gridscope/quant/level_moves.hpp"

#include <gmock/gmock.h>

#include <limits>

#include "nearest_level.hpp"
#include "quant/int4_pair.hpp"

namespace gridscope::quant {
namespace {

TEST(NearestLevel, RoundsAndTellsTies) {
  const auto expect = [](double position, int level, bool is_tie) {
    const NearestLevel nearest = nearest_level(position);
    EXPECT_EQ(nearest.level, level) << position;
    EXPECT_EQ(nearest.is_tie, is_tie) << position;
  };
  expect(0.0, 0, false);
  expect(2.49, 2, false);
  expect(2.5, 2, true);
  expect(2.51, 3, false);
  expect(-2.5, -3, true);
  expect(-2.51, -3, false);
  expect(-0.4, 0, false);
  // As near as divisions by a rounded step come to halfway.
  expect(std::nextafter(7.5, 8.0), 7, true);
  expect(std::nextafter(7.5, 7.0), 7, true);
  expect(7.5 + 1e-12, 8, false);
  expect(100.0, NearestLevel::kFar, false);
  expect(-std::numeric_limits<double>::infinity(), NearestLevel::kFar, false);
  expect(std::nan(""), NearestLevel::kFar, false);
}

// Half a level either way is the smaller move, whichever side the weight comes from.
TEST(NearestLevel, CountsTiesAsTheSmallerMove) {
  LevelMoves moves;
  count_move(2, nearest_level(2.5), moves);
  count_move(3, nearest_level(2.5), moves);
  EXPECT_EQ(moves.of(0), 2);
  count_move(5, nearest_level(2.5), moves);
  EXPECT_EQ(moves.of(-2), 1);
  count_move(0, nearest_level(2.5), moves);
  EXPECT_EQ(moves.of(2), 1);
  EXPECT_EQ(moves.ties, 4);
}

TEST(LevelMoves, CountsFromTheLatticePointOfTheSource) {
  constexpr double kStep = 0.25;
  const std::vector<int> levels = {-8, 7, 5, 3, 1, 0, -1, 2};
  std::vector<std::byte> bytes(2 * levels.size());
  std::vector<double> weights;
  for (const int level : levels) weights.push_back(level * kStep);
  store_numbers(Dtype::kBF16, weights, bytes);
  std::vector<float> values(weights.begin(), weights.end());
  const std::vector<GridFit> fits = {fit_grid(values, Dtype::kBF16, {}, {})};
  ASSERT_EQ(fits[0].verdict, GridClass::kOnGrid);

  const double inf = std::numeric_limits<double>::infinity();
  const RowBlock build{.rows = 1,
                       .columns = 8,
                       .values = {-2.0, 1.75 + 0.25, 1.25 - 0.12, 0.75 + 0.14, 0.25 + 3.0,
                                  0.0 + 4.3, inf, 0.5 - 0.5}};
  const LevelMoves moves = count_level_moves(build, {.dtype = Dtype::kBF16, .bytes = bytes},
                                             {.group_size = 8, .fits = fits});
  EXPECT_EQ(moves.of(0), 2);
  EXPECT_EQ(moves.of(1), 2);
  EXPECT_EQ(moves.of(12), 1);
  EXPECT_EQ(moves.of(-2), 1);
  EXPECT_EQ(moves.beyond, 2);
  EXPECT_EQ(moves.weights(), 8);
}

TEST(LevelMoves, LeavesOutWhatIsOnNoGrid) {
  const std::vector<GridFit> fits(1, GridFit{.verdict = GridClass::kAmbiguous, .step = 1.0});
  const std::vector<std::byte> bytes(4);
  const RowBlock build{.rows = 1, .columns = 2, .values = {1.0, 2.0}};
  EXPECT_EQ(count_level_moves(build, {.dtype = Dtype::kBF16, .bytes = bytes},
                              {.group_size = 2, .fits = fits}),
            LevelMoves{});
}

TEST(LevelMoves, AddsUp) {
  LevelMoves a;
  count_move(0, nearest_level(1.0), a);
  LevelMoves b = a;
  count_move(0, nearest_level(50.0), b);
  b.ties = 3;
  a.add(b);
  EXPECT_EQ(a.of(1), 2);
  EXPECT_EQ(a.beyond, 1);
  EXPECT_EQ(a.ties, 3);
  EXPECT_EQ(a.weights(), 3);
}

}  // namespace
}  // namespace gridscope::quant
