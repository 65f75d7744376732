#include "stored_numbers.hpp"

#include <limits>

#include "quant/cross_vector.hpp"
#include "support/matchers.hpp"

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(ColumnStrips, TakeTheSameColumnsOfEveryRow) {
  const StoredTensor tensor = {.dtype = Dtype::kF16, .shape = {3, 10}};
  EXPECT_EQ(column_strips(tensor, {.first = 4, .count = 2}, 3),
            (Strips{.offset = 8, .length = 4, .stride = 20, .count = 3}));
}

TEST(LoadRows, LeavesPaddingOut) {
  const StoredTensor stored = floats_of(Dtype::kF32, {3, 3}, {1, 2, 99, 3, 4, 99, 5, 6, 99});
  const TileNumbers numbers = {
      .dtype = Dtype::kF32, .bytes = stored.data, .rows = {.first = 7, .count = 3}};
  std::vector<double> out(4);
  load_rows(numbers, 3, {.first = 8, .count = 2}, out);
  EXPECT_THAT(out, ElementsAre(3, 4, 5, 6));
}

TEST(LoadRows, TakesWholeRowsAtOnce) {
  const StoredTensor stored = floats_of(Dtype::kBF16, {3, 2}, {1, 2, 3, 4, 5, 6});
  const TileNumbers numbers = {
      .dtype = Dtype::kBF16, .bytes = stored.data, .rows = {.first = 0, .count = 3}};
  std::vector<double> out(2);
  load_rows(numbers, 2, {.first = 2, .count = 1}, out);
  EXPECT_THAT(out, ElementsAre(5, 6));
}

TEST(LoadColumns, TurnsThemIntoRows) {
  const StoredTensor stored = floats_of(Dtype::kF16, {2, 3}, {1, 2, 3, 4, 5, 6});
  const TileNumbers numbers = {
      .dtype = Dtype::kF16, .bytes = stored.data, .rows = {.first = 5, .count = 3}};
  std::vector<double> out(4);
  load_columns(numbers, {.first = 6, .count = 2}, out);
  EXPECT_THAT(out, ElementsAre(2, 5, 3, 6));
}

TEST(CheckFinite, NamesThePlaceOfTheFirstThatIsNot) {
  const WeightSpec spec = {.name = "q_proj", .scheme = Scheme::kAwqGemm};
  const RowRange rows = {.first = 10, .count = 2};
  EXPECT_THAT(check_finite(spec, Companion::kScale, rows, std::vector{1.0, 2.0, 3.0, 4.0}),
              test::IsOk());
  EXPECT_THAT(check_finite(spec, Companion::kScale, rows, std::vector{1.0, 2.0, kNan, 4.0}),
              test::Fails(ErrorCode::kCorrupt,
                          "weight \"q_proj\" (awq_gemm): its scale of row 11, group 0 is nan"));
  EXPECT_THAT(check_finite(spec, Companion::kScale, rows, {}), test::IsOk());
}

TEST(WholeNumbers, WantTheTypeAndAllBytes) {
  WeightSpec spec = {.name = "q_proj", .scheme = Scheme::kGptq};
  EXPECT_THAT(whole_numbers(spec, Companion::kGroupIndex, {Dtype::kI32}),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("its group index is missing")));
  spec[Companion::kGroupIndex] = tensor_of<std::int32_t>(Dtype::kI32, {2}, {3, -1});
  const auto numbers = whole_numbers(spec, Companion::kGroupIndex, {Dtype::kI32});
  ASSERT_THAT(numbers, test::IsOk());
  EXPECT_THAT(*numbers, ElementsAre(3, -1));
  EXPECT_THAT(
      whole_numbers(spec, Companion::kGroupIndex, {Dtype::kI64}),
      test::Fails(ErrorCode::kCorrupt, HasSubstr("its group index is I32 [2], expected I64")));
  spec[Companion::kGroupIndex]->data.pop_back();
  EXPECT_THAT(whole_numbers(spec, Companion::kGroupIndex, {Dtype::kI32}),
              test::Fails(ErrorCode::kCorrupt,
                          HasSubstr("its group index I32 [2] has 7 bytes, expected 8")));
}

TEST(ColumnFactors, AreOneForEachColumn) {
  WeightSpec spec = {.name = "q_proj", .scheme = Scheme::kModelOptInt4Awq};
  auto factors = column_factors(spec, 2);
  ASSERT_THAT(factors, test::IsOk());
  EXPECT_THAT(*factors, IsEmpty());
  spec[Companion::kPreQuantScale] = floats_of(Dtype::kBF16, {2}, {0.5, 2.0});
  factors = column_factors(spec, 2);
  ASSERT_THAT(factors, test::IsOk());
  EXPECT_THAT(*factors, ElementsAre(0.5, 2.0));
  EXPECT_THAT(column_factors(spec, 3),
              test::Fails(ErrorCode::kCorrupt,
                          HasSubstr("its pre-quantization scale has 2 numbers for 3 columns")));
  spec[Companion::kPreQuantScale] = floats_of(Dtype::kBF16, {2}, {0.5, kNan});
  EXPECT_THAT(
      column_factors(spec, 2),
      test::Fails(ErrorCode::kCorrupt, HasSubstr("its pre-quantization scale of column 1 is nan")));
}

}  // namespace
}  // namespace gridscope::quant
