#include "scale_grid.hpp"

#include "quant/cross_vector.hpp"
#include "spec_checks.hpp"

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Shape = std::vector<std::uint64_t>;

// Scales 0, 1, 2, .. of any shape.
WeightSpec with_scales(const Shape& shape) {
  WeightSpec spec = {.name = "q_proj", .scheme = Scheme::kFp8Block};
  std::vector<double> scales(elements_of({.shape = shape}));
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<double>(i);
  spec[Companion::kScale] = floats_of(Dtype::kF32, shape, scales);
  return spec;
}

ScaleGrid solved(const WeightSpec& spec, const Shape& weight) {
  auto grid = ScaleGrid::solve(spec, stack_of(weight), Companion::kScale);
  EXPECT_THAT(grid, test::IsOk());
  return grid ? *std::move(grid) : ScaleGrid{};
}

// The scales of `rows` out of a tile of `tile_rows`.
std::vector<double> loaded(const WeightSpec& spec, const ScaleGrid& grid, RowRange tile_rows,
                           RowRange rows) {
  const StoredTensor& scale = *spec.find(Companion::kScale);
  const Strips strips = grid.needs(scale, tile_rows);
  EXPECT_EQ(strips.count, 1);
  EXPECT_LE(strips.offset + strips.length, scale.data.size());
  std::vector<double> scales(rows.count * grid.groups());
  grid.load({.dtype = scale.dtype,
             .bytes = std::span(scale.data).subspan(strips.offset, strips.length),
             .rows = tile_rows},
            rows, scales);
  return scales;
}

TEST(StackOf, TakesTheLastTwoDimensions) {
  const MatrixStack stack = stack_of(Shape{2, 3, 4, 5});
  EXPECT_EQ(stack.matrices, 6);
  EXPECT_EQ(stack.rows, 4);
  EXPECT_EQ(stack.columns, 5);
  EXPECT_EQ(stack.total_rows(), 24);
  EXPECT_EQ(stack_of(Shape{7}).columns, 7);
  EXPECT_EQ(stack_of(Shape{}).total_rows(), 1);
}

TEST(ScaleGrid, OneForEverything) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{1, 1}}) {
    const WeightSpec spec = with_scales(shape);
    const ScaleGrid grid = solved(spec, {4, 6});
    EXPECT_EQ(grid.group_size(), 6);
    EXPECT_THAT(loaded(spec, grid, {.first = 1, .count = 3}, {.first = 2, .count = 2}),
                ElementsAre(0, 0));
  }
}

TEST(ScaleGrid, OneForEachOfSeveralMatrices) {
  for (const Shape& shape : {Shape{3}, Shape{3, 1, 1}}) {
    const WeightSpec spec = with_scales(shape);
    const ScaleGrid grid = solved(spec, {3, 2, 6});
    EXPECT_THAT(loaded(spec, grid, {.first = 1, .count = 4}, {.first = 1, .count = 4}),
                ElementsAre(0, 1, 1, 2));
  }
}

TEST(ScaleGrid, OneForEachRow) {
  for (const Shape& shape : {Shape{4}, Shape{4, 1}}) {
    const WeightSpec spec = with_scales(shape);
    const ScaleGrid grid = solved(spec, {4, 6});
    EXPECT_EQ(grid.groups(), 1);
    EXPECT_THAT(loaded(spec, grid, {.first = 1, .count = 3}, {.first = 2, .count = 2}),
                ElementsAre(2, 3));
  }
}

TEST(ScaleGrid, GroupsAlongTheRows) {
  const WeightSpec spec = with_scales({4, 3});
  const ScaleGrid grid = solved(spec, {2, 2, 6});
  EXPECT_EQ(grid.group_size(), 2);
  EXPECT_EQ(grid.groups(), 3);
  EXPECT_THAT(loaded(spec, grid, {.first = 1, .count = 2}, {.first = 2, .count = 1}),
              ElementsAre(6, 7, 8));
}

TEST(ScaleGrid, OneRowOfGroupsForAllRows) {
  const WeightSpec spec = with_scales({1, 3});
  const ScaleGrid grid = solved(spec, {4, 6});
  EXPECT_THAT(loaded(spec, grid, {.first = 1, .count = 2}, {.first = 2, .count = 1}),
              ElementsAre(0, 1, 2));
}

TEST(ScaleGrid, ClaimedBlocksWithRaggedEdges) {
  WeightSpec spec = with_scales({3, 2});
  spec.block = {2, 4};
  const ScaleGrid grid = solved(spec, {5, 6});
  EXPECT_EQ(grid.group_size(), 4);
  EXPECT_THAT(loaded(spec, grid, {.first = 1, .count = 4}, {.first = 1, .count = 4}),
              ElementsAre(0, 1, 2, 3, 2, 3, 4, 5));
  EXPECT_THAT(grid.remarks(), IsEmpty());
}

TEST(ScaleGrid, BlocksStartAnewWithEachMatrix) {
  WeightSpec spec = with_scales({2, 2, 1});
  spec.block = {2, 8};
  const ScaleGrid grid = solved(spec, {2, 3, 8});
  EXPECT_THAT(loaded(spec, grid, {.first = 0, .count = 6}, {.first = 0, .count = 6}),
              ElementsAre(0, 0, 1, 2, 2, 3));
}

TEST(ScaleGrid, PaddedBlocksAreRemarkedOn) {
  WeightSpec spec = with_scales({4, 3});
  spec.block = {2, 4};
  const ScaleGrid grid = solved(spec, {5, 6});
  EXPECT_EQ(grid.groups(), 2);
  EXPECT_THAT(loaded(spec, grid, {.first = 2, .count = 3}, {.first = 4, .count = 1}),
              ElementsAre(6, 7));
  EXPECT_THAT(grid.remarks(), ElementsAre("its grid of 4 x 3 scales is larger than the 3 x 2 that "
                                          "its blocks need"));
}

TEST(ScaleGrid, InfersBlocksThatNobodyClaims) {
  const WeightSpec spec = with_scales({2, 3});
  const ScaleGrid grid = solved(spec, {4, 6});
  EXPECT_EQ(grid.group_size(), 2);
  EXPECT_THAT(loaded(spec, grid, {.first = 1, .count = 2}, {.first = 1, .count = 2}),
              ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(ScaleGrid, RowsThatDoNotDivideNeedAClaim) {
  WeightSpec spec = with_scales({2, 2});
  EXPECT_THAT(ScaleGrid::solve(spec, stack_of(Shape{2, 40}), Companion::kScale), test::IsOk());
  spec.group_size = 32;
  const ScaleGrid grid = solved(spec, {2, 40});
  EXPECT_EQ(grid.group_size(), 32);
  EXPECT_THAT(grid.remarks(), ElementsAre("its last groups have 8 weights of 32"));
}

TEST(ScaleGrid, RefusesWhatDoesNotCoverTheWeight) {
  EXPECT_THAT(ScaleGrid::solve(with_scales({3, 2}), stack_of(Shape{4, 6}), Companion::kScale),
              test::Fails(ErrorCode::kCorrupt,
                          HasSubstr("its scale F32 [3, 2] does not cover 4 x 6 weights")));
  EXPECT_THAT(ScaleGrid::solve(with_scales({}), stack_of(Shape{0, 6}), Companion::kScale),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("it holds no weights")));
  WeightSpec claimed = with_scales({4, 2});
  claimed.group_size = 2;
  EXPECT_THAT(
      ScaleGrid::solve(claimed, stack_of(Shape{4, 6}), Companion::kScale),
      test::Fails(ErrorCode::kCorrupt, HasSubstr("its rows of 6 weights have 2 groups of size 2")));
}

}  // namespace
}  // namespace gridscope::quant
