// Checkpoints whose names or layouts only one exporter or one model family has, matched with the
// usual ones.

#include <gmock/gmock.h>

#include "model/matchings.hpp"

namespace gridscope::model {
namespace {

using test::checkpoint_of;
using test::find_pair;
using test::match;
using test::names;
using test::plain;
using test::SafetensorsBuilder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// ---- ModelOpt's stacked experts -----------------------------------------------------------------

// Two experts with 64 inputs and 32 inner units, their scales named after the parameter.
enum class Order : std::uint8_t { kOutputsFirst, kInputsFirst };

SafetensorsBuilder nvfp4_experts(Order order) {
  SafetensorsBuilder builder;
  const auto add = [&](const char* projection, std::uint64_t outputs, std::uint64_t inputs) {
    const std::string name = std::string("model.layers.0.mlp.experts.") + projection;
    const auto shape = [&](std::uint64_t columns) {
      return order == Order::kOutputsFirst ? test::Shape{2, outputs, columns}
                                           : test::Shape{2, columns, outputs};
    };
    builder.tensor(name, Dtype::kU8, shape(inputs / 2))
        .tensor(name + "_weight_scale", Dtype::kF8E4M3, shape(inputs / 16))
        .tensor(name + "_weight_scale_2", Dtype::kF32, {})
        .tensor(name + "_input_scale", Dtype::kF32, {});
  };
  add("gate_up_proj", 64, 64);
  add("down_proj", 64, 32);
  return builder;
}

SafetensorsBuilder fp8_experts() {
  SafetensorsBuilder builder;
  const std::string experts = "model.layers.0.mlp.experts.";
  for (const auto& [name, shape] :
       {std::pair<const char*, test::Shape>("gate_up_proj", {2, 64, 64}),
        std::pair<const char*, test::Shape>("down_proj", {2, 32, 64})}) {
    builder.tensor(experts + name, Dtype::kF8E4M3, shape)
        .tensor(experts + name + "_weight_scale", Dtype::kF32, {})
        .tensor(experts + name + "_input_scale", Dtype::kF32, {});
  }
  return builder;
}

Checkpoint experts_one_by_one() {
  SafetensorsBuilder builder;
  for (const char* expert : {"0", "1"}) {
    const std::string prefix = std::string("model.layers.0.mlp.experts.") + expert;
    builder.tensor(prefix + ".gate_proj.weight", Dtype::kBF16, {32, 64})
        .tensor(prefix + ".up_proj.weight", Dtype::kBF16, {32, 64})
        .tensor(prefix + ".down_proj.weight", Dtype::kBF16, {64, 32});
  }
  return checkpoint_of(builder);
}

Checkpoint stacked_experts(Order order, std::string_view config = "{}") {
  const bool turned = order == Order::kInputsFirst;
  const test::Shape down = turned ? test::Shape{2, 32, 64} : test::Shape{2, 64, 32};
  return checkpoint_of(plain({{"model.layers.0.mlp.experts.gate_up_proj", {2, 64, 64}},
                              {"model.layers.0.mlp.experts.down_proj", down}}),
                       config);
}

constexpr std::string_view kNvfp4 = R"({"quantization_config": {"quant_method": "modelopt",
  "quant_algo": "NVFP4", "group_size": 16, "ignore": ["lm_head"]}})";
constexpr std::string_view kFp8 = R"({"quantization_config": {"quant_method": "modelopt",
  "quant_algo": "FP8", "ignore": ["lm_head"]}})";

TEST(ExporterMatching, MatchesStackedNvfp4WithStacksAndWithSingleExperts) {
  for (const Order order : {Order::kOutputsFirst, Order::kInputsFirst}) {
    const Checkpoint build = checkpoint_of(nvfp4_experts(order), kNvfp4);
    EXPECT_THAT(build.findings, IsEmpty());
    for (const Order source : {Order::kOutputsFirst, Order::kInputsFirst}) {
      const Matching stacked = match(stacked_experts(source), build);
      EXPECT_THAT(stacked.findings, IsEmpty());
      const bool whole = order == Order::kOutputsFirst && source == Order::kOutputsFirst;
      EXPECT_THAT(stacked.quantized, SizeIs(whole ? 2 : 4));
      EXPECT_THAT(stacked.plain, IsEmpty());
    }
    const Matching single = match(experts_one_by_one(), build);
    EXPECT_THAT(single.findings, IsEmpty());
    EXPECT_THAT(single.quantized, SizeIs(6));
    const WeightPair* up =
        find_pair(single.quantized, "model.layers.0.mlp.experts.gate_up_proj[1].up");
    ASSERT_NE(up, nullptr);
    EXPECT_EQ(up->source_name, "model.layers.0.mlp.experts.1.up_proj");
    EXPECT_EQ(up->build_rows.first % 64, 32U);
    EXPECT_EQ(up->build_rows.count, 32U);
    EXPECT_EQ(up->columns, 64U);
  }
}

TEST(ExporterMatching, MatchesStackedFp8WithStacksAndWithSingleExperts) {
  const Checkpoint build = checkpoint_of(fp8_experts(), kFp8);
  EXPECT_THAT(build.findings, IsEmpty());
  const Matching stacked = match(stacked_experts(Order::kInputsFirst), build);
  EXPECT_THAT(stacked.findings, IsEmpty());
  EXPECT_THAT(names(stacked.quantized), ElementsAre("model.layers.0.mlp.experts.down_proj[0] = "
                                                    "model.layers.0.mlp.experts.down_proj[0]",
                                                    "model.layers.0.mlp.experts.down_proj[1] = "
                                                    "model.layers.0.mlp.experts.down_proj[1]",
                                                    "model.layers.0.mlp.experts.gate_up_proj[0] = "
                                                    "model.layers.0.mlp.experts.gate_up_proj[0]",
                                                    "model.layers.0.mlp.experts.gate_up_proj[1] = "
                                                    "model.layers.0.mlp.experts.gate_up_proj[1]"));
  const Matching single = match(experts_one_by_one(), build);
  EXPECT_THAT(single.findings, IsEmpty());
  EXPECT_THAT(single.quantized, SizeIs(6));
}

TEST(ExporterMatching, TakesGateAndUpOfGptOssInNvfp4FromAlternatingRows) {
  const Checkpoint build =
      checkpoint_of(nvfp4_experts(Order::kInputsFirst), R"({"model_type": "gpt_oss"})");
  const Matching matching = match(experts_one_by_one(), build);
  EXPECT_THAT(matching.findings, IsEmpty());
  const WeightPair* up =
      find_pair(matching.quantized, "model.layers.0.mlp.experts.gate_up_proj[0].up");
  ASSERT_NE(up, nullptr);
  EXPECT_EQ(up->build_rows, (RowSelection{.first = 1, .count = 32, .stride = 2}));
}

TEST(ExporterMatching, NamesStacksWhoseShapesFitNoOrder) {
  const Checkpoint build = checkpoint_of(
      SafetensorsBuilder()
          .tensor("model.layers.0.mlp.experts.down_proj", Dtype::kU8, {2, 64, 16})
          .tensor("model.layers.0.mlp.experts.down_proj_weight_scale", Dtype::kF8E4M3, {2, 16, 8})
          .tensor("model.layers.0.mlp.experts.down_proj_weight_scale_2", Dtype::kF32, {}));
  std::vector<std::string> found;
  for (const Finding& finding : build.findings) found.push_back(finding.code);
  EXPECT_THAT(found, ::testing::Contains("COMPANION_MISMATCH"));
}

}  // namespace
}  // namespace gridscope::model
