// Checkpoints whose names or layouts only one exporter or one model family has, matched with the
// usual ones.

#include <gmock/gmock.h>

#include "model/matchings.hpp"

namespace gridscope::model {
namespace {

using test::checkpoint_of;
using test::codes;
using test::find_pair;
using test::match;
using test::names;
using test::plain;
using test::SafetensorsBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
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

// As Mistral 4 is converted: one scale for each expert, and one for what goes into it.
TEST(ExporterMatching, FindsScalesThatAreNamedInverse) {
  const std::string experts = "model.layers.0.mlp.experts.";
  const Checkpoint build =
      checkpoint_of(SafetensorsBuilder()
                        .tensor(experts + "gate_up_proj", Dtype::kF8E4M3, {2, 64, 64})
                        .tensor(experts + "gate_up_proj_scale_inv", Dtype::kF32, {2, 1, 1})
                        .tensor(experts + "gate_up_proj_activation_scale", Dtype::kF32, {2})
                        .tensor(experts + "down_proj", Dtype::kF8E4M3, {2, 64, 32})
                        .tensor(experts + "down_proj_scale_inv", Dtype::kF32, {2, 1, 1})
                        .tensor(experts + "down_proj_activation_scale", Dtype::kF32, {2}));
  const Matching matching = match(experts_one_by_one(), build);
  EXPECT_THAT(matching.findings, IsEmpty());
  EXPECT_THAT(matching.quantized, SizeIs(6));
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

// ---- gpt-oss ------------------------------------------------------------------------------------

// Two experts with 64 inputs and 32 inner units; two heads of 16 and one for keys and values.
SafetensorsBuilder original_gpt_oss() {
  SafetensorsBuilder builder = plain({{"block.0.attn.norm.scale", {64}},
                                      {"block.0.attn.out.bias", {64}},
                                      {"block.0.attn.out.weight", {64, 32}},
                                      {"block.0.attn.qkv.bias", {64}},
                                      {"block.0.attn.qkv.weight", {64, 64}},
                                      {"block.0.attn.sinks", {2}},
                                      {"block.0.mlp.gate.bias", {2}},
                                      {"block.0.mlp.gate.weight", {2, 64}},
                                      {"block.0.mlp.mlp1_bias", {2, 64}},
                                      {"block.0.mlp.mlp2_bias", {2, 64}},
                                      {"block.0.mlp.norm.scale", {64}},
                                      {"embedding.weight", {128, 64}},
                                      {"norm.scale", {64}},
                                      {"unembedding.weight", {128, 64}}});
  return builder.tensor("block.0.mlp.mlp1_weight.blocks", Dtype::kU8, {2, 64, 2, 16})
      .tensor("block.0.mlp.mlp1_weight.scales", Dtype::kU8, {2, 64, 2})
      .tensor("block.0.mlp.mlp2_weight.blocks", Dtype::kU8, {2, 64, 1, 16})
      .tensor("block.0.mlp.mlp2_weight.scales", Dtype::kU8, {2, 64, 1});
}

SafetensorsBuilder converted_gpt_oss() {
  return plain({{"lm_head.weight", {128, 64}},
                {"model.embed_tokens.weight", {128, 64}},
                {"model.layers.0.input_layernorm.weight", {64}},
                {"model.layers.0.mlp.experts.down_proj_bias", {2, 64}},
                {"model.layers.0.mlp.experts.gate_up_proj_bias", {2, 64}},
                {"model.layers.0.mlp.router.bias", {2}},
                {"model.layers.0.mlp.router.weight", {2, 64}},
                {"model.layers.0.post_attention_layernorm.weight", {64}},
                {"model.layers.0.self_attn.k_proj.bias", {16}},
                {"model.layers.0.self_attn.k_proj.weight", {16, 64}},
                {"model.layers.0.self_attn.o_proj.bias", {64}},
                {"model.layers.0.self_attn.o_proj.weight", {64, 32}},
                {"model.layers.0.self_attn.q_proj.bias", {32}},
                {"model.layers.0.self_attn.q_proj.weight", {32, 64}},
                {"model.layers.0.self_attn.sinks", {2}},
                {"model.layers.0.self_attn.v_proj.bias", {16}},
                {"model.layers.0.self_attn.v_proj.weight", {16, 64}},
                {"model.norm.weight", {64}}});
}

TEST(ExporterMatching, MatchesTheOriginalNamesOfGptOss) {
  const Checkpoint original = checkpoint_of(original_gpt_oss(), R"({"head_dim": 16})");
  SafetensorsBuilder packed = converted_gpt_oss();
  const std::string experts = "model.layers.0.mlp.experts.";
  packed.tensor(experts + "gate_up_proj_blocks", Dtype::kU8, {2, 64, 2, 16})
      .tensor(experts + "gate_up_proj_scales", Dtype::kU8, {2, 64, 2})
      .tensor(experts + "down_proj_blocks", Dtype::kU8, {2, 64, 1, 16})
      .tensor(experts + "down_proj_scales", Dtype::kU8, {2, 64, 1});
  const Matching matching =
      match(original, checkpoint_of(packed, R"({"model_type": "gpt_oss", "head_dim": 16})"));
  EXPECT_THAT(matching.findings, IsEmpty());
  EXPECT_THAT(matching.plain, SizeIs(18));
  EXPECT_THAT(names(matching.quantized),
              ElementsAre("model.layers.0.mlp.experts.down_proj = block.0.mlp.mlp2_weight",
                          "model.layers.0.mlp.experts.gate_up_proj = block.0.mlp.mlp1_weight"));
  const WeightPair* keys = find_pair(matching.plain, "model.layers.0.self_attn.k_proj");
  ASSERT_NE(keys, nullptr);
  EXPECT_EQ(keys->source_name, "block.0.attn.qkv.k");
  EXPECT_EQ(keys->source_rows, (RowSelection{.first = 32, .count = 16}));
  EXPECT_EQ(keys->build_rows, (RowSelection{.count = 16})) << "both rotate halves";
  const WeightPair* bias = find_pair(matching.plain, "model.layers.0.self_attn.v_proj.bias");
  ASSERT_NE(bias, nullptr);
  EXPECT_EQ(bias->source_rows, (RowSelection{.first = 48, .count = 16}));
}

TEST(ExporterMatching, MatchesOriginalGptOssWithItsDequantizedParameters) {
  SafetensorsBuilder floats = converted_gpt_oss();
  floats.tensor("model.layers.0.mlp.experts.gate_up_proj", Dtype::kBF16, {2, 64, 64})
      .tensor("model.layers.0.mlp.experts.down_proj", Dtype::kBF16, {2, 32, 64});
  const Checkpoint converted = checkpoint_of(floats, R"({"model_type": "gpt_oss"})");
  const Matching matching = match(converted, checkpoint_of(original_gpt_oss()));
  EXPECT_THAT(matching.findings, IsEmpty());
  EXPECT_THAT(matching.quantized, SizeIs(4));
  const WeightPair* second = find_pair(matching.quantized, "block.0.mlp.mlp1_weight[1]");
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->source_name, "model.layers.0.mlp.experts.gate_up_proj[1]");
}

// The original names alone say that gate and up rows alternate.
TEST(ExporterMatching, TakesGateAndUpOfOriginalGptOssFromAlternatingRows) {
  const Checkpoint original = checkpoint_of(
      plain({{"block.0.mlp.mlp1_weight", {2, 64, 64}}, {"block.0.mlp.mlp2_weight", {2, 64, 32}}}));
  const Matching matching = match(original, experts_one_by_one());
  EXPECT_THAT(matching.findings, IsEmpty());
  const WeightPair* gate = find_pair(matching.plain, "model.layers.0.mlp.experts.1.gate_proj");
  ASSERT_NE(gate, nullptr);
  EXPECT_EQ(gate->source_name, "block.0.mlp.mlp1_weight[1].gate");
  EXPECT_EQ(gate->source_rows, (RowSelection{.first = 64, .count = 32, .stride = 2}));
}

TEST(ExporterMatching, LeavesOtherTensorsOfOriginalGptOssUnmatched) {
  const Checkpoint original = checkpoint_of(plain({{"block.0.attn.rope", {64}}}));
  const Checkpoint converted =
      checkpoint_of(plain({{"model.layers.0.self_attn.rotary_emb", {64}}}));
  EXPECT_THAT(codes(match(original, converted)), ElementsAre("BUILD_ONLY", "SOURCE_ONLY"));
}

// ---- Mistral's own files ------------------------------------------------------------------------

// Four heads of 16 with two for keys and values.
constexpr std::string_view kParams =
    R"({"dim": 64, "n_layers": 1, "head_dim": 16, "n_heads": 4, "n_kv_heads": 2})";

Checkpoint native_of(const SafetensorsBuilder& tensors, std::string_view params = kParams) {
  test::MemoryRepository repository;
  repository.add("params.json", params).add("consolidated.safetensors", tensors.build());
  return test::load_from(repository);
}

Checkpoint native_mistral() {
  return native_of(plain({{"layers.0.attention.wk.weight", {32, 64}},
                          {"layers.0.attention.wo.weight", {64, 64}},
                          {"layers.0.attention.wq.weight", {64, 64}},
                          {"layers.0.attention.wv.weight", {32, 64}},
                          {"layers.0.attention_norm.weight", {64}},
                          {"layers.0.feed_forward.w1.weight", {96, 64}},
                          {"layers.0.feed_forward.w2.weight", {64, 96}},
                          {"layers.0.feed_forward.w3.weight", {96, 64}},
                          {"layers.0.ffn_norm.weight", {64}},
                          {"norm.weight", {64}},
                          {"output.weight", {128, 64}},
                          {"tok_embeddings.weight", {128, 64}}}));
}

Checkpoint converted_mistral(std::string_view config = R"({"model_type": "mistral"})") {
  return checkpoint_of(plain({{"lm_head.weight", {128, 64}},
                              {"model.embed_tokens.weight", {128, 64}},
                              {"model.layers.0.input_layernorm.weight", {64}},
                              {"model.layers.0.mlp.down_proj.weight", {64, 96}},
                              {"model.layers.0.mlp.gate_proj.weight", {96, 64}},
                              {"model.layers.0.mlp.up_proj.weight", {96, 64}},
                              {"model.layers.0.post_attention_layernorm.weight", {64}},
                              {"model.layers.0.self_attn.k_proj.weight", {32, 64}},
                              {"model.layers.0.self_attn.o_proj.weight", {64, 64}},
                              {"model.layers.0.self_attn.q_proj.weight", {64, 64}},
                              {"model.layers.0.self_attn.v_proj.weight", {32, 64}},
                              {"model.norm.weight", {64}}}),
                       config);
}

TEST(ExporterMatching, MatchesMistralsOwnNamesAndPutsItsHeadsInOrder) {
  const Matching matching = match(native_mistral(), converted_mistral());
  EXPECT_THAT(matching.findings, IsEmpty());
  EXPECT_THAT(
      names(matching.plain),
      ElementsAre("lm_head = output", "model.embed_tokens = tok_embeddings",
                  "model.layers.0.input_layernorm = layers.0.attention_norm",
                  "model.layers.0.mlp.down_proj = layers.0.feed_forward.w2",
                  "model.layers.0.mlp.gate_proj = layers.0.feed_forward.w1",
                  "model.layers.0.mlp.up_proj = layers.0.feed_forward.w3",
                  "model.layers.0.post_attention_layernorm = layers.0.ffn_norm",
                  "model.layers.0.self_attn.k_proj = layers.0.attention.wk",
                  "model.layers.0.self_attn.o_proj = layers.0.attention.wo",
                  "model.layers.0.self_attn.q_proj = layers.0.attention.wq",
                  "model.layers.0.self_attn.v_proj = layers.0.attention.wv", "model.norm = norm"));
  for (const WeightPair& pair : matching.plain) {
    const bool rotated = pair.name.ends_with("q_proj") || pair.name.ends_with("k_proj");
    EXPECT_EQ(pair.source_rows.rotary_head, rotated ? 16U : 0U) << pair.name;
    EXPECT_EQ(pair.build_rows.rotary_head, 0U) << pair.name;
  }
  const Matching turned = match(converted_mistral(), native_mistral());
  EXPECT_THAT(turned.findings, IsEmpty());
  EXPECT_EQ(find_pair(turned.plain, "layers.0.attention.wk")->build_rows.rotary_head, 16U);
  const Matching alike = match(native_mistral(), native_mistral());
  EXPECT_EQ(find_pair(alike.plain, "layers.0.attention.wk")->build_rows.rotary_head, 0U);
}

// The third row of a head comes fifth, and so on: the second half fills the gaps of the first.
TEST(ExporterMatching, ReadsTheRowsOfMistralsHeadsAsTheyStandElsewhere) {
  const Matching matching = match(native_mistral(), converted_mistral());
  const WeightPair* keys = find_pair(matching.plain, "model.layers.0.self_attn.k_proj");
  ASSERT_NE(keys, nullptr);
  const RowSelection& rows = keys->source_rows;
  EXPECT_EQ(rows.row(0), 0U);
  EXPECT_EQ(rows.row(2), 4U);
  EXPECT_EQ(rows.row(8), 1U);
  EXPECT_EQ(rows.row(15), 15U);
  EXPECT_EQ(rows.row(16 + 9), 16U + 3);
}

TEST(ExporterMatching, DoesNotGuessTheHeadsOfMistral) {
  const SafetensorsBuilder queries = plain({{"layers.0.attention.wq.weight", {64, 64}}});
  const Checkpoint converted =
      checkpoint_of(plain({{"model.layers.0.self_attn.q_proj.weight", {64, 64}}}));
  const Matching matching = match(native_of(queries, "{}"), converted);
  EXPECT_THAT(matching.plain, IsEmpty());
  ASSERT_THAT(codes(matching), ElementsAre("WEIGHT_NOT_COMPARABLE"));
  EXPECT_THAT(matching.findings[0].message, HasSubstr("head's size"));
}

TEST(ExporterMatching, ComparesMistralsOwnFilesWithGgufRowByRow) {
  const Checkpoint gguf = checkpoint_of(test::GgufBuilder()
                                            .key("general.architecture", std::string("llama"))
                                            .tensor("blk.0.attn_q.weight", Dtype::kQ4_0, {64, 64})
                                            .tensor("blk.0.attn_v.weight", Dtype::kQ4_0, {64, 32}));
  const Checkpoint native = native_of(plain(
      {{"layers.0.attention.wq.weight", {64, 64}}, {"layers.0.attention.wv.weight", {32, 64}}}));
  const Matching matching = match(native, gguf);
  EXPECT_THAT(matching.findings, IsEmpty());
  EXPECT_EQ(find_pair(matching.quantized, "blk.0.attn_q")->source_rows,
            (RowSelection{.count = 64}));
  EXPECT_EQ(find_pair(matching.quantized, "blk.0.attn_q")->build_rows, (RowSelection{.count = 64}));
}

TEST(ExporterMatching, FindsTheScalesOfMistralsOwnFp8) {
  const Checkpoint build =
      native_of(SafetensorsBuilder()
                    .tensor("layers.0.attention.wk.weight", Dtype::kF8E4M3, {32, 64})
                    .tensor("layers.0.attention.wk.qscale_weight", Dtype::kF32, {})
                    .tensor("layers.0.attention.wk.qscale_act", Dtype::kF32, {}),
                R"({"dim": 64, "n_heads": 4, "quantization": {"qformat_weight": "fp8_e4m3"}})");
  EXPECT_THAT(build.findings, IsEmpty());
  const Checkpoint source =
      checkpoint_of(plain({{"model.layers.0.self_attn.k_proj.weight", {32, 64}}}));
  const Matching matching = match(source, build);
  EXPECT_THAT(matching.findings, IsEmpty());
  ASSERT_THAT(matching.quantized, SizeIs(1));
  EXPECT_EQ(matching.quantized[0].build_rows.rotary_head, 16U);
}

// The tower has heads of its own size.
TEST(ExporterMatching, PutsTheHeadsOfMistralsVisionTowerInOrder) {
  const std::string layer = "vision_encoder.transformer.layers.0.";
  SafetensorsBuilder tower = plain({{"patch_merger.merging_layer.weight", {32, 128}},
                                    {"pre_mm_projector_norm.weight", {32}},
                                    {"vision_encoder.ln_pre.weight", {32}},
                                    {"vision_language_adapter.w_in.weight", {64, 32}}});
  for (const char* projection : {"wk", "wo", "wq", "wv"}) {
    tower.tensor(layer + "attention." + projection + ".weight", Dtype::kBF16, {32, 32});
  }
  const Checkpoint native = native_of(tower, R"({"dim": 64, "n_heads": 4,
      "vision_encoder": {"hidden_size": 32, "num_attention_heads": 4}})");
  const std::string prefix = "model.vision_tower.transformer.layers.0.attention.";
  SafetensorsBuilder converted =
      plain({{"model.multi_modal_projector.linear_1.weight", {64, 32}},
             {"model.multi_modal_projector.norm.weight", {32}},
             {"model.multi_modal_projector.patch_merger.merging_layer.weight", {32, 128}},
             {"model.vision_tower.ln_pre.weight", {32}}});
  for (const char* projection : {"k_proj", "o_proj", "q_proj", "v_proj"}) {
    converted.tensor(prefix + projection + ".weight", Dtype::kBF16, {32, 32});
  }
  const Matching matching = match(native, checkpoint_of(converted));
  EXPECT_THAT(matching.findings, IsEmpty());
  EXPECT_THAT(matching.plain, SizeIs(8));
  EXPECT_EQ(find_pair(matching.plain, prefix + "q_proj")->source_rows.rotary_head, 8U);
  EXPECT_EQ(find_pair(matching.plain, prefix + "v_proj")->source_rows.rotary_head, 0U);
}

TEST(ExporterMatching, KnowsThatMistralsHeadIsTied) {
  const Checkpoint source = checkpoint_of(
      plain({{"lm_head.weight", {128, 64}}, {"model.embed_tokens.weight", {128, 64}}}));
  const Checkpoint native = native_of(plain({{"tok_embeddings.weight", {128, 64}}}),
                                      R"({"dim": 64, "n_heads": 4, "tied_embeddings": true})");
  const Matching matching = match(source, native);
  EXPECT_THAT(matching.findings, IsEmpty());
  EXPECT_THAT(matching.absent_by_design, SizeIs(1));
}

}  // namespace
}  // namespace gridscope::model
