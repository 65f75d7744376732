#include "gridscope/model/weight_stacks.hpp"

#include <gmock/gmock.h>

#include <array>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "gridscope/quant/pack.hpp"
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

// What a decoder asks for, read from where the weight says that it lies.
quant::RowBlock rows_of(const Checkpoint& checkpoint, const Weight& weight) {
  const auto decoder = open_weight(checkpoint, weight);
  EXPECT_THAT(decoder, test::IsOk());
  quant::RowBlock block;
  if (!decoder) return block;
  const quant::RowRange all = {.first = 0, .count = (*decoder)->layout().rows};
  const quant::TileNeeds needs = (*decoder)->needs(all);
  quant::Tile tile = {.rows = all, .bytes = {}};
  std::array<std::vector<std::byte>, quant::kCompanionCount> read;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const auto& strips = needs.at(i);
    const auto& place = weight.places.at(i);
    if (!strips || !place) continue;
    EXPECT_EQ(strips->bytes(), place->bytes);
    read.at(i).resize(place->bytes);
    io::ReadRequest request = {.offset = place->offset, .into = read.at(i)};
    EXPECT_THAT(checkpoint.files.at(place->file).source->read_many({&request, 1}), test::IsOk());
    tile.bytes.at(i) = read.at(i);
  }
  EXPECT_THAT((*decoder)->decode(tile, all, block), test::IsOk());
  return block;
}

test::Bytes bytes_of(std::initializer_list<unsigned> values) {
  test::Bytes bytes;
  for (const unsigned value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// Two experts of two outputs with 16 inputs. In the second one inputs 0 and 1 have the codes 1 and
// 2 (0.5 and 1) for the first output, 3 and 4 (1.5 and 2) for the other; scales are 1 and 2 times
// a half.
TEST(WeightStacks, ReadsTheMatricesOfTurnedNvfp4) {
  test::Bytes codes(2 * 8 * 2);
  codes.at(16) = std::byte{0x21};
  codes.at(17) = std::byte{0x43};
  const std::string name = "model.layers.0.mlp.experts.down_proj";
  const Checkpoint checkpoint = checkpoint_of(
      SafetensorsBuilder()
          .tensor(name, Dtype::kU8, {2, 8, 2}, codes)
          .tensor(name + "_weight_scale", Dtype::kF8E4M3, {2, 1, 2}, bytes_of({0, 0, 0x38, 0x40}))
          .tensor(name + "_weight_scale_2", Dtype::kF32, {}, bytes_of({0, 0, 0, 0x3f})));
  const auto weights = list_weights(checkpoint);
  ASSERT_THAT(weights, SizeIs(2));
  const quant::RowBlock block = rows_of(checkpoint, weights[1]);
  ASSERT_EQ(block.rows, 2U);
  EXPECT_THAT(block.row_values(0).first(3), ElementsAre(0.25, 0.5, 0));
  EXPECT_THAT(block.row_values(1).first(3), ElementsAre(1.5, 2, 0));
  EXPECT_THAT(block.scales, ElementsAre(0.5, 1));
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

// One of two experts of 8 outputs with 32 inputs.
quant::LeveledWeight expert(int index) {
  quant::LeveledWeight weight = {.rows = 8, .columns = 32, .bits = 4, .group_size = 32};
  for (int i = 0; i < 8 * 32; ++i) {
    weight.levels.push_back(static_cast<std::int16_t>((3 * i + 5 * (i / 32) + index) % 16 - 8));
  }
  for (int row = 0; row < 8; ++row) weight.scales.push_back(row + 1 + 8 * index);
  return weight;
}

// Both experts packed by themselves and laid one behind the other.
SafetensorsBuilder stack_of_experts(const std::string& name, quant::Scheme scheme) {
  const auto first = quant::pack(expert(0), {.scheme = scheme});
  const auto second = quant::pack(expert(1), {.scheme = scheme});
  EXPECT_TRUE(first && second);
  SafetensorsBuilder tensors;
  const std::map<std::string, Companion> parts = {{".qweight", Companion::kCodes},
                                                  {".scales", Companion::kScale},
                                                  {".qzeros", Companion::kZeroPoint}};
  for (const auto& [suffix, companion] : parts) {
    const quant::StoredTensor& upper = *first->find(companion);
    const quant::StoredTensor& lower = *second->find(companion);
    test::Bytes bytes = upper.data;
    bytes.insert(bytes.end(), lower.data.begin(), lower.data.end());
    tensors.tensor(name + suffix, upper.dtype, {2, upper.shape[0], upper.shape[1]}, bytes);
  }
  return tensors;
}

TEST(WeightStacks, ReadsTheMatricesOfGptqAndAwq) {
  const std::map<quant::Scheme, std::string> methods = {{quant::Scheme::kGptq, "gptq"},
                                                        {quant::Scheme::kAwqGemm, "awq"}};
  for (const auto& [scheme, method] : methods) {
    const std::string config = R"({"quantization_config": {"bits": 4, "group_size": 32,
                                   "quant_method": ")" +
                               method + "\"}}";
    const Checkpoint checkpoint =
        checkpoint_of(stack_of_experts("model.layers.0.mlp.experts.down_proj", scheme), config);
    const auto weights = list_weights(checkpoint);
    ASSERT_THAT(weights, SizeIs(2)) << method;
    for (int index = 0; index < 2; ++index) {
      const Weight& weight = weights[static_cast<std::size_t>(index)];
      EXPECT_EQ(weight.spec.scheme, scheme);
      EXPECT_THAT(weight.shape, ElementsAre(8, 32));
      const quant::RowBlock block = rows_of(checkpoint, weight);
      EXPECT_EQ(block.levels, expert(index).levels) << method;
      EXPECT_EQ(block.scales, expert(index).scales) << method;
    }
  }
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
