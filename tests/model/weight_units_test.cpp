#include "gridscope/model/weight_units.hpp"

#include <gmock/gmock.h>

#include "support/matchers.hpp"

namespace gridscope::model {
namespace {

using test::Fails;
using test::IsOk;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Weight weight(std::string canonical, std::vector<std::uint64_t> shape) {
  return {.name = "model." + canonical,
          .canonical = std::move(canonical),
          .spec = {},
          .shape = std::move(shape)};
}

WeightSides split(std::vector<Weight>& source, std::vector<Weight>& build,
                  GateUpOrder order = GateUpOrder::kHalves) {
  auto sides = split_alike(source, build, order);
  EXPECT_THAT(sides, IsOk());
  return sides ? *std::move(sides) : WeightSides();
}

std::vector<std::string> names(const WeightSide& side) {
  std::vector<std::string> all;
  for (const auto& [name, unit] : side.units) all.push_back(name);
  return all;
}

TEST(WeightUnits, LeavesWholeWhatBothSidesStoreAlike) {
  std::vector<Weight> source = {weight("layers.0.experts.gate_up_proj", {2, 8, 4}),
                                weight("layers.0.self_attn.qkv_proj", {12, 4})};
  std::vector<Weight> build = source;
  const WeightSides sides = split(source, build);
  EXPECT_THAT(names(sides.source),
              ElementsAre("layers.0.experts.gate_up_proj", "layers.0.self_attn.qkv_proj"));
  EXPECT_EQ(sides.source.units.begin()->second.rows, (RowSelection{.count = 16}));
}

TEST(WeightUnits, TakesStacksOfFusedProjectionsApart) {
  std::vector<Weight> source = {weight("layers.0.experts.gate_up_proj", {2, 8, 4})};
  std::vector<Weight> build;
  for (const char* name : {"0.gate_proj", "0.up_proj", "1.gate_proj", "1.up_proj"}) {
    build.push_back(weight(std::string("layers.0.experts.") + name, {4, 4}));
  }
  const WeightSides sides = split(source, build);
  EXPECT_EQ(names(sides.source), names(sides.build));
  const WeightUnit& up = sides.source.units.find("layers.0.experts.1.up_proj")->second;
  EXPECT_EQ(up.rows, (RowSelection{.first = 12, .count = 4}));
  EXPECT_EQ(up.label, "[1].up");
  const WeightSides turned = split(build, source);
  EXPECT_EQ(names(turned.source), names(turned.build));
}

TEST(WeightUnits, KnowsAlternatingRows) {
  std::vector<Weight> source = {weight("layers.0.experts.gate_up_proj", {2, 8, 4}),
                                weight("layers.0.experts.gate_up_proj.bias", {2, 8, 1})};
  std::vector<Weight> build = {weight("layers.0.experts.gate_proj", {2, 4, 4}),
                               weight("layers.0.experts.up_proj", {2, 4, 4}),
                               weight("layers.0.experts.gate_proj.bias", {2, 4, 1}),
                               weight("layers.0.experts.up_proj.bias", {2, 4, 1})};
  const WeightSides sides = split(source, build, GateUpOrder::kAlternating);
  EXPECT_EQ(names(sides.source), names(sides.build));
  EXPECT_EQ(sides.source.units.find("layers.0.experts.1.up_proj")->second.rows,
            (RowSelection{.first = 9, .count = 4, .stride = 2}));
  EXPECT_EQ(sides.source.units.find("layers.0.experts.0.gate_proj.bias")->second.rows,
            (RowSelection{.first = 0, .count = 4, .stride = 2}));
  EXPECT_EQ(sides.build.units.find("layers.0.experts.1.up_proj")->second.rows,
            (RowSelection{.first = 4, .count = 4}));
}

TEST(WeightUnits, CutsFusedAttentionWhereTheOtherSideDoes) {
  std::vector<Weight> source = {weight("layers.0.self_attn.q_proj", {8, 4}),
                                weight("layers.0.self_attn.k_proj", {2, 4}),
                                weight("layers.0.self_attn.v_proj", {2, 4})};
  std::vector<Weight> build = {weight("layers.0.self_attn.qkv_proj", {12, 4})};
  const WeightSides sides = split(source, build);
  EXPECT_EQ(names(sides.source), names(sides.build));
  const WeightUnit& values = sides.build.units.find("layers.0.self_attn.v_proj")->second;
  EXPECT_EQ(values.rows, (RowSelection{.first = 10, .count = 2}));
  EXPECT_EQ(values.label, ".v");
}

TEST(WeightUnits, LeavesFusedAttentionWholeWhereTheRowsDoNotAddUp) {
  std::vector<Weight> source = {weight("layers.0.self_attn.q_proj", {8, 4}),
                                weight("layers.0.self_attn.k_proj", {2, 4}),
                                weight("layers.0.self_attn.v_proj", {3, 4})};
  std::vector<Weight> build = {weight("layers.0.self_attn.qkv_proj", {12, 4})};
  EXPECT_THAT(names(split(source, build).build), ElementsAre("layers.0.self_attn.qkv_proj"));
  source.pop_back();
  source.pop_back();
  EXPECT_THAT(names(split(source, build).build), ElementsAre("layers.0.self_attn.qkv_proj"));
}

TEST(WeightUnits, LeavesWholeWhatTheOtherSideDoesNotKnow) {
  std::vector<Weight> source = {weight("layers.0.experts.gate_up_proj", {2, 8, 4})};
  std::vector<Weight> build = {weight("norm", {4})};
  EXPECT_THAT(names(split(source, build).source), ElementsAre("layers.0.experts.gate_up_proj"));
}

TEST(WeightUnits, LearnsFlatShapesFromTheOtherSide) {
  std::vector<Weight> source = {weight("layers.0.mlp.gate_proj", {6, 5}),
                                weight("layers.0.mlp.up_proj", {6, 5})};
  std::vector<Weight> build = {weight("layers.0.mlp.gate_up_proj", {60})};
  build[0].is_flat = true;
  const WeightSides sides = split(source, build);
  EXPECT_EQ(names(sides.source), names(sides.build));
  EXPECT_EQ(sides.build.extents[0].rows, 12U);
  EXPECT_EQ(sides.build.extents[0].columns, 5U);
  build[0].shape = {62};
  EXPECT_EQ(split(source, build).build.extents[0].columns, 0U);
}

TEST(WeightUnits, RefusesTwoWeightsOfOneName) {
  std::vector<Weight> source = {weight("norm", {4}), weight("norm", {4})};
  source[1].name = "language_model.norm";
  std::vector<Weight> build;
  EXPECT_THAT(split_alike(source, build, GateUpOrder::kHalves),
              Fails(ErrorCode::kInvalidArgument,
                    AllOf(HasSubstr("model.norm"), HasSubstr("language_model.norm"))));
  std::vector<Weight> both = {weight("layers.0.experts.down_proj", {2, 8, 4}),
                              weight("layers.0.experts.1.down_proj", {8, 4})};
  std::vector<Weight> single = {weight("layers.0.experts.0.down_proj", {8, 4})};
  EXPECT_THAT(split_alike(both, single, GateUpOrder::kHalves),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("down_proj[1]")));
}

}  // namespace
}  // namespace gridscope::model
