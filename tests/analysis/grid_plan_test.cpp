#include "gridscope/analysis/grid_plan.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>

#include "analysis/small_models.hpp"

namespace gridscope::analysis {
namespace {

using test::Fails;
using test::SmallCheck;
using test::SmallModel;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::array kModules = {"self_attn.q_proj", "self_attn.o_proj", "mlp.up_proj",
                                 "mlp.down_proj"};

// `layers` layers of four projections and a norm, as plain weights or as int4 codes. No data is
// looked at.
SmallModel model_of(std::uint64_t layers, const std::string& prefix, quant::Scheme scheme) {
  SmallModel model;
  for (std::uint64_t layer = 0; layer < layers; ++layer) {
    const std::string base = prefix + "layers." + std::to_string(layer) + ".";
    for (const char* const module : kModules) {
      const std::string name = base + module;
      if (scheme == quant::Scheme::kPlain) {
        model.tensors.tensor(name + ".weight", Dtype::kBF16, {16, 64});
        continue;
      }
      model.tensors.tensor(name + ".weight_packed", Dtype::kI32, {16, 8})
          .tensor(name + ".weight_scale", Dtype::kBF16, {16, 2})
          .tensor(name + ".weight_shape", Dtype::kI64, {2});
    }
    model.tensors.tensor(base + "input_layernorm.weight", Dtype::kBF16, {64});
  }
  return model;
}

SmallModel source_of(std::uint64_t layers) {
  return model_of(layers, "model.language_model.", quant::Scheme::kPlain);
}
SmallModel build_of(std::uint64_t layers) {
  return model_of(layers, "model.", quant::Scheme::kCtPackQuantized);
}

std::vector<std::string> names(const GridPlan& plan, std::uint32_t build = 0) {
  std::vector<std::string> all;
  for (const GridItem& item : plan.items) {
    if (item.build == build) all.push_back(pair_of(plan, item).name);
  }
  return all;
}

std::set<std::string> quantized_sources(const GridPlan& plan, std::uint32_t build) {
  std::set<std::string> all;
  for (const GridItem& item : plan.items) {
    if (item.build != build || item.kind == GridItem::Kind::kPlain) continue;
    all.insert(pair_of(plan, item).source_name);
  }
  return all;
}

std::vector<std::uint32_t> all_items(const GridPlan& plan) {
  std::vector<std::uint32_t> all(plan.items.size());
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

// ---- selection ----------------------------------------------------------------------------------

TEST(GridPlan, TakesEverythingInTheOrderOfTheReport) {
  const GridPlan plan = SmallCheck(source_of(1), {build_of(1), build_of(1)}).plan();
  ASSERT_THAT(plan.items, SizeIs(10));
  EXPECT_THAT(names(plan),
              ElementsAre("model.layers.0.mlp.down_proj", "model.layers.0.mlp.up_proj",
                          "model.layers.0.self_attn.o_proj", "model.layers.0.self_attn.q_proj",
                          "model.layers.0.input_layernorm"));
  EXPECT_EQ(plan.items[3].kind, GridItem::Kind::kQuantized);
  EXPECT_EQ(plan.items[4].kind, GridItem::Kind::kPlain);
  EXPECT_EQ(plan.items[4].build, 0U);
  EXPECT_EQ(plan.items[5].build, 1U);
  EXPECT_EQ(plan.selection, "");
}

TEST(GridPlan, TakesGlobsOfEitherName) {
  const SmallCheck check(source_of(2), {build_of(2)});
  EXPECT_THAT(names(check.plan({.globs = {"*.1.mlp.up_proj"}})),
              ElementsAre("model.layers.1.mlp.up_proj"));
  const GridPlan both =
      check.plan({.globs = {"model.layers.0.*norm", "model.language_model.layers.1.mlp.*"}});
  EXPECT_THAT(names(both), ElementsAre("model.layers.1.mlp.down_proj", "model.layers.1.mlp.up_proj",
                                       "model.layers.0.input_layernorm"));
  EXPECT_EQ(both.selection,
            R"(weights named "model.layers.0.*norm" or "model.language_model.layers.1.mlp.*")");
}

TEST(GridPlan, TakesGlobsOfStoredTensors) {
  const SmallCheck check(source_of(2), {build_of(2)});
  EXPECT_THAT(names(check.plan({.globs = {"model.layers.1.mlp.up_proj.weight_packed"}})),
              ElementsAre("model.layers.1.mlp.up_proj"));
  EXPECT_THAT(names(check.plan({.globs = {"*.0.self_attn.q_proj.weight_scale"}})),
              ElementsAre("model.layers.0.self_attn.q_proj"));
  EXPECT_THAT(names(check.plan({.globs = {"model.language_model.layers.1.mlp.up_proj.weight"}})),
              ElementsAre("model.layers.1.mlp.up_proj"));
  EXPECT_THAT(names(check.plan({.globs = {"*.0.input_layernorm.weight"}})),
              ElementsAre("model.layers.0.input_layernorm"));
}

// The source has one stack where the build has a projection for each expert; a bias stands in the
// module of its weight and is none of its tensors.
TEST(GridPlan, TakesGlobsOfStacksAndOfBiasesByThemselves) {
  const std::string mlp = "model.layers.0.mlp.";
  SmallModel source;
  source.tensors.tensor(mlp + "experts.gate_up_proj", Dtype::kBF16, {2, 32, 64})
      .tensor(mlp + "router.weight", Dtype::kBF16, {2, 64})
      .tensor(mlp + "router.bias", Dtype::kBF16, {2});
  SmallModel build;
  for (const std::string expert : {"0", "1"}) {
    for (const char* const projection : {".gate_proj", ".up_proj"}) {
      build.tensors.tensor(mlp + "experts." + expert + projection + ".weight", Dtype::kBF16,
                           {16, 64});
    }
  }
  build.tensors.tensor(mlp + "router.weight", Dtype::kBF16, {2, 64})
      .tensor(mlp + "router.bias", Dtype::kBF16, {2});
  const SmallCheck check(source, {build});
  EXPECT_THAT(names(check.plan({.globs = {"*.experts.gate_up_proj"}})), SizeIs(4));
  EXPECT_THAT(names(check.plan({.globs = {"*.router.bias"}})), ElementsAre(mlp + "router.bias"));
  EXPECT_THAT(names(check.plan({.globs = {"*.router.weight"}})), ElementsAre(mlp + "router"));
}

TEST(GridPlan, RefusesAGlobThatNamesNothing) {
  const SmallCheck check(source_of(1), {build_of(1)});
  EXPECT_THAT(check.try_plan({.globs = {"*q_proj", "*q_porj"}}),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("is named \"*q_porj\"")));
  EXPECT_THAT(check.try_plan({.globs = {"[a"}}),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("--tensor")));
}

// What is not compared at all would be called exact.
TEST(GridPlan, RefusesABuildOfWhichNothingIsCompared) {
  const SmallModel other = model_of(1, "other.", quant::Scheme::kCtPackQuantized);
  EXPECT_THAT(SmallCheck(source_of(1), {build_of(1), other}).try_plan(),
              Fails(ErrorCode::kInvalidArgument,
                    HasSubstr("\"build 1\" has no weight in common with the source")));
  const SmallCheck check(source_of(2), {build_of(2), build_of(1)});
  EXPECT_THAT(check.try_plan({.globs = {"*.1.mlp.up_proj"}}),
              Fails(ErrorCode::kInvalidArgument,
                    AllOf(HasSubstr("build 1"), HasSubstr("*.1.mlp.up_proj"))));
}

TEST(GridPlan, NamesTheShapesOfABuildInWhichAllDiffer) {
  SmallModel narrow;
  narrow.tensors.tensor("model.layers.0.mlp.up_proj.weight", Dtype::kBF16, {16, 32})
      .tensor("model.layers.0.input_layernorm.weight", Dtype::kBF16, {32});
  EXPECT_THAT(SmallCheck(source_of(1), {narrow}).try_plan(),
              Fails(ErrorCode::kInvalidArgument,
                    AllOf(HasSubstr("\"build 0\" has no weight that can be compared"),
                          HasSubstr("2 weights have another shape"), HasSubstr("[32]"),
                          HasSubstr("[64]"))));
  SmallModel obstructed;
  obstructed.tensors.tensor("model.layers.0.mlp.up_proj.trellis", Dtype::kI16, {4, 4, 64});
  EXPECT_THAT(SmallCheck(source_of(1), {obstructed}).try_plan(),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("1 weight cannot be compared")));
}

TEST(GridPlan, TakesAsManyAsTheSampleSays) {
  const SmallCheck check(source_of(4), {build_of(4)});
  const auto quantized = [&](const GridSelection& selection) {
    return quantized_sources(check.plan(selection), 0).size();
  };
  EXPECT_EQ(quantized({.sample_count = 5}), 5U);
  EXPECT_EQ(quantized({.sample_count = 1000}), 16U);
  EXPECT_EQ(quantized({.sample_fraction = 0.5}), 8U);
  EXPECT_EQ(quantized({.sample_fraction = 0.01}), 1U);
  EXPECT_EQ(quantized({.sample_fraction = 1.0}), 16U);
  EXPECT_EQ(quantized({.globs = {"*mlp*"}, .sample_fraction = 0.25}), 2U);
}

TEST(GridPlan, DescribesTheSelectionByWhatWasTaken) {
  const SmallCheck check(source_of(4), {build_of(4)});
  const auto selection = [&](const GridSelection& wanted) { return check.plan(wanted).selection; };
  EXPECT_EQ(selection({.sample_count = 5}),
            "a sample of 5 of 16 quantized weights and 4 of 4 plain weights, spread over layers "
            "and roles");
  EXPECT_EQ(
      selection({.globs = {"*.0.*"}, .sample_count = 1}),
      "weights named \"*.0.*\", a sample of 1 of 4 quantized weights and 1 of 1 plain weight, "
      "spread over layers and roles");
  EXPECT_EQ(selection({.globs = {"*mlp*"}, .sample_fraction = 0.25}),
            "weights named \"*mlp*\", a sample of 2 of 8 quantized weights, spread over layers and "
            "roles");
  EXPECT_EQ(selection({.globs = {"*mlp*"}, .sample_fraction = 0.999}), "weights named \"*mlp*\"");
  EXPECT_EQ(selection({.sample_fraction = 0.999}), "");
  EXPECT_EQ(selection({.sample_count = 16}), "");
  EXPECT_EQ(selection({.globs = {"*"}}), "");
  EXPECT_EQ(
      SmallCheck(source_of(1), {build_of(1), build_of(1)}).plan({.sample_count = 1}).selection,
      "a sample of 2 of 8 quantized weights and 2 of 2 plain weights of all builds, spread "
      "over layers and roles");
}

TEST(GridPlan, RefusesASampleOfNothing) {
  const SmallCheck check(source_of(1), {build_of(1)});
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(check.try_plan({.sample_count = 0}),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("no weights")));
  for (const double fraction : {0.0, -0.5, 1.5, kNan}) {
    EXPECT_THAT(check.try_plan({.sample_fraction = fraction}),
                Fails(ErrorCode::kInvalidArgument, HasSubstr("sample")));
  }
}

TEST(GridPlan, SpreadsASampleOverLayersAndRoles) {
  const SmallCheck check(source_of(6), {build_of(6)});
  const GridPlan plan = check.plan({.sample_count = 12});
  std::set<std::tuple<std::uint32_t, model::Role>> seen;
  for (const GridItem& item : plan.items) {
    if (item.kind == GridItem::Kind::kPlain) continue;
    const model::NameInfo& info = plan.source.weights[pair_of(plan, item).source].info;
    seen.emplace(info.layer.value(), info.role);
  }
  EXPECT_EQ(seen.size(), 12U) << "one of each layer and role";
}

TEST(GridPlan, DrawsTheSameSampleOfEveryBuildInAnyOrder) {
  const SmallModel renamed = model_of(6, "language_model.model.", quant::Scheme::kCtPackQuantized);
  const GridSelection selection{.sample_count = 7};
  const GridPlan plan = SmallCheck(source_of(6), {build_of(6), renamed}).plan(selection);
  const GridPlan turned = SmallCheck(source_of(6), {renamed, build_of(6)}).plan(selection);
  const std::set<std::string> sample = quantized_sources(plan, 0);
  EXPECT_THAT(sample, SizeIs(7));
  EXPECT_EQ(quantized_sources(plan, 1), sample);
  EXPECT_EQ(quantized_sources(turned, 0), sample);
  EXPECT_EQ(quantized_sources(turned, 1), sample);
}

TEST(GridPlan, KeepsASmallerSampleWithinALargerOne) {
  const SmallCheck check(source_of(6), {build_of(6)});
  const std::set<std::string> few = quantized_sources(check.plan({.sample_count = 5}), 0);
  const std::set<std::string> more = quantized_sources(check.plan({.sample_count = 15}), 0);
  EXPECT_TRUE(std::ranges::includes(more, few));
}

TEST(GridPlan, LeavesWeightsWithoutNumbersToTheFindings) {
  SmallModel source = source_of(1);
  SmallModel build = build_of(1);
  for (SmallModel* model : {&source, &build}) {
    model->tensors.tensor("model.empty.weight", Dtype::kBF16, {0, 64}, {});
  }
  const GridPlan plan = SmallCheck(source, {build}).plan();
  EXPECT_THAT(plan.items, SizeIs(5));
  ASSERT_THAT(plan.builds[0].matching.findings, SizeIs(1));
  EXPECT_EQ(plan.builds[0].matching.findings[0].code, "WEIGHT_NOT_COMPARABLE");
}

// ---- shards -------------------------------------------------------------------------------------

// Weights of very different sizes.
SmallCheck uneven() {
  SmallModel source;
  for (std::uint64_t i = 0; i < 23; ++i) {
    source.tensors.tensor("model.layers." + std::to_string(i) + ".mlp.up_proj.weight", Dtype::kBF16,
                          {16 + 40 * (i % 7), 64});
  }
  return {source, {source}};
}

TEST(ItemsOf, DealsEveryItemToOneShard) {
  const SmallCheck check = uneven();
  const GridPlan plan = check.plan();
  for (const std::uint64_t count : {1U, 2U, 3U, 7U, 30U}) {
    std::vector<std::uint32_t> all;
    for (std::uint64_t index = 1; index <= count; ++index) {
      const auto items = items_of(plan, {.index = index, .count = count});
      EXPECT_TRUE(std::ranges::is_sorted(items));
      EXPECT_EQ(items, items_of(plan, {.index = index, .count = count}));
      all.insert(all.end(), items.begin(), items.end());
    }
    std::ranges::sort(all);
    EXPECT_EQ(all, all_items(plan)) << count;
  }
}

TEST(ItemsOf, GivesEveryShardAboutAsManyBytes) {
  const SmallCheck check = uneven();
  const GridPlan plan = check.plan();
  std::uint64_t largest_item = 0;
  for (const std::uint32_t item : all_items(plan)) {
    largest_item = std::max(largest_item, cost_of(plan, std::span(&item, 1)).bytes);
  }
  std::vector<std::uint64_t> loads;
  for (std::uint64_t index = 1; index <= 4; ++index) {
    loads.push_back(cost_of(plan, items_of(plan, {.index = index, .count = 4})).bytes);
  }
  const auto [least, most] = std::ranges::minmax(loads);
  EXPECT_LE(most - least, largest_item);
  EXPECT_GT(least, 0U);
}

TEST(ItemsOf, LeavesShardsEmptyThatAreTooMany) {
  const SmallCheck check(source_of(1), {build_of(1)});
  const GridPlan plan = check.plan();
  EXPECT_THAT(items_of(plan, {.index = 5, .count = 6}), SizeIs(1));
  EXPECT_THAT(items_of(plan, {.index = 6, .count = 6}), IsEmpty());
}

// ---- cost ---------------------------------------------------------------------------------------

TEST(CostOf, CountsWhatWillBeRead) {
  const SmallCheck check(source_of(1), {build_of(1)});
  const GridPlan plan = check.plan();
  const GridCost cost = cost_of(plan, all_items(plan));
  EXPECT_EQ(cost.tensors, 5U);
  EXPECT_EQ(cost.weights, 4U * 16 * 64 + 64);
  EXPECT_EQ(cost.tile_reads, 10U);
  EXPECT_EQ(cost.bytes, 4U * 16 * (64 * 2 + 64 / 2 + 2 * 2) + 64U * 4);
  EXPECT_EQ(cost_of(plan, {}).bytes, 0U);
}

// ---- fingerprint --------------------------------------------------------------------------------

class Fingerprint : public ::testing::Test {
 protected:
  [[nodiscard]] std::string of_plan(const GridSelection& selection = {}) const {
    return check.plan(selection).fingerprint;
  }

  SmallCheck check{source_of(3), {build_of(3)}};
  std::string before = of_plan();
};

TEST_F(Fingerprint, IsTheSameForTheSameCheck) {
  EXPECT_EQ(of_plan(), before);
  EXPECT_EQ(SmallCheck(source_of(3), {build_of(3)}).plan().fingerprint, before);
}

TEST_F(Fingerprint, ChangesWithTheSelection) {
  EXPECT_NE(of_plan({.globs = {"*mlp*"}}), before);
  EXPECT_NE(of_plan({.sample_count = 3}), before);
  EXPECT_NE(of_plan({.sample_count = 3}), of_plan({.sample_count = 4}));
}

TEST_F(Fingerprint, ChangesWithEitherModel) {
  for (const std::size_t side : {0U, 1U}) {
    const store::RepositoryInfo info = check.checkpoint(side).repository;
    check.checkpoint(side).repository.commit = "0123abc";
    EXPECT_NE(of_plan(), before);
    check.checkpoint(side).repository = info;
    ++check.checkpoint(side).files[0].bytes;
    EXPECT_NE(of_plan(), before);
    --check.checkpoint(side).files[0].bytes;
    EXPECT_EQ(of_plan(), before);
    const auto source = check.checkpoint(side).files[0].source;
    check.checkpoint(side).files[0].source =
        io::make_memory_source({}, {.name = "model.safetensors", .version = "of yesterday"});
    EXPECT_NE(of_plan(), before);
    check.checkpoint(side).files[0].source = source;
  }
}

TEST_F(Fingerprint, ChangesWithTheBuildsAndTheirOrder) {
  const SmallModel other = build_of(2);
  const std::string two = SmallCheck(source_of(3), {build_of(3), other}).plan().fingerprint;
  EXPECT_NE(two, before);
  EXPECT_NE(SmallCheck(source_of(3), {other, build_of(3)}).plan().fingerprint, two);
}

// GPTQ v1 and v2 have the same tensors: only the configuration tells how to read them.
TEST_F(Fingerprint, ChangesWithHowTheWeightsAreToBeRead) {
  const auto gptq = [](const std::string& format) {
    SmallModel build;
    build.config =
        R"({"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32,
            "checkpoint_format": ")" +
        format + R"("}})";
    build.weight("model.layers.0.mlp.up_proj", test::on_grid(16, 64), test::gptq_format());
    return SmallCheck(source_of(1), {build}).plan().fingerprint;
  };
  EXPECT_EQ(gptq("gptq"), gptq("gptq"));
  EXPECT_NE(gptq("gptq"), gptq("gptq_v2"));
}

TEST_F(Fingerprint, ChangesWithWhatTheModelAddsToItsNorms) {
  model::Checkpoint gemma = check.checkpoint(0);
  gemma.config.model_type = "gemma3_text";
  const auto plan = plan_grid_check(test::side_of(gemma, "source"), {check.side(1)}, {});
  ASSERT_THAT(plan, test::IsOk());
  EXPECT_NE(plan->fingerprint, before);
}

}  // namespace
}  // namespace gridscope::analysis
