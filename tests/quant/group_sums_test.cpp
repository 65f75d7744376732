#include "group_sums.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

namespace gridscope::quant {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

ErrorSums sums_of(const std::vector<double>& build, const std::vector<double>& source,
                  std::optional<double> scale = 1.0) {
  ErrorSums sums;
  add_group({.build = build, .source = source, .scale = scale, .row = 7, .first_column = 64}, sums);
  return sums;
}

TEST(GroupSums, CountsAndAddsUp) {
  const ErrorSums sums = sums_of({1.0, -2.0, 0.0, 3.0}, {1.0, -1.5, -0.0, 4.0});
  EXPECT_EQ(sums.weights, 4);
  EXPECT_EQ(sums.groups, 1);
  EXPECT_EQ(sums.groups_identical, 0);
  EXPECT_EQ(sums.values_identical, 2);
  EXPECT_EQ(sums.moved, 1) << "exactly half a step is not moved";
  EXPECT_EQ(sums.abs_error, 1.5);
  EXPECT_EQ(sums.squared_error, 1.25);
  EXPECT_EQ(sums.squared_source, 1 + 2.25 + 16);
  EXPECT_EQ(sums.squared_build, 1 + 4 + 9);
  EXPECT_EQ(sums.product, 1 + 3 + 12);
  EXPECT_EQ(sums.worst, (WorstError{.error = 1.0, .row = 7, .column = 67}));
}

// Positions 0 and 8 share a lane and cancel there; added one after the other they would have
// swallowed the number between them.
TEST(GroupSums, AddsByLane) {
  std::vector<double> build(16, 0.0);
  build[0] = 1e17;
  build[1] = 1.0;
  build[8] = -1e17;
  const std::vector<double> source(16, 1.0);
  EXPECT_EQ(sums_of(build, source).product, 1.0);
  const Lanes lanes = {1e17, 1.0, 1.0, 1.0, -1e17, 1.0, 1.0, 1.0};
  EXPECT_EQ(sum_of(lanes), 6.0);
}

TEST(GroupSums, KeepsNonFiniteOutOfSums) {
  const ErrorSums sums =
      sums_of({kInfinity, std::nan(""), 1.0, 2.0}, {kInfinity, 1.0, std::nan(""), 2.5});
  EXPECT_EQ(sums.weights, 4);
  EXPECT_EQ(sums.build_non_finite, 2);
  EXPECT_EQ(sums.source_non_finite, 2);
  EXPECT_EQ(sums.values_identical, 1) << "infinity equals itself";
  EXPECT_EQ(sums.moved, 0);
  EXPECT_EQ(sums.abs_error, 0.5);
  EXPECT_EQ(sums.worst.column, 67);
}

TEST(GroupSums, TellsWhoIsDead) {
  const std::vector<double> dead = {0.0, -0.0};
  const std::vector<double> alive = {0.0, 1.0};
  const ErrorSums both = sums_of(dead, dead);
  EXPECT_EQ(both.dead_groups + both.source_dead_groups + both.dead_in_both, 3);
  EXPECT_EQ(both.groups_identical, 1);
  EXPECT_EQ(both.worst, (WorstError{.error = 0.0, .row = 7, .column = 64}));
  const ErrorSums build = sums_of(dead, alive, 0.0);
  EXPECT_EQ(build.dead_groups, 1);
  EXPECT_EQ(build.source_dead_groups, 0);
  EXPECT_EQ(build.moved, 1) << "any error is beyond a step of zero";
  const ErrorSums source = sums_of(alive, dead);
  EXPECT_EQ(source.dead_groups, 0);
  EXPECT_EQ(source.source_dead_groups, 1);
  EXPECT_EQ(source.dead_in_both, 0);
}

TEST(GroupSums, MovesNothingWithoutAScale) {
  EXPECT_EQ(sums_of({9.0}, {1.0}, std::nullopt).moved, 0);
  EXPECT_EQ(sums_of({9.0}, {1.0}, -10.0).moved, 1) << "a negative scale counts by its size";
}

TEST(GroupSums, NamesTheEarliestColumnOfMappedGroups) {
  const std::vector<std::uint32_t> columns = {5, 9};
  const std::vector<std::uint32_t> others = {2, 4};
  ErrorSums sums;
  const std::vector<double> build = {1.0, 1.0};
  const std::vector<double> source = {2.0, 2.0};
  add_group({.build = build, .source = source, .scale = 1.0, .columns = columns}, sums);
  add_group({.build = build, .source = source, .scale = 1.0, .columns = others}, sums);
  EXPECT_EQ(sums.worst.column, 2);
}

TEST(GroupSums, IgnoresGroupsOfNoWeights) {
  EXPECT_EQ(sums_of({}, {}), ErrorSums{});
}

}  // namespace
}  // namespace gridscope::quant
