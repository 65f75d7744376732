// The report of all items, from results that are made up here: what is counted, how often, and what
// is said about it.

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "analysis/small_models.hpp"

namespace gridscope::analysis {
namespace {

using test::Fails;
using test::IsOk;
using test::SmallCheck;
using test::SmallModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::array kModules = {"self_attn.q_proj", "mlp.down_proj"};

// What the tensors are, so that loading has nothing to remark.
constexpr std::string_view kInt4Config = R"({"quantization_config": {
  "quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": {
    "targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "symmetric": true,
                                       "strategy": "group", "group_size": 32}}}}})";

SmallModel model_of(const test::Format& format, std::uint64_t layers = 2) {
  SmallModel model;
  if (format.like.scheme != quant::Scheme::kPlain) model.config = kInt4Config;
  for (std::uint64_t layer = 0; layer < layers; ++layer) {
    const std::string base = "model.layers." + std::to_string(layer) + ".";
    for (const char* const module : kModules)
      model.weight(base + module, test::on_grid(16, 64), format);
    model.norm(base + "input_layernorm", std::vector<double>(64, 1.0));
  }
  return model;
}

SourceGrid grid_of(std::uint64_t groups) {
  return {.groups = groups, .on_grid = groups};
}

// Of each pair a tensor that is exact, or a plain one that is the same.
GridItemResult fine_result(const GridPlan& plan, const GridItem& item) {
  const model::WeightPair& pair = pair_of(plan, item);
  const std::uint64_t weights = pair.build_rows.count * pair.columns;
  if (item.kind == GridItem::Kind::kPlain) {
    return PlainTensor{.name = pair.name, .source_name = pair.source_name, .values = weights};
  }
  GridTensor tensor{.name = pair.name,
                    .source_name = pair.source_name,
                    .format = "int4 g32",
                    .scale_dtype = "BF16",
                    .group_size = 32,
                    .source_grid = grid_of(weights / 32)};
  tensor.totals.sums.weights = tensor.totals.sums.values_identical = weights;
  return tensor;
}

GridResults fine_results(const GridPlan& plan) {
  GridResults results;
  for (std::uint32_t i = 0; i < plan.items.size(); ++i) {
    results.emplace(i, fine_result(plan, plan.items[i]));
  }
  return results;
}

GridReport assembled(const GridPlan& plan, const GridResults& results) {
  auto report = assemble_grid_report(plan, results);
  EXPECT_THAT(report, IsOk());
  return report ? *std::move(report) : GridReport();
}

std::vector<std::string> codes(const GridReport& report) {
  std::vector<std::string> all;
  for (const Finding& finding : report.findings) all.push_back(finding.code);
  return all;
}

const Finding* find(const GridReport& report, std::string_view code) {
  const auto found = std::ranges::find(report.findings, code, &Finding::code);
  return found == report.findings.end() ? nullptr : &*found;
}

class Assembly : public ::testing::Test {
 protected:
  // Items: down 0, q 0, down 1, q 1 (in order of name), norm 0, norm 1.
  GridTensor& tensor(std::uint32_t item) { return std::get<GridTensor>(results.at(item)); }
  PlainTensor& plain(std::uint32_t item) { return std::get<PlainTensor>(results.at(item)); }
  [[nodiscard]] GridReport report() const { return assembled(plan, results); }

  SmallCheck check{model_of(test::plain_format()), {model_of(test::int4_format())}};
  GridPlan plan = check.plan();
  GridResults results = fine_results(plan);
};

TEST_F(Assembly, PutsResultsInOrderAndAddsThemUp) {
  check.checkpoint(0).repository.commit = "aaa";
  check.checkpoint(1).repository.commit = "bbb";
  const GridReport made = report();
  EXPECT_EQ(made.source, "source");
  EXPECT_EQ(made.source_commit, "aaa");
  ASSERT_EQ(made.builds.size(), 1U);
  const GridBuild& build = made.builds[0];
  EXPECT_EQ(build.model, "build 0");
  EXPECT_EQ(build.commit, "bbb");
  EXPECT_EQ(build.format, "int4 g32");
  EXPECT_EQ(build.scale_dtype, "BF16");
  EXPECT_EQ(build.group_size, 32U);
  EXPECT_EQ(build.verdict, Verdict::kExact);
  ASSERT_EQ(build.tensors.size(), 4U);
  EXPECT_TRUE(std::ranges::is_sorted(build.tensors, {}, &GridTensor::name));
  EXPECT_EQ(build.totals.sums.weights, 4U * 1024);
  EXPECT_EQ(build.plain_compared, 2U);
  EXPECT_EQ(build.plain_identical, 2U);
  EXPECT_THAT(build.different, IsEmpty());
  EXPECT_EQ(build.coverage.matched, 6U);
  EXPECT_EQ(build.coverage.compared, 6U);
  EXPECT_FALSE(build.smoothing);
  EXPECT_EQ(made.source_grid, grid_of(4 * 32));
  EXPECT_THAT(codes(made), IsEmpty());
}

TEST_F(Assembly, SaysWhatWasReadByPlan) {
  const std::vector<std::uint32_t> all = {0, 1, 2, 3, 4, 5};
  const GridReport made = report();
  EXPECT_EQ(made.read_bytes, cost_of(plan, all).bytes);
  EXPECT_EQ(made.tile_reads, cost_of(plan, all).tile_reads);
}

TEST_F(Assembly, RefusesToGoWithoutAResult) {
  results.erase(3);
  EXPECT_THAT(assemble_grid_report(plan, results),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("model.layers.1.self_attn.q_proj")));
}

TEST_F(Assembly, ListsWhatIsLeftOver) {
  SmallModel more = model_of(test::plain_format());
  more.norm("model.norm", {1, 2});
  SmallModel other = model_of(test::int4_format());
  other.norm("model.layers.0.extra_norm", {1, 2});
  const SmallCheck uneven(more, {other});
  const GridPlan partial = uneven.plan({.globs = {"*q_proj"}});
  const GridReport made = assembled(partial, fine_results(partial));
  EXPECT_EQ(made.selection, "weights named \"*q_proj\"");
  EXPECT_EQ(made.builds[0].coverage.matched, 6U);
  EXPECT_EQ(made.builds[0].coverage.compared, 2U);
  EXPECT_THAT(made.builds[0].coverage.source_only, ElementsAre("model.norm"));
  EXPECT_THAT(made.builds[0].coverage.build_only, ElementsAre("model.layers.0.extra_norm"));
  EXPECT_THAT(codes(made), ElementsAre("BUILD_ONLY", "SOURCE_ONLY"));
}

TEST_F(Assembly, NamesTheTensorsOfEachVerdict) {
  tensor(0).verdict = Verdict::kCorrupt;
  tensor(1).verdict = Verdict::kDifferentModel;
  tensor(2).verdict = Verdict::kLevelsMoved;
  tensor(3).verdict = Verdict::kSameGrid;
  const GridReport made = report();
  EXPECT_EQ(made.builds[0].verdict, Verdict::kCorrupt);
  EXPECT_THAT(codes(made), ElementsAre("WEIGHT_CORRUPT", "WEIGHT_DIFFERS", "LEVELS_MOVED"));
  EXPECT_EQ(find(made, "WEIGHT_CORRUPT")->severity, Severity::kError);
  EXPECT_EQ(find(made, "WEIGHT_DIFFERS")->severity, Severity::kError);
  EXPECT_EQ(find(made, "LEVELS_MOVED")->severity, Severity::kNote);
  EXPECT_THAT(find(made, "LEVELS_MOVED")->message, HasSubstr("\"build 0\": 1 tensor with"));
  EXPECT_THAT(find(made, "LEVELS_MOVED")->tensors, ElementsAre(tensor(2).name));
}

TEST_F(Assembly, CountsAndNamesTheTensorsOfAFinding) {
  for (std::uint32_t item = 0; item < 4; ++item) tensor(item).verdict = Verdict::kLevelsMoved;
  const GridReport made = report();
  EXPECT_THAT(find(made, "LEVELS_MOVED")->message, HasSubstr("4 tensors with"));
  EXPECT_EQ(find(made, "LEVELS_MOVED")->tensor_count, 4U);
  EXPECT_EQ(find(made, "LEVELS_MOVED")->tensors.back(), tensor(3).name);
}

TEST_F(Assembly, ListsPlainTensorsThatDiffer) {
  plain(5).different = 3;
  plain(5).max_abs_error = 0.5;
  const GridReport made = report();
  EXPECT_EQ(made.builds[0].plain_compared, 2U);
  EXPECT_EQ(made.builds[0].plain_identical, 1U);
  ASSERT_EQ(made.builds[0].different.size(), 1U);
  EXPECT_EQ(made.builds[0].different[0], plain(5));
  EXPECT_THAT(codes(made), ElementsAre("PLAIN_DIFFERS"));
  EXPECT_EQ(find(made, "PLAIN_DIFFERS")->severity, Severity::kError);
  EXPECT_THAT(find(made, "PLAIN_DIFFERS")->tensors, ElementsAre(plain(5).name));
}

// ---- smoothing ----------------------------------------------------------------------------------

TensorSmoothing smoothing(TensorSmoothing::Evidence evidence, double low, double high) {
  TensorSmoothing found{.evidence = evidence, .min_factor = low, .max_factor = high};
  found.totals_after.sums.weights = 1024;
  found.totals_after.sums.values_identical = 1000;
  return found;
}

TEST_F(Assembly, TellsASmoothedNormFromAnEditedOne) {
  // Which item of the plan is the query of layer 0, and its norm.
  const auto is_query = [&](const GridItem& item) {
    return pair_of(plan, item).name == "model.layers.0.self_attn.q_proj";
  };
  const auto query =
      static_cast<std::uint32_t>(std::ranges::find_if(plan.items, is_query) - plan.items.begin());
  ASSERT_TRUE(pair_of(plan, plan.items[query]).norm);
  tensor(query).verdict = Verdict::kSmoothed;
  tensor(query).smoothing = smoothing(TensorSmoothing::Evidence::kNorm, 0.5, 3.0);
  plain(4).different = plain(5).different = 64;
  const GridReport made = report();
  EXPECT_THAT(codes(made), ElementsAre("PLAIN_DIFFERS", "NORM_SMOOTHED", "SMOOTHED"));
  EXPECT_THAT(find(made, "NORM_SMOOTHED")->tensors, ElementsAre("model.layers.0.input_layernorm"));
  EXPECT_EQ(find(made, "NORM_SMOOTHED")->severity, Severity::kNote);
  EXPECT_THAT(find(made, "PLAIN_DIFFERS")->tensors, ElementsAre("model.layers.1.input_layernorm"));
}

TEST_F(Assembly, SumsSmoothingUpWithTheOtherWeightsAsTheyAre) {
  tensor(1).smoothing = smoothing(TensorSmoothing::Evidence::kNorm, 0.5, 3.0);
  tensor(0).smoothing = smoothing(TensorSmoothing::Evidence::kColumns, 0.75, 4.0);
  plain(4).different = 64;
  const GridReport made = report();
  ASSERT_TRUE(made.builds[0].smoothing);
  const GridSmoothing& all = *made.builds[0].smoothing;
  EXPECT_EQ(all.tensors, 2U);
  EXPECT_EQ(all.norms, 1U) << "columns tell of no norm";
  EXPECT_EQ(all.min_factor, 0.5);
  EXPECT_EQ(all.max_factor, 4.0);
  EXPECT_EQ(all.totals_after.sums.weights, 4U * 1024);
  EXPECT_EQ(all.totals_after.sums.values_identical, 2U * 1000 + 2 * 1024);
}

TEST_F(Assembly, ExcusesNoScaleThatTheNormContradicts) {
  tensor(1).smoothing = smoothing(TensorSmoothing::Evidence::kAgainstNorm, 0.5, 3.0);
  const GridReport made = report();
  EXPECT_FALSE(made.builds[0].smoothing);
  EXPECT_THAT(codes(made), ElementsAre("SCALE_NOT_COMPENSATED"));
  EXPECT_THAT(find(made, "SCALE_NOT_COMPENSATED")->tensors, ElementsAre(tensor(1).name));
}

// A norm that two projections read.
class AssemblyOfReaders : public ::testing::Test {
 protected:
  static SmallModel model(const test::Format& format) {
    SmallModel made = model_of(format, 1);
    return made.weight("model.layers.0.self_attn.k_proj", test::on_grid(16, 64), format);
  }
  // With every weight whose name holds one of `smoothed` smoothed, and the norm different.
  [[nodiscard]] GridReport report(const std::vector<std::string>& smoothed,
                                  const GridSelection& selection = {}) const {
    const GridPlan plan = check.plan(selection);
    GridResults results = fine_results(plan);
    for (auto& [item, result] : results) {
      if (auto* plain = std::get_if<PlainTensor>(&result)) plain->different = 64;
      auto* tensor = std::get_if<GridTensor>(&result);
      const auto is_in_name = [&](const std::string& part) {
        return tensor->name.find(part) != std::string::npos;
      };
      if (tensor == nullptr || std::ranges::none_of(smoothed, is_in_name)) continue;
      tensor->smoothing = smoothing(TensorSmoothing::Evidence::kNorm, 0.5, 3.0);
    }
    return assembled(plan, results);
  }

  SmallCheck check{model(test::plain_format()), {model(test::int4_format())}};
};

TEST_F(AssemblyOfReaders, ExplainsANormWhenAllOfThemAreScaled) {
  EXPECT_NE(find(report({"q_proj", "k_proj"}), "NORM_SMOOTHED"), nullptr);
}

TEST_F(AssemblyOfReaders, CallsANormEditedWhenOneOfThemIsNot) {
  const GridReport made = report({"q_proj"});
  EXPECT_EQ(find(made, "NORM_SMOOTHED"), nullptr);
  EXPECT_NE(find(made, "PLAIN_DIFFERS"), nullptr);
  EXPECT_EQ(made.builds[0].verdict, Verdict::kSameGrid);
}

TEST_F(AssemblyOfReaders, LeavesANormOpenWhenNoneOfThemWasCompared) {
  const GridReport made = report({}, {.globs = {"*layernorm", "*down_proj"}});
  EXPECT_THAT(codes(made), ElementsAre("NORM_UNCHECKED"));
  EXPECT_EQ(find(made, "NORM_UNCHECKED")->severity, Severity::kWarning);
  EXPECT_EQ(made.builds[0].verdict, Verdict::kExact);
  EXPECT_NE(find(report({"k_proj"}, {.globs = {"*layernorm", "*k_proj"}}), "NORM_SMOOTHED"),
            nullptr);
}

// ---- the verdict of a build ---------------------------------------------------------------------

TEST_F(Assembly, IsNotExactWhenAPlainTensorDiffers) {
  plain(5).different = 3;
  EXPECT_EQ(report().builds[0].verdict, Verdict::kSameGrid);
  plain(5).max_abs_error = std::numeric_limits<double>::infinity();
  EXPECT_EQ(report().builds[0].verdict, Verdict::kCorrupt);
}

TEST_F(Assembly, IsCorruptWhenAWeightIsMissing) {
  SmallModel more = model_of(test::plain_format());
  more.weight("model.layers.0.mlp.up_proj", test::on_grid(16, 64));
  const SmallCheck uneven(more, {model_of(test::int4_format())});
  const GridPlan whole = uneven.plan();
  EXPECT_EQ(assembled(whole, fine_results(whole)).builds[0].verdict, Verdict::kCorrupt);
  const GridPlan part = uneven.plan({.globs = {"*q_proj"}});
  EXPECT_EQ(assembled(part, fine_results(part)).builds[0].verdict, Verdict::kExact);
}

TEST_F(Assembly, WarnsOfABuildThatIsNotQuantized) {
  const SmallCheck two(model_of(test::plain_format()), {model_of(test::plain_format())});
  const GridPlan plan_of_two = two.plan();
  GridResults made = fine_results(plan_of_two);
  GridReport same = assembled(plan_of_two, made);
  EXPECT_THAT(codes(same), ElementsAre("NOTHING_QUANTIZED"));
  EXPECT_EQ(same.builds[0].verdict, Verdict::kExact);
  std::get<PlainTensor>(made.begin()->second).different = 1;
  EXPECT_EQ(assembled(plan_of_two, made).builds[0].verdict, Verdict::kDifferentModel);
}

TEST_F(Assembly, NamesSourcesThatAreNotFinite) {
  tensor(2).totals.sums.source_non_finite = 1;
  EXPECT_THAT(codes(report()), ElementsAre("SOURCE_NOT_FINITE"));
}

// ---- each weight of the source once -------------------------------------------------------------

TEST_F(Assembly, CountsTheSourceOnceForSeveralBuilds) {
  const SmallCheck two(model_of(test::plain_format()),
                       {model_of(test::int4_format()), model_of(test::int4_format(), 1)});
  const GridPlan both = two.plan();
  EXPECT_EQ(assembled(both, fine_results(both)).source_grid, grid_of(4 * 32));
}

TEST_F(Assembly, CountsTheSourceOfAWeightThatIsCorruptInOneBuild) {
  const SmallCheck two(model_of(test::plain_format()),
                       {model_of(test::int4_format()), model_of(test::int4_format())});
  const GridPlan both = two.plan();
  GridResults made = fine_results(both);
  made[0] = corrupt_result(both, both.items[0], {.code = ErrorCode::kCorrupt, .message = "broken"});
  EXPECT_EQ(assembled(both, made).source_grid, grid_of(4 * 32));
}

TEST_F(Assembly, TellsUnknownLayoutsFromCorruptWeights) {
  const SmallCheck single(model_of(test::plain_format()), {model_of(test::int4_format())});
  const GridPlan one = single.plan();
  GridResults made = fine_results(one);
  made[0] = corrupt_result(one, one.items[0],
                           {.code = ErrorCode::kUnsupported, .message = "5-bit trellis"});
  const GridReport report = assembled(one, made);
  EXPECT_THAT(codes(report), ElementsAre("WEIGHT_UNSUPPORTED"));
  EXPECT_EQ(report.builds[0].verdict, Verdict::kCorrupt);
  EXPECT_EQ(report.builds[0].tensors[0].fault, "5-bit trellis");
}

TEST_F(Assembly, CountsFusedWeightsOnceHoweverBuildsCutThem) {
  const auto fused = [](const test::Format& format) {
    SmallModel model;
    model.weight("model.layers.0.mlp.gate_up_proj", test::on_grid(32, 64), format);
    return model;
  };
  SmallModel split;
  split.weight("model.layers.0.mlp.gate_proj", test::on_grid(16, 64), test::int4_format())
      .weight("model.layers.0.mlp.up_proj", test::on_grid(16, 64), test::int4_format());
  const SmallModel whole = fused(test::int4_format());
  for (const auto& builds :
       {std::vector{whole, split}, std::vector{split, whole}, std::vector{split, split}}) {
    const SmallCheck cut(fused(test::plain_format()), builds);
    const GridPlan parts = cut.plan();
    EXPECT_EQ(assembled(parts, fine_results(parts)).source_grid, grid_of(2 * 32));
  }
}

// ---- loading ------------------------------------------------------------------------------------

TEST_F(Assembly, PassesOnWhatLoadingFound) {
  check.checkpoint(1).findings = {
      {.code = "SHARD_MISSING",
       .severity = Severity::kError,
       .message = "one is not there",
       .remedy = ""},
      {.code = "INDEX_STALE", .severity = Severity::kNote, .message = "never mind", .remedy = ""}};
  const GridReport made = report();
  EXPECT_THAT(codes(made), ElementsAre("SHARD_MISSING"));
  EXPECT_EQ(made.findings[0].message, "\"build 0\": one is not there");
}

}  // namespace
}  // namespace gridscope::analysis
