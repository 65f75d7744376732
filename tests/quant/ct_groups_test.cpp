#include "ct_groups.hpp"

#include "quant/cross_vector.hpp"

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

WeightSpec indexed(const std::vector<std::int32_t>& index) {
  WeightSpec spec = {.name = "q_proj", .scheme = Scheme::kCtPackQuantized};
  spec[Companion::kGroupIndex] = tensor_of<std::int32_t>(Dtype::kI32, {index.size()}, index);
  return spec;
}

CtGroups solved(const WeightSpec& spec, std::uint64_t columns, std::uint64_t group_size) {
  auto groups = solve_ct_groups(spec, columns, group_size);
  EXPECT_THAT(groups, test::IsOk());
  return groups ? *std::move(groups) : CtGroups{};
}

TEST(SolveCtGroups, TakesNeighboursWithoutAnIndex) {
  const CtGroups groups = solved({}, 6, 2);
  EXPECT_EQ(groups.layout.size(), 2);
  EXPECT_EQ(groups.layout.stride(), 3);
  EXPECT_THAT(groups.remarks, IsEmpty());
}

TEST(SolveCtGroups, TakesNeighboursWhereTheIndexSaysNothingElse) {
  const CtGroups groups = solved(indexed({0, 0, 1, 1}), 4, 2);
  EXPECT_FALSE(groups.layout.is_mapped());
  EXPECT_THAT(groups.remarks, IsEmpty());
}

TEST(SolveCtGroups, FollowsTheIndex) {
  const CtGroups groups = solved(indexed({1, 0, 0, 1}), 4, 2);
  EXPECT_THAT(groups.layout.order(), ElementsAre(1, 2, 0, 3));
  EXPECT_THAT(groups.remarks, IsEmpty());
}

TEST(SolveCtGroups, RemarksOnUnequalGroups) {
  const CtGroups groups = solved(indexed({1, 0, 1, 1}), 4, 2);
  EXPECT_EQ(groups.layout.positions(0, 1).count, 3);
  EXPECT_THAT(groups.remarks, ElementsAre("its group index gives groups other than 2 columns"));
}

TEST(SolveCtGroups, IgnoresAnIndexThatWasNeverFilledIn) {
  const CtGroups groups = solved(indexed({-1, -1, -1, -1}), 4, 2);
  EXPECT_FALSE(groups.layout.is_mapped());
  EXPECT_THAT(groups.remarks, ElementsAre("its group index was never filled in"));
}

TEST(SolveCtGroups, RefusesWhatIsNoGroup) {
  EXPECT_THAT(solve_ct_groups(indexed({0, 0, 1, 2}), 4, 2),
              test::Fails(ErrorCode::kCorrupt,
                          HasSubstr("its group index of column 3 is 2, expected below 2")));
  EXPECT_THAT(solve_ct_groups(indexed({0, 0, 1, -2}), 4, 2),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("its group index of column 3 is -2")));
  EXPECT_THAT(
      solve_ct_groups(indexed({0, 0, 1}), 4, 2),
      test::Fails(ErrorCode::kCorrupt, HasSubstr("its group index has 3 numbers for 4 columns")));
}

TEST(CheckCtZeros, NamesThePlace) {
  const WeightLayout layout = {.rows = 8,
                               .columns = 64,
                               .groups = GroupLayout::regular(64, 32),
                               .bits = 4,
                               .lowest_level = -8,
                               .highest_level = 7};
  const RowRange rows = {.first = 4, .count = 2};
  WeightSpec spec = {.name = "q_proj"};
  EXPECT_THAT(check_ct_zeros(spec, layout, rows, std::vector<std::int16_t>{-8, 7, 0, 1}),
              test::IsOk());
  EXPECT_THAT(check_ct_zeros(spec, layout, rows, std::vector<std::int16_t>{-8, 7, 0, 8}),
              test::Fails(ErrorCode::kCorrupt,
                          HasSubstr("its zero point of row 5, group 1 is 8, expected -8 to 7")));
  spec.symmetric = true;
  EXPECT_THAT(check_ct_zeros(spec, layout, rows, std::vector<std::int16_t>{0, 0, 1, 0}),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("its zero point of row 5, group 0 is 1, "
                                                         "expected 0 in a symmetric weight")));
}

}  // namespace
}  // namespace gridscope::quant
