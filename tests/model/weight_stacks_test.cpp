#include "gridscope/model/weight_stacks.hpp"

#include <gmock/gmock.h>

#include "model/weight_lists.hpp"

namespace gridscope::model {
namespace {

using quant::Companion;
using quant::WeightSpec;
using test::checkpoint_of;
using test::find_weight;
using test::names_of;
using test::SafetensorsBuilder;
using ::testing::ElementsAre;
using ::testing::SizeIs;

const StoredPlace& codes_of(const Weight& weight) {
  return weight.places[static_cast<std::size_t>(Companion::kCodes)].value();
}

TEST(WeightStacks, KeepsStacksOfOutputsByInputs) {
  const auto weights = list_weights(
      checkpoint_of(SafetensorsBuilder()
                        .tensor("model.layers.0.experts.gate_up_proj", Dtype::kBF16, {2, 12, 8})
                        .tensor("model.layers.0.experts.down_proj", Dtype::kBF16, {2, 8, 6})));
  ASSERT_THAT(weights, SizeIs(2));
  EXPECT_THAT(weights[1].shape, ElementsAre(2, 12, 8));
  EXPECT_EQ(weights[1].spec.order, WeightSpec::Order::kOutputMajor);
  EXPECT_EQ(weights[1].rows(), 24U);
}

TEST(WeightStacks, TakesStacksOfInputsByOutputsApart) {
  const Checkpoint checkpoint = checkpoint_of(
      SafetensorsBuilder()
          .tensor("model.layers.0.mlp.experts.down_proj", Dtype::kBF16, {2, 6, 8})
          .tensor("model.layers.0.mlp.experts.gate_up_proj", Dtype::kBF16, {2, 8, 12}));
  const auto weights = list_weights(checkpoint);
  ASSERT_THAT(names_of(weights), ElementsAre("model.layers.0.mlp.experts.down_proj[0]",
                                             "model.layers.0.mlp.experts.down_proj[1]",
                                             "model.layers.0.mlp.experts.gate_up_proj[0]",
                                             "model.layers.0.mlp.experts.gate_up_proj[1]"));
  const Weight& second = weights[3];
  EXPECT_EQ(second.canonical, "layers.0.experts.1.gate_up_proj");
  EXPECT_THAT(second.shape, ElementsAre(12, 8));
  EXPECT_THAT(second.spec.find(Companion::kCodes)->shape, ElementsAre(8, 12));
  EXPECT_EQ(second.spec.order, WeightSpec::Order::kInputMajor);
  EXPECT_EQ(codes_of(second).bytes, 2U * 8 * 12);
  EXPECT_EQ(codes_of(second).offset, codes_of(weights[2]).offset + 2 * 8 * 12);
}

// Codes [experts, inputs / 2, outputs], scales [experts, inputs / 16, outputs].
TEST(WeightStacks, TurnsStacksOfNvfp4WhoseInputsComeFirst) {
  const Checkpoint checkpoint = checkpoint_of(
      SafetensorsBuilder()
          .tensor("model.layers.0.mlp.experts.down_proj", Dtype::kU8, {3, 16, 8})
          .tensor("model.layers.0.mlp.experts.down_proj_weight_scale", Dtype::kF8E4M3, {3, 2, 8})
          .tensor("model.layers.0.mlp.experts.down_proj_weight_scale_2", Dtype::kF32, {}));
  const auto weights = list_weights(checkpoint);
  ASSERT_THAT(weights, SizeIs(3));
  const Weight& last = weights[2];
  EXPECT_EQ(last.canonical, "layers.0.experts.2.down_proj");
  EXPECT_EQ(last.spec.scheme, quant::Scheme::kModelOptNvfp4);
  EXPECT_THAT(last.shape, ElementsAre(8, 32));
  EXPECT_THAT(last.spec.find(Companion::kCodes)->shape, ElementsAre(16, 8));
  EXPECT_THAT(last.spec.find(Companion::kScale)->shape, ElementsAre(2, 8));
  EXPECT_EQ(last.spec.order, WeightSpec::Order::kInputMajor);
  EXPECT_EQ(codes_of(last).offset, codes_of(weights[0]).offset + 2 * 16 * 8);
}

TEST(WeightStacks, KeepsStacksOfNvfp4WhoseOutputsComeFirst) {
  const auto weights = list_weights(checkpoint_of(
      SafetensorsBuilder()
          .tensor("model.layers.0.mlp.experts.down_proj", Dtype::kU8, {3, 8, 16})
          .tensor("model.layers.0.mlp.experts.down_proj_weight_scale", Dtype::kF8E4M3, {3, 8, 2})
          .tensor("model.layers.0.mlp.experts.down_proj_weight_scale_2", Dtype::kF32, {3})));
  ASSERT_THAT(weights, SizeIs(1));
  EXPECT_THAT(weights[0].shape, ElementsAre(3, 8, 32));
  EXPECT_EQ(weights[0].spec.order, WeightSpec::Order::kOutputMajor);
}

TEST(WeightStacks, TellsTheOrderOfFp8StacksFromBothProjections) {
  const auto fp8 = [](test::Shape gate_up, test::Shape down) {
    return list_weights(checkpoint_of(
        SafetensorsBuilder()
            .tensor("model.layers.0.mlp.experts.down_proj", Dtype::kF8E4M3, std::move(down))
            .tensor("model.layers.0.mlp.experts.down_proj_weight_scale", Dtype::kF32, {})
            .tensor("model.layers.0.mlp.experts.gate_up_proj", Dtype::kF8E4M3, std::move(gate_up))
            .tensor("model.layers.0.mlp.experts.gate_up_proj_weight_scale", Dtype::kF32, {})));
  };
  for (const Weight& weight : fp8({2, 8, 12}, {2, 6, 8})) {
    EXPECT_EQ(weight.spec.order, WeightSpec::Order::kInputMajor) << weight.name;
    EXPECT_EQ(weight.rows(), weight.name.find("gate_up") == std::string::npos ? 8U : 12U);
  }
  for (const Weight& weight : fp8({2, 12, 8}, {2, 8, 6})) {
    EXPECT_EQ(weight.spec.order, WeightSpec::Order::kOutputMajor) << weight.name;
  }
}

TEST(WeightStacks, AsksTheModelWhereOneStackIsAlone) {
  const SafetensorsBuilder alone =
      SafetensorsBuilder().tensor("model.layers.0.mlp.experts.down_proj", Dtype::kBF16, {2, 6, 8});
  EXPECT_THAT(list_weights(checkpoint_of(alone, R"({"model_type": "gpt_oss"})")), SizeIs(2));
  EXPECT_THAT(list_weights(checkpoint_of(alone, R"({"model_type": "qwen3_moe"})")), SizeIs(1));
}

TEST(WeightStacks, SlicesTheCompanionsOfPackingsThatKnowNoStacks) {
  const auto weights = list_weights(checkpoint_of(
      SafetensorsBuilder()
          .tensor("model.layers.0.mlp.experts.down_proj.weight", Dtype::kF8E4M3, {3, 16, 8})
          .tensor("model.layers.0.mlp.experts.down_proj.weight_scale", Dtype::kF32, {3, 16, 1})));
  ASSERT_THAT(weights, SizeIs(3));
  EXPECT_EQ(weights[2].canonical, "layers.0.experts.2.down_proj");
  EXPECT_THAT(weights[2].spec.find(Companion::kScale)->shape, ElementsAre(16, 1));
  const auto& scale = weights[2].places[static_cast<std::size_t>(Companion::kScale)];
  const auto& first = weights[0].places[static_cast<std::size_t>(Companion::kScale)];
  ASSERT_TRUE(scale && first);
  EXPECT_EQ(scale->bytes, 64U);
  EXPECT_EQ(scale->offset, first->offset + 128);
  EXPECT_EQ(weights[2].spec.order, WeightSpec::Order::kOutputMajor);
}

TEST(WeightStacks, TurnsConv1dOfGpt2) {
  const SafetensorsBuilder tensors = SafetensorsBuilder()
                                         .tensor("h.0.attn.c_attn.weight", Dtype::kF32, {8, 24})
                                         .tensor("h.0.attn.c_proj.weight", Dtype::kF32, {8, 8})
                                         .tensor("wte.weight", Dtype::kF32, {10, 8});
  for (const char* config : {"{}", R"({"model_type": "gpt2"})"}) {
    const auto weights = list_weights(checkpoint_of(tensors, config));
    ASSERT_THAT(weights, SizeIs(3));
    EXPECT_THAT(weights[0].shape, ElementsAre(24, 8));
    EXPECT_EQ(weights[0].spec.order, WeightSpec::Order::kInputMajor);
    EXPECT_EQ(weights[1].spec.order, WeightSpec::Order::kInputMajor);
    EXPECT_EQ(weights[2].spec.order, WeightSpec::Order::kOutputMajor);
  }
  const auto linear = list_weights(checkpoint_of(tensors, R"({"model_type": "gpt_bigcode"})"));
  EXPECT_EQ(linear[0].spec.order, WeightSpec::Order::kOutputMajor);
}

}  // namespace
}  // namespace gridscope::model
