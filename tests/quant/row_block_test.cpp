#include "gridscope/quant/row_block.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;

TEST(GroupLayout, CutsRowsIntoNeighbours) {
  const GroupLayout layout = GroupLayout::regular(96, 32);
  EXPECT_EQ(layout.columns(), 96);
  EXPECT_EQ(layout.size(), 32);
  EXPECT_EQ(layout.stride(), 3);
  EXPECT_EQ(layout.groups(5), 3);
  EXPECT_FALSE(layout.is_mapped());
  EXPECT_EQ(layout.positions(5, 1), (RowRange{.first = 32, .count = 32}));
  EXPECT_EQ(layout.group_of(5, 64), 2);
}

TEST(GroupLayout, LetsTheLastGroupBeShort) {
  const GroupLayout layout = GroupLayout::regular(40, 32);
  EXPECT_EQ(layout.stride(), 2);
  EXPECT_EQ(layout.positions(0, 1), (RowRange{.first = 32, .count = 8}));
}

// Blocks of 64 over rows of 96: row 0 has 64 + 32, row 1 the other 32 and 64, and so on.
TEST(GroupLayout, CutsBlocksThatRunOverTheEndOfRows) {
  const GroupLayout layout = GroupLayout::regular(96, 64, 96);
  EXPECT_EQ(layout.stride(), 2);
  EXPECT_EQ(layout.positions(0, 0), (RowRange{.first = 0, .count = 64}));
  EXPECT_EQ(layout.positions(0, 1), (RowRange{.first = 64, .count = 32}));
  EXPECT_EQ(layout.positions(1, 0), (RowRange{.first = 0, .count = 32}));
  EXPECT_EQ(layout.positions(1, 1), (RowRange{.first = 32, .count = 64}));
  EXPECT_EQ(layout.group_of(1, 31), 0);
  EXPECT_EQ(layout.group_of(1, 32), 1);
  EXPECT_EQ(layout.positions(2, 0), layout.positions(0, 0));
}

TEST(GroupLayout, CountsRowsThatTouchAnotherBlock) {
  const GroupLayout layout = GroupLayout::regular(10, 16, 10);
  EXPECT_EQ(layout.groups(0), 1);
  EXPECT_EQ(layout.groups(1), 2);  // 6 columns of the first block, 4 of the second
  EXPECT_EQ(layout.stride(), 2);
}

TEST(GroupLayout, GathersMappedColumns) {
  const std::vector<std::uint32_t> group_of_column = {2, 0, 2, 1, 0};
  const GroupLayout layout = GroupLayout::mapped(group_of_column, 4);
  EXPECT_TRUE(layout.is_mapped());
  EXPECT_EQ(layout.size(), 0);
  EXPECT_EQ(layout.columns(), 5);
  EXPECT_EQ(layout.stride(), 4);
  EXPECT_EQ(layout.groups(0), 4);
  EXPECT_THAT(layout.order(), ElementsAre(1, 4, 3, 0, 2));
  EXPECT_EQ(layout.positions(9, 0), (RowRange{.first = 0, .count = 2}));
  EXPECT_EQ(layout.positions(9, 2), (RowRange{.first = 3, .count = 2}));
  EXPECT_EQ(layout.positions(9, 3), (RowRange{.first = 5, .count = 0}));
  EXPECT_EQ(layout.group_of(9, 3), 1);
}

// The flattened tensor is the measure: element i of it is in block i / size.
RC_GTEST_PROP(GroupLayout, FollowsTheFlattenedTensor, ()) {
  const auto columns = *rc::gen::inRange<std::uint64_t>(1, 200);
  const auto size = *rc::gen::inRange<std::uint64_t>(1, 80);
  const GroupLayout layout = GroupLayout::regular(columns, size, columns);
  std::uint64_t most = 0;
  for (std::uint64_t row = 0; row < size; ++row) {
    const std::uint64_t first_block = row * columns / size;
    std::uint64_t next = 0;
    for (std::uint64_t g = 0; g < layout.groups(row); ++g) {
      const RowRange range = layout.positions(row, g);
      RC_ASSERT(range.first == next);
      RC_ASSERT(range.count > 0);
      next = range.end();
      for (std::uint64_t column = range.first; column < range.end(); ++column) {
        RC_ASSERT((row * columns + column) / size == first_block + g);
        RC_ASSERT(layout.group_of(row, column) == g);
      }
    }
    RC_ASSERT(next == columns);
    most = std::max(most, layout.groups(row));
  }
  RC_ASSERT(layout.stride() == most);
}

TEST(RowBlock, GivesOneRow) {
  RowBlock block;
  block.columns = 3;
  block.values = {1, 2, 3, 4, 5, 6};
  EXPECT_THAT(block.row_values(1), ElementsAre(4, 5, 6));
}

}  // namespace
}  // namespace gridscope::quant
