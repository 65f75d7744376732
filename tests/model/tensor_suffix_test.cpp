#include "gridscope/model/tensor_suffix.hpp"

#include <gtest/gtest.h>

namespace gridscope::model {
namespace {

void expect_split(std::string_view name, std::string_view module, Suffix suffix) {
  const SplitName split = split_suffix(name);
  EXPECT_EQ(split.module, module) << name;
  EXPECT_EQ(split.suffix, suffix) << name;
}

TEST(TensorSuffix, SplitsAtTheLastDot) {
  expect_split("model.norm.weight", "model.norm", Suffix::kWeight);
  expect_split("a.q_proj.weight_packed", "a.q_proj", Suffix::kWeightPacked);
  expect_split("a.q_proj.weight_scale_2", "a.q_proj", Suffix::kWeightScale2);
  expect_split("a.q_proj.g_idx", "a.q_proj", Suffix::kGroupIndex);
  expect_split("layers.0.attention.wq.qscale_weight", "layers.0.attention.wq",
               Suffix::kWeightScale);
  expect_split("layers.0.attention.wq.qscale_act", "layers.0.attention.wq", Suffix::kActivation);
  expect_split("a.self_attn.k_scale", "a.self_attn", Suffix::kActivation);
}

TEST(TensorSuffix, KnowsWhatBitsandbytesHangsBelowTheWeight) {
  expect_split("a.fc.weight.absmax", "a.fc", Suffix::kAbsmax);
  expect_split("a.fc.weight.quant_state.bitsandbytes__nf4", "a.fc", Suffix::kQuantState);
  expect_split("a.fc.weight.nested_quant_map", "a.fc", Suffix::kNestedQuantMap);
  expect_split("a.fc.weight_absmax", "a.fc", Suffix::kAbsmax);
  expect_split("a.fc.weight.other", "a.fc.weight.other", Suffix::kNone);
}

TEST(TensorSuffix, SplitsStackedExpertsAtTheUnderscore) {
  expect_split("e.gate_up_proj_blocks", "e.gate_up_proj", Suffix::kBlocks);
  expect_split("e.down_proj_weight_scale", "e.down_proj", Suffix::kWeightScale);
  expect_split("e.down_proj_weight_scale_2", "e.down_proj", Suffix::kWeightScale2);
  expect_split("e.down_proj_pre_quant_scale", "e.down_proj", Suffix::kPreQuantScale);
  expect_split("e.gate_up_proj_output_scale", "e.gate_up_proj", Suffix::kActivation);
  expect_split("e.down_proj_bias", "e.down_proj", Suffix::kBias);
  expect_split("e.gate_up_proj", "e.gate_up_proj", Suffix::kNone);
  expect_split("vision_tower.std_scale", "vision_tower.std_scale", Suffix::kNone);
}

TEST(TensorSuffix, LeavesOtherNamesWhole) {
  expect_split("layers.0.layer_scalar", "layers.0.layer_scalar", Suffix::kNone);
  expect_split("weight", "weight", Suffix::kNone);
  expect_split(".weight", ".weight", Suffix::kNone);
  expect_split("", "", Suffix::kNone);
}

TEST(TensorSuffix, WritesASuffixAsFormatsDo) {
  EXPECT_EQ(suffix_text(Suffix::kWeightPacked), "weight_packed");
  EXPECT_EQ(suffix_text(Suffix::kScb), "SCB");
  EXPECT_EQ(suffix_text(Suffix::kQuantState), "weight_quant_state");
  EXPECT_EQ(suffix_text(Suffix::kNone), "");
}

}  // namespace
}  // namespace gridscope::model
