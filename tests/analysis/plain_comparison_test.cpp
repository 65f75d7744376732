// What a build left unquantized, against the source.

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

#include "analysis/small_models.hpp"

namespace gridscope::analysis {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Numbers {
  std::vector<double> values;
  Dtype dtype = Dtype::kBF16;
};

test::SmallModel norm_of(const Numbers& numbers) {
  test::SmallModel model;
  model.norm("model.norm", numbers.values, numbers.dtype);
  return model;
}

PlainTensor compare(const Numbers& source, const Numbers& build, double build_offset = 0.0) {
  const test::SmallCheck check(norm_of(source), {norm_of(build)});
  GridPlan plan = check.plan();
  plan.builds[0].matching.plain[0].build_offset = build_offset;
  return test::compared<PlainTensor>(plan);
}

TEST(PlainComparison, FindsTheSameBytesTheSame) {
  const PlainTensor same = compare({{1, 2, -3}}, {{1, 2, -3}});
  EXPECT_EQ(same.values, 3U);
  EXPECT_EQ(same.different, 0U);
  EXPECT_EQ(same.max_abs_error, 0.0);
}

TEST(PlainComparison, CountsWhatDiffersAndByHowMuch) {
  const PlainTensor edited = compare({{1, 2, -3, 8}}, {{1, 2.5, -3, 7}});
  EXPECT_EQ(edited.values, 4U);
  EXPECT_EQ(edited.different, 2U);
  EXPECT_EQ(edited.max_abs_error, 1.0);
}

TEST(PlainComparison, CastsTheSourceOnceToTheBuildsType) {
  const double third = 1.0 / 3;
  EXPECT_EQ(compare({{third}, Dtype::kF32}, {{third}, Dtype::kBF16}).different, 0U);
  EXPECT_EQ(compare({{third}, Dtype::kF32}, {{third}, Dtype::kF16}).different, 0U);
  EXPECT_EQ(compare({{third}, Dtype::kBF16}, {{third}, Dtype::kF32}).different, 1U)
      << "the source's number, not the one that it was made from";
  const double next = quant::rounded_to(Dtype::kBF16, third) + 0x1p-9;
  const PlainTensor other = compare({{third}, Dtype::kF32}, {{next}, Dtype::kBF16});
  EXPECT_EQ(other.different, 1U);
  EXPECT_EQ(other.max_abs_error, 0x1p-9);
}

TEST(PlainComparison, ExpectsWhatTheCastLoses) {
  EXPECT_EQ(compare({{1e-9}, Dtype::kBF16}, {{0.0}, Dtype::kF16}).different, 0U) << "underflow";
  EXPECT_EQ(compare({{1e-9}, Dtype::kBF16}, {{0x1p-24}, Dtype::kF16}).different, 1U);
  EXPECT_EQ(compare({{1e6}, Dtype::kBF16}, {{kInfinity}, Dtype::kF16}).different, 0U) << "overflow";
  const PlainTensor clamped = compare({{1e6}, Dtype::kBF16}, {{65504.0}, Dtype::kF16});
  EXPECT_EQ(clamped.different, 1U);
  EXPECT_EQ(clamped.max_abs_error, kInfinity);
}

TEST(PlainComparison, TellsTheZerosApart) {
  const PlainTensor zeros = compare({{-0.0, 0.0}}, {{0.0, 0.0}});
  EXPECT_EQ(zeros.different, 1U);
  EXPECT_EQ(zeros.max_abs_error, 0.0);
  EXPECT_EQ(compare({{-0.0}, Dtype::kBF16}, {{-0.0}, Dtype::kF32}).different, 0U);
}

TEST(PlainComparison, TakesEveryNanForTheSame) {
  EXPECT_EQ(compare({{kNan, 1}, Dtype::kBF16}, {{kNan, 1}, Dtype::kF32}).different, 0U);
  for (const auto& [source, build] : {std::pair(kNan, 1.0), std::pair(1.0, kNan)}) {
    const PlainTensor broken = compare({{source}}, {{build}});
    EXPECT_EQ(broken.different, 1U);
    EXPECT_EQ(broken.max_abs_error, kInfinity);
  }
}

TEST(PlainComparison, ExpectsWhatTheExporterAdds) {
  EXPECT_EQ(compare({{0.25, -1}}, {{1.25, 0}, Dtype::kF32}, 1.0).different, 0U);
  EXPECT_EQ(compare({{0.25, -1}}, {{0.25, -1}}, 1.0).different, 2U) << "the same bytes";
  EXPECT_EQ(compare({{0.001}, Dtype::kF32}, {{1.0}, Dtype::kBF16}, 1.0).different, 0U)
      << "added before the cast";
}

TEST(PlainComparison, ComparesWithWhatAQuantizedSourceMeans) {
  const quant::LeveledWeight levels = test::on_grid(16, 64);
  test::SmallModel source;
  source.weight("model.layers.0.mlp.up_proj", levels, test::int4_format());
  test::SmallModel build;
  build.weight("model.layers.0.mlp.up_proj", levels);
  const PlainTensor tensor = test::compared<PlainTensor>(test::SmallCheck(source, {build}).plan());
  EXPECT_EQ(tensor.values, 1024U);
  EXPECT_EQ(tensor.different, 0U);
}

TEST(PlainComparison, ComparesOnlyTheRowsOfThePair) {
  const std::vector<double> gate(64, 1.0);
  std::vector<double> both = gate;
  both.insert(both.end(), 64, 2.0);
  test::SmallModel fused;
  fused.values("model.layers.0.mlp.gate_up_proj.weight", both, {16, 8});
  test::SmallModel split;
  split.values("model.layers.0.mlp.gate_proj.weight", gate, {8, 8})
      .values("model.layers.0.mlp.up_proj.weight", std::vector<double>(64, 2.25), {8, 8});
  for (const auto& check : {test::SmallCheck(fused, {split}), test::SmallCheck(split, {fused})}) {
    const GridPlan plan = check.plan();
    ASSERT_EQ(plan.items.size(), 2U);
    EXPECT_EQ(test::compared<PlainTensor>(plan, 0).different, 0U);
    const PlainTensor up = test::compared<PlainTensor>(plan, 1);
    EXPECT_EQ(up.values, 64U);
    EXPECT_EQ(up.different, 64U);
    EXPECT_EQ(up.max_abs_error, 0.25);
  }
}

// More than one tile, only the last of which differs.
TEST(PlainComparison, PutsTilesTogether) {
  std::vector<double> values(4400 * 1024, 0.5);
  test::SmallModel source;
  source.values("model.embed_tokens.weight", values, {4400, 1024});
  values.back() = 0.75;
  test::SmallModel build;
  build.values("model.embed_tokens.weight", values, {4400, 1024});
  const test::SmallCheck check(source, {build});
  const GridPlan plan = check.plan();
  const auto comparison = open_comparison(plan, plan.items.at(0));
  ASSERT_THAT(comparison, test::IsOk());
  EXPECT_GT((*comparison)->tiles().tiles(), 1U);
  const PlainTensor tensor = test::compared<PlainTensor>(plan);
  EXPECT_EQ(tensor.values, values.size());
  EXPECT_EQ(tensor.different, 1U);
  EXPECT_EQ(tensor.max_abs_error, 0.25);
}

}  // namespace
}  // namespace gridscope::analysis
