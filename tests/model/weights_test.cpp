#include "gridscope/model/weights.hpp"

#include <gmock/gmock.h>

#include "model/weight_lists.hpp"

namespace gridscope::model {
namespace {

using quant::Companion;
using test::checkpoint_of;
using test::Fails;
using test::find_weight;
using test::GgufBuilder;
using test::IsOk;
using test::names_of;
using test::SafetensorsBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const StoredPlace* place_of(const Weight& weight, Companion companion) {
  const auto& place = weight.places[static_cast<std::size_t>(companion)];
  return place ? &*place : nullptr;
}

SafetensorsBuilder int4(const std::string& module) {
  return SafetensorsBuilder()
      .tensor(module + ".weight_packed", Dtype::kI32, {8, 16})
      .tensor(module + ".weight_scale", Dtype::kBF16, {8, 4})
      .tensor(module + ".weight_shape", Dtype::kI64, {2})
      .tensor(module + ".bias", Dtype::kBF16, {8})
      .tensor("model.norm.weight", Dtype::kBF16, {128});
}

constexpr std::string_view kInt4Config = R"({"quantization_config": {
  "quant_method": "compressed-tensors", "format": "pack-quantized", "version": "0.17.0",
  "config_groups": {"g": {"targets": ["Linear"],
  "weights": {"num_bits": 4, "group_size": 32, "strategy": "group", "symmetric": true}}}}})";

TEST(Weights, GathersCompanionsWithWhereTheyLie) {
  const Checkpoint checkpoint = checkpoint_of(int4("model.layers.0.mlp.up_proj"), kInt4Config);
  const std::vector<Weight> weights = list_weights(checkpoint);
  ASSERT_THAT(names_of(weights), ElementsAre("model.layers.0.mlp.up_proj",
                                             "model.layers.0.mlp.up_proj.bias", "model.norm"));
  const Weight& weight = weights[0];
  EXPECT_EQ(weight.canonical, "layers.0.mlp.up_proj");
  EXPECT_EQ(weight.spec.scheme, Scheme::kCtPackQuantized);
  EXPECT_EQ(weight.spec.bits, 4U);
  EXPECT_EQ(weight.spec.group_size, 32);
  EXPECT_EQ(weight.spec.symmetric, true);
  EXPECT_EQ(weight.spec.format, "pack-quantized");
  EXPECT_EQ(weight.spec.ct_packing, quant::WeightSpec::CtPacking::kDense);
  EXPECT_THAT(weight.shape, ElementsAre(8, 128));
  EXPECT_EQ(weight.rows(), 8U);
  EXPECT_EQ(weight.columns(), 128U);
  EXPECT_EQ(weight.info.role, Role::kMlp);
  EXPECT_EQ(weight.info.layer, 0U);
  EXPECT_THAT(weight.obstacle, IsEmpty());
  const auto scale = checkpoint.find_tensor("model.layers.0.mlp.up_proj.weight_scale");
  ASSERT_TRUE(scale.has_value());
  ASSERT_NE(place_of(weight, Companion::kScale), nullptr);
  EXPECT_EQ(place_of(weight, Companion::kScale)->offset, checkpoint.tensors[*scale].offset);
  EXPECT_EQ(place_of(weight, Companion::kScale)->bytes, 64U);
  EXPECT_EQ(place_of(weight, Companion::kZeroPoint), nullptr);
  ASSERT_NE(weight.spec.find(Companion::kShape), nullptr);
  EXPECT_THAT(weight.spec.find(Companion::kShape)->data, IsEmpty());
}

TEST(Weights, ListsABiasAsAColumnOfItsOwn) {
  const auto weights = list_weights(checkpoint_of(int4("model.layers.0.mlp.up_proj")));
  const Weight* bias = find_weight(weights, "model.layers.0.mlp.up_proj.bias");
  ASSERT_NE(bias, nullptr);
  EXPECT_EQ(bias->canonical, "layers.0.mlp.up_proj.bias");
  EXPECT_EQ(bias->spec.scheme, Scheme::kPlain);
  EXPECT_EQ(bias->rows(), 8U);
  EXPECT_EQ(bias->columns(), 1U);
  EXPECT_THAT(bias->spec.find(Companion::kCodes)->shape, ElementsAre(8, 1));
}

TEST(Weights, KnowsParametersFromBuffers) {
  const auto weights = list_weights(
      checkpoint_of(SafetensorsBuilder()
                        .tensor("model.layers.0.layer_scalar", Dtype::kBF16, {1})
                        .tensor("model.layers.0.router.scale", Dtype::kBF16, {16})
                        .tensor("model.layers.0.router.proj.weight", Dtype::kBF16, {4, 16})
                        .tensor("model.layers.0.self_attn.k_scale", Dtype::kF32, {})
                        .tensor("embeddings.position_ids", Dtype::kI64, {1, 512})
                        .tensor("vision_tower.input_max", Dtype::kBF16, {})));
  EXPECT_THAT(names_of(weights),
              ElementsAre("model.layers.0.layer_scalar", "model.layers.0.router.proj",
                          "model.layers.0.router.scale", "vision_tower.input_max"));
  EXPECT_THAT(weights.back().shape, IsEmpty());
  EXPECT_EQ(weights.back().rows(), 1U);
  EXPECT_EQ(weights.back().columns(), 1U);
}

TEST(Weights, SaysWhatStandsInTheWay) {
  const auto weights =
      list_weights(checkpoint_of(SafetensorsBuilder()
                                     .tensor("a.trellis", Dtype::kI16, {4, 4, 64})
                                     .tensor("b.codes", Dtype::kI32, {4, 4})
                                     .tensor("c.weight_scale", Dtype::kBF16, {4, 1})
                                     .tensor("d.weight", Dtype::kF8E4M3, {4, 4})
                                     .tensor("e.weight", Dtype::kU8, {4, 8})
                                     .tensor("e.weight_scale", Dtype::kF8E4M3, {4, 1})
                                     .tensor("e.weight_scale_2", Dtype::kF32, {})
                                     .tensor("e.svdquant_lora_a", Dtype::kBF16, {4, 4})));
  ASSERT_THAT(names_of(weights), ElementsAre("a", "b.codes", "c", "d", "e"));
  EXPECT_THAT(weights[0].obstacle, HasSubstr("recognised, but not decoded"));
  EXPECT_THAT(weights[1].obstacle, HasSubstr("no known format"));
  EXPECT_THAT(weights[2].obstacle, HasSubstr("codes is missing"));
  EXPECT_THAT(weights[3].obstacle, HasSubstr("F8_E4M3 values without a scale"));
  EXPECT_THAT(weights[4].obstacle, HasSubstr("low-rank"));
  EXPECT_NE(place_of(weights[4], Companion::kGlobalScale), nullptr);
}

TEST(Weights, TakesMlxOverridesByModule) {
  const auto weights = list_weights(
      checkpoint_of(SafetensorsBuilder()
                        .tensor("model.layers.0.mlp.gate.weight", Dtype::kU32, {4, 16})
                        .tensor("model.layers.0.mlp.gate.scales", Dtype::kBF16, {4, 1})
                        .tensor("model.layers.0.mlp.gate.biases", Dtype::kBF16, {4, 1})
                        .tensor("model.layers.0.mlp.up_proj.weight", Dtype::kU32, {4, 16})
                        .tensor("model.layers.0.mlp.up_proj.scales", Dtype::kBF16, {4, 2})
                        .tensor("model.layers.0.mlp.up_proj.biases", Dtype::kBF16, {4, 2}),
                    R"({"quantization": {"group_size": 64, "bits": 4,
          "model.layers.0.mlp.gate": {"group_size": 64, "bits": 8}}})"));
  ASSERT_THAT(weights, SizeIs(2));
  EXPECT_EQ(weights[0].canonical, "layers.0.router");
  EXPECT_EQ(weights[0].spec.bits, 8U);
  EXPECT_THAT(weights[0].shape, ElementsAre(4, 64));
  EXPECT_EQ(weights[1].spec.bits, 4U);
  EXPECT_EQ(weights[1].spec.format, "affine");
  EXPECT_THAT(weights[1].shape, ElementsAre(4, 128));
  EXPECT_NE(place_of(weights[1], Companion::kOffset), nullptr);
}

TEST(Weights, NamesTheWeightsOfGguf) {
  const auto weights =
      list_weights(checkpoint_of(GgufBuilder()
                                     .key("general.architecture", std::string("gemma4"))
                                     .tensor("token_embd.weight", Dtype::kQ6_K, {256, 8})
                                     .tensor("blk.0.attn_q.weight", Dtype::kQ4_0, {64, 8})
                                     .tensor("blk.0.ffn_gate_inp.scale", Dtype::kF32, {64})
                                     .tensor("blk.0.ffn_norm.weight", Dtype::kF32, {64})));
  EXPECT_THAT(test::canonical_names_of(weights),
              ElementsAre("layers.0.self_attn.q_proj", "layers.0.router.scale",
                          "layers.0.pre_feedforward_layernorm", "embed_tokens"));
  EXPECT_EQ(weights[0].spec.scheme, Scheme::kGgufBlock);
  EXPECT_THAT(weights[0].shape, ElementsAre(8, 64));
}

TEST(Weights, GivesNvfp4BlocksTheirSideScale) {
  const auto weights =
      list_weights(checkpoint_of(GgufBuilder()
                                     .key("general.architecture", std::string("llama"))
                                     .tensor("blk.0.attn_q.weight", Dtype::kNVFP4, {64, 8})
                                     .tensor("blk.0.attn_q.scale", Dtype::kF32, {1})
                                     .tensor("blk.0.attn_k.weight", Dtype::kQ4_0, {64, 8})
                                     .tensor("blk.0.attn_k.scale", Dtype::kF32, {1})));
  EXPECT_THAT(names_of(weights), ElementsAre("blk.0.attn_k", "blk.0.attn_k.scale", "blk.0.attn_q"));
  EXPECT_NE(place_of(weights[2], Companion::kGlobalScale), nullptr);
}

TEST(Weights, OpensAWeightWithWhatItsDecoderWantsWhole) {
  test::Bytes shape(16);
  shape[0] = std::byte{8};
  shape[8] = std::byte{128};
  const Checkpoint checkpoint =
      checkpoint_of(SafetensorsBuilder()
                        .tensor("l.up_proj.weight_packed", Dtype::kI32, {8, 16})
                        .tensor("l.up_proj.weight_scale", Dtype::kBF16, {8, 4})
                        .tensor("l.up_proj.weight_shape", Dtype::kI64, {2}, shape));
  const auto weights = list_weights(checkpoint);
  ASSERT_THAT(weights, SizeIs(1));
  const auto decoder = open_weight(checkpoint, weights[0]);
  ASSERT_THAT(decoder, IsOk());
  EXPECT_EQ((*decoder)->layout().rows, 8U);
  EXPECT_EQ((*decoder)->layout().columns, 128U);
}

TEST(Weights, RefusesWhatCannotBeOpened) {
  Checkpoint checkpoint = checkpoint_of(int4("l.up_proj"));
  auto weights = list_weights(checkpoint);
  weights[0].places[static_cast<std::size_t>(Companion::kShape)]->bytes = 1U << 30U;
  EXPECT_THAT(open_weight(checkpoint, weights[0]), Fails(ErrorCode::kLimit, HasSubstr("shape")));
  weights = list_weights(checkpoint);
  checkpoint.files[0].source = nullptr;
  EXPECT_THAT(open_weight(checkpoint, weights[0]),
              Fails(ErrorCode::kUnsupported, HasSubstr("model.safetensors")));
}

}  // namespace
}  // namespace gridscope::model
