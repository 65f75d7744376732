#include "integer_decoder.hpp"

#include <cmath>
#include <limits>

#include "quant/int4_tiles.hpp"
#include "support/matchers.hpp"

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two rows of 32 codes, counting up from 0 and down from 15, in two groups of 16.
class CountingDecoder final : public IntegerDecoder {
 public:
  explicit CountingDecoder(GroupTerms terms, std::vector<double> factors = {},
                           GroupLayout groups = GroupLayout::regular(32, 16))
      : IntegerDecoder({.name = "counting", .scheme = Scheme::kMlxAffine},
                       integer_layout(2, std::move(groups), 4, Dtype::kF32), std::move(factors)),
        terms_(std::move(terms)) {}

  [[nodiscard]] TileNeeds needs(RowRange /*rows*/) const override { return {}; }

 protected:
  void order_codes(const Tile& /*tile*/, RowRange /*rows*/, PackedRows& out) const override {
    out.own.clear();
    for (unsigned i = 0; i < 32; ++i) {
      const unsigned low = 2 * i % 16;
      const unsigned byte = i < 16 ? low | (low + 1) << 4 : (15 - low) | (14 - low) << 4;
      out.own.push_back(static_cast<std::byte>(byte));
    }
    out.bytes = out.own;
    out.stride = 16;
  }
  Status load_terms(const Tile& /*tile*/, RowRange /*rows*/, GroupTerms& out) const override {
    out = terms_;
    return {};
  }

 private:
  GroupTerms terms_;
};

constexpr RowRange kBoth = {.first = 0, .count = 2};

RowBlock decoded_by(const CountingDecoder& decoder) {
  RowBlock block;
  EXPECT_THAT(decoder.decode({.rows = kBoth, .bytes = {}}, kBoth, block), test::IsOk());
  return block;
}

bool int4_of(const CountingDecoder& decoder, Int4Rows& int4) {
  const auto offered = decoder.decode_int4({.rows = kBoth, .bytes = {}}, kBoth, int4);
  EXPECT_THAT(offered, test::IsOk());
  return offered.value_or(false);
}

TEST(IntegerDecoder, SubtractsZeroPointsBeforeItScales) {
  const CountingDecoder decoder({.scales = {1, 2, 3, 4}, .zeros = {0, 1, -1, -8}, .offsets = {}});
  const RowBlock block = decoded_by(decoder);
  EXPECT_EQ(block.levels[0], -8);
  EXPECT_EQ(block.levels[32], 7);
  EXPECT_EQ(block.values[0], -8);
  EXPECT_EQ(block.values[16], -18);
  EXPECT_EQ(block.values[32], 24);
  EXPECT_EQ(block.values[48], 60);
  EXPECT_THAT(block.zeros, ElementsAre(0, 1, -1, -8));
  EXPECT_THAT(block.scales, ElementsAre(1, 2, 3, 4));
  Int4Rows int4;
  ASSERT_TRUE(int4_of(decoder, int4));
  EXPECT_THAT(int4.zeros, ElementsAre(0, 1, -1, -8));
  EXPECT_EQ(int4.group_size, 16);
  expect_same_rows(decoder, {.rows = kBoth, .bytes = {}}, kBoth);
}

TEST(IntegerDecoder, LeavesZerosOutForKernelsWhereAllAreTheMiddle) {
  Int4Rows int4;
  int4.zeros = {1};
  ASSERT_TRUE(int4_of(
      CountingDecoder({.scales = {1, 2, 3, 4}, .zeros = {0, 0, 0, 0}, .offsets = {}}), int4));
  EXPECT_THAT(int4.zeros, IsEmpty());
}

TEST(IntegerDecoder, AddsOffsetsToWholeCodes) {
  const CountingDecoder decoder(
      {.scales = {1, 0.5, 0, 1}, .zeros = {}, .offsets = {-8, 1.25, 3, 0x1p-60}});
  const RowBlock block = decoded_by(decoder);
  EXPECT_EQ(block.values[1], -7);
  EXPECT_EQ(block.values[17], 1.75);
  EXPECT_EQ(block.values[32], 3);
  // 15 + 2^-60 does not fit: not even, so that rounding sees that there is more.
  EXPECT_EQ(block.values[48], std::nextafter(15.0, 16.0));
  // The nearest level: -2.5 codes below the middle goes to even.
  EXPECT_THAT(block.zeros, ElementsAre(0, -10, 0, -8));
  Int4Rows int4;
  int4.rows = 7;
  EXPECT_FALSE(int4_of(decoder, int4));
  EXPECT_EQ(int4.rows, 7);
}

TEST(IntegerDecoder, TakesOffsetsThatAreExactZeroPointsToKernels) {
  const CountingDecoder decoder(
      {.scales = {1, 0.5, 2, 1}, .zeros = {}, .offsets = {-8, -4, -30, 0}});
  expect_same_rows(decoder, {.rows = kBoth, .bytes = {}}, kBoth);
  Int4Rows int4;
  ASSERT_TRUE(int4_of(decoder, int4));
  EXPECT_THAT(int4.zeros, ElementsAre(0, 0, 7, -8));
}

TEST(IntegerDecoder, MultipliesColumnsAtTheEnd) {
  std::vector<double> factors(32, 1.0);
  factors[1] = 0.5;
  const CountingDecoder decoder({.scales = {1, 1, 1, 1}, .zeros = {}, .offsets = {}}, factors);
  const RowBlock block = decoded_by(decoder);
  EXPECT_EQ(block.values[0], -8);
  EXPECT_EQ(block.values[1], -3.5);
  EXPECT_EQ(block.values[33], 3);
  Int4Rows int4;
  EXPECT_FALSE(int4_of(decoder, int4));
}

TEST(IntegerDecoder, ScalesMappedColumnsByTheirGroup) {
  std::vector<std::uint32_t> group_of_column(32, 0);
  group_of_column[2] = 1;
  const CountingDecoder decoder({.scales = {1, 10, 1, 10}, .zeros = {}, .offsets = {}}, {},
                                GroupLayout::mapped(group_of_column, 2));
  const RowBlock block = decoded_by(decoder);
  EXPECT_EQ(block.values[1], -7);
  EXPECT_EQ(block.values[2], -60);
  EXPECT_EQ(block.values[3], -5);
  Int4Rows int4;
  EXPECT_FALSE(int4_of(decoder, int4));
}

TEST(IntegerDecoder, RefusesScalesAndOffsetsThatAreNoNumbers) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  RowBlock block;
  const Tile tile = {.rows = kBoth, .bytes = {}};
  EXPECT_THAT(CountingDecoder({.scales = {1, 1, 1, kInfinity}, .zeros = {}, .offsets = {}})
                  .decode(tile, kBoth, block),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("its scale of row 1, group 1 is inf")));
  EXPECT_THAT(
      CountingDecoder({.scales = {1, 1, 1, 1}, .zeros = {}, .offsets = {0, -kInfinity, 0, 0}})
          .decode(tile, kBoth, block),
      test::Fails(ErrorCode::kCorrupt, HasSubstr("its offset of row 0, group 1 is -inf")));
}

TEST(IntegerLayout, KnowsTheLevelsOfItsBits) {
  const WeightLayout layout = integer_layout(3, GroupLayout::regular(64, 32), 3, Dtype::kF16);
  EXPECT_EQ(layout.rows, 3);
  EXPECT_EQ(layout.columns, 64);
  EXPECT_EQ(layout.lowest_level, -4);
  EXPECT_EQ(layout.highest_level, 3);
  EXPECT_EQ(layout.scale_dtype, Dtype::kF16);
}

struct GroupCase {
  std::int64_t claimed;
  std::uint64_t columns;
  std::uint64_t groups;
  std::uint64_t size;  // 0: refused
};

TEST(SolveGroupSize, HoldsTheClaimAgainstTheGrid) {
  for (const auto& [claimed, columns, groups, size] : {GroupCase{32, 128, 4, 32},
                                                       {0, 128, 4, 32},
                                                       {-1, 128, 1, 128},
                                                       {0, 128, 1, 128},
                                                       {256, 128, 1, 128},
                                                       {100, 128, 2, 100},
                                                       {64, 128, 4, 0},
                                                       {-1, 128, 4, 0},
                                                       {0, 128, 3, 0},
                                                       {-2, 128, 1, 0},
                                                       {0, 0, 1, 0},
                                                       {0, 128, 0, 0}}) {
    const auto solved =
        solve_group_size({.name = "w", .group_size = claimed}, columns, groups).value_or(0);
    EXPECT_EQ(solved, size) << claimed << ' ' << columns << ' ' << groups;
  }
  EXPECT_THAT(solve_group_size({.name = "w", .group_size = 64}, 128, 4),
              test::Fails(ErrorCode::kCorrupt,
                          HasSubstr("its rows of 128 weights have 4 groups of size 64")));
}

TEST(CheckShape, NamesWhatItFound) {
  WeightSpec spec = {.name = "w", .scheme = Scheme::kGptq};
  spec[Companion::kZeroPoint] = StoredTensor{.dtype = Dtype::kI32, .shape = {2, 3}};
  EXPECT_THAT(check_shape(spec, Companion::kZeroPoint, 2, 3), test::IsOk());
  EXPECT_THAT(
      check_shape(spec, Companion::kZeroPoint, 3, 2),
      test::Fails(ErrorCode::kCorrupt, HasSubstr("its zero point is I32 [2, 3], expected [3, 2]")));
}

}  // namespace
}  // namespace gridscope::quant
