#include "gridscope/model/weight_matching.hpp"

#include <gmock/gmock.h>

#include "model/matchings.hpp"

namespace gridscope::model {
namespace {

using test::checkpoint_of;
using test::codes;
using test::Fails;
using test::find_pair;
using test::GgufBuilder;
using test::match;
using test::names;
using test::plain;
using test::SafetensorsBuilder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::uint64_t> rows_of(const RowSelection& rows) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < rows.count; ++i) all.push_back(rows.row(i));
  return all;
}

// int4 in groups of 32, as compressed-tensors packs it.
void add_int4(SafetensorsBuilder& builder, const std::string& module, std::uint64_t rows,
              std::uint64_t columns) {
  builder.tensor(module + ".weight_packed", Dtype::kI32, {rows, columns / 8})
      .tensor(module + ".weight_scale", Dtype::kBF16, {rows, columns / 32})
      .tensor(module + ".weight_shape", Dtype::kI64, {2});
}

TEST(RowSelection, CountsInSteps) {
  EXPECT_THAT(rows_of({.first = 3, .count = 3}), ElementsAre(3, 4, 5));
  EXPECT_THAT(rows_of({.first = 1, .count = 3, .stride = 2}), ElementsAre(1, 3, 5));
}

TEST(RowSelection, UndoesTheRotationOfEachHead) {
  EXPECT_THAT(rows_of({.count = 8, .rotary_head = 4}), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_THAT(rows_of({.first = 10, .count = 6, .rotary_head = 6}),
              ElementsAre(10, 12, 14, 11, 13, 15));
}

TEST(WeightMatching, PairsAcrossFamilies) {
  SafetensorsBuilder build = plain({{"model.norm.weight", {64}}});
  add_int4(build, "model.layers.0.self_attn.q_proj", 16, 64);
  const Checkpoint source =
      checkpoint_of(plain({{"model.language_model.layers.0.self_attn.q_proj.weight", {16, 64}},
                           {"model.language_model.norm.weight", {64}}}));
  const Matching matching = match(source, checkpoint_of(build));
  EXPECT_THAT(names(matching.quantized),
              ElementsAre("model.layers.0.self_attn.q_proj = "
                          "model.language_model.layers.0.self_attn.q_proj"));
  EXPECT_THAT(names(matching.plain), ElementsAre("model.norm = model.language_model.norm"));
  EXPECT_EQ(matching.quantized[0].columns, 64U);
  EXPECT_EQ(matching.quantized[0].build_rows, (RowSelection{.count = 16}));
  EXPECT_THAT(matching.findings, IsEmpty());
}

TEST(WeightMatching, MatchesStackedSourcesWithExpertsOneByOne) {
  SafetensorsBuilder build;
  for (const char* expert : {"0", "1"}) {
    const std::string prefix = std::string("model.language_model.layers.0.experts.") + expert + ".";
    add_int4(build, prefix + "gate_proj", 32, 64);
    add_int4(build, prefix + "up_proj", 32, 64);
    add_int4(build, prefix + "down_proj", 64, 32);
  }
  const Checkpoint source =
      checkpoint_of(plain({{"model.language_model.layers.0.experts.gate_up_proj", {2, 64, 64}},
                           {"model.language_model.layers.0.experts.down_proj", {2, 64, 32}}}));
  const Matching matching = match(source, checkpoint_of(build));
  EXPECT_THAT(matching.findings, IsEmpty());
  EXPECT_THAT(matching.quantized, SizeIs(6));
  const WeightPair* up =
      find_pair(matching.quantized, "model.language_model.layers.0.experts.1.up_proj");
  ASSERT_NE(up, nullptr);
  EXPECT_EQ(up->source_name, "model.language_model.layers.0.experts.gate_up_proj[1].up");
  EXPECT_EQ(up->source_rows, (RowSelection{.first = 96, .count = 32}));
  EXPECT_EQ(up->build_rows, (RowSelection{.count = 32}));
  const WeightPair* down =
      find_pair(matching.quantized, "model.language_model.layers.0.experts.1.down_proj");
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->source_rows, (RowSelection{.first = 64, .count = 64}));
}

TEST(WeightMatching, MatchesMixtralWithMlx) {
  const Checkpoint source =
      checkpoint_of(plain({{"model.layers.0.block_sparse_moe.experts.0.w1.weight", {8, 64}},
                           {"model.layers.0.block_sparse_moe.experts.0.w3.weight", {8, 64}},
                           {"model.layers.0.block_sparse_moe.experts.1.w1.weight", {8, 64}},
                           {"model.layers.0.block_sparse_moe.experts.1.w3.weight", {8, 64}},
                           {"model.layers.0.block_sparse_moe.gate.weight", {2, 64}}}));
  SafetensorsBuilder mlx;
  for (const char* projection : {"gate_proj", "up_proj"}) {
    const std::string module =
        std::string("model.layers.0.block_sparse_moe.switch_mlp.") + projection;
    mlx.tensor(module + ".weight", Dtype::kU32, {2, 8, 8})
        .tensor(module + ".scales", Dtype::kBF16, {2, 8, 1})
        .tensor(module + ".biases", Dtype::kBF16, {2, 8, 1});
  }
  mlx.tensor("model.layers.0.block_sparse_moe.gate.weight", Dtype::kBF16, {2, 64});
  const Matching matching = match(source, checkpoint_of(mlx));
  EXPECT_THAT(matching.findings, IsEmpty());
  ASSERT_THAT(matching.quantized, SizeIs(4));
  const WeightPair* up =
      find_pair(matching.quantized, "model.layers.0.block_sparse_moe.switch_mlp.up_proj[1]");
  ASSERT_NE(up, nullptr);
  EXPECT_EQ(up->source_name, "model.layers.0.block_sparse_moe.experts.1.w3");
  EXPECT_EQ(up->build_rows, (RowSelection{.first = 8, .count = 8}));
}

TEST(WeightMatching, TakesGptOssGateAndUpFromAlternatingRows) {
  const Checkpoint source =
      checkpoint_of(plain({{"model.layers.0.mlp.experts.gate_up_proj", {2, 64, 16}},
                           {"model.layers.0.mlp.experts.gate_up_proj_bias", {2, 16}},
                           {"model.layers.0.mlp.experts.down_proj", {2, 8, 64}},
                           {"model.layers.0.mlp.experts.down_proj_bias", {2, 64}},
                           {"model.layers.0.mlp.router.weight", {2, 64}}}),
                    R"({"model_type": "gpt_oss"})");
  const Checkpoint blocks = checkpoint_of(
      SafetensorsBuilder()
          .tensor("model.layers.0.mlp.experts.gate_up_proj_blocks", Dtype::kU8, {2, 16, 2, 16})
          .tensor("model.layers.0.mlp.experts.gate_up_proj_scales", Dtype::kU8, {2, 16, 2})
          .tensor("model.layers.0.mlp.experts.gate_up_proj_bias", Dtype::kBF16, {2, 16})
          .tensor("model.layers.0.mlp.experts.down_proj", Dtype::kBF16, {2, 8, 64})
          .tensor("model.layers.0.mlp.experts.down_proj_bias", Dtype::kBF16, {2, 64})
          .tensor("model.layers.0.mlp.router.weight", Dtype::kBF16, {2, 64}),
      R"({"model_type": "gpt_oss"})");
  const Matching whole = match(source, blocks);
  EXPECT_THAT(whole.findings, IsEmpty());
  EXPECT_THAT(names(whole.quantized), ElementsAre("model.layers.0.mlp.experts.gate_up_proj[0] = "
                                                  "model.layers.0.mlp.experts.gate_up_proj[0]",
                                                  "model.layers.0.mlp.experts.gate_up_proj[1] = "
                                                  "model.layers.0.mlp.experts.gate_up_proj[1]"));
  EXPECT_EQ(whole.quantized[1].build_rows, (RowSelection{.first = 16, .count = 16}));
  EXPECT_EQ(whole.quantized[1].source_rows, (RowSelection{.count = 16}));

  const Checkpoint gguf =
      checkpoint_of(GgufBuilder()
                        .key("general.architecture", std::string("gpt-oss"))
                        .tensor("blk.0.ffn_gate_exps.weight", Dtype::kMXFP4, {64, 8, 2})
                        .tensor("blk.0.ffn_up_exps.weight", Dtype::kMXFP4, {64, 8, 2})
                        .tensor("blk.0.ffn_gate_exps.bias", Dtype::kF32, {8, 2})
                        .tensor("blk.0.ffn_up_exps.bias", Dtype::kF32, {8, 2})
                        .tensor("blk.0.ffn_down_exps.weight", Dtype::kF32, {8, 64, 2})
                        .tensor("blk.0.ffn_down_exps.bias", Dtype::kF32, {64, 2})
                        .tensor("blk.0.ffn_gate_inp.weight", Dtype::kF32, {64, 2}));
  for (const Checkpoint* from : {&source, &blocks}) {
    const Matching split = match(*from, gguf);
    EXPECT_THAT(split.findings, IsEmpty());
    const WeightPair* up = find_pair(split.quantized, "blk.0.ffn_up_exps[1]");
    ASSERT_NE(up, nullptr);
    EXPECT_EQ(up->source_rows.stride, 2U);
    EXPECT_EQ(up->source_rows.first % 16, 1U);
    EXPECT_EQ(up->build_rows, (RowSelection{.first = 8, .count = 8}));
    const WeightPair* bias = find_pair(split.plain, "blk.0.ffn_gate_exps.bias[1]");
    ASSERT_NE(bias, nullptr);
    EXPECT_EQ(bias->source_rows, (RowSelection{.first = 16, .count = 8, .stride = 2}));
    EXPECT_EQ(bias->columns, 1U);
  }
}

constexpr std::string_view kLlama =
    R"({"model_type": "llama", "hidden_size": 8, "num_attention_heads": 2})";

TEST(WeightMatching, UndoesWhatGgufDoesToLlama) {
  const Checkpoint source =
      checkpoint_of(plain({{"model.layers.0.self_attn.q_proj.weight", {8, 32}},
                           {"model.layers.0.self_attn.k_proj.weight", {4, 32}},
                           {"model.layers.0.self_attn.v_proj.weight", {4, 32}},
                           {"model.layers.0.self_attn.q_proj.bias", {8}},
                           {"model.norm.weight", {32}}}),
                    kLlama);
  const auto gguf = [](const char* architecture) {
    return checkpoint_of(GgufBuilder()
                             .key("general.architecture", std::string(architecture))
                             .tensor("blk.0.attn_q.weight", Dtype::kQ4_0, {32, 8})
                             .tensor("blk.0.attn_k.weight", Dtype::kQ4_0, {32, 4})
                             .tensor("blk.0.attn_v.weight", Dtype::kQ4_0, {32, 4})
                             .tensor("blk.0.attn_q.bias", Dtype::kF32, {8})
                             .tensor("output_norm.weight", Dtype::kF32, {32})
                             .tensor("rope_freqs.weight", Dtype::kF32, {2}));
  };
  const Checkpoint build = gguf("llama");
  const Matching matching = match(source, build);
  EXPECT_THAT(matching.findings, IsEmpty());
  EXPECT_EQ(find_pair(matching.quantized, "blk.0.attn_q")->build_rows,
            (RowSelection{.count = 8, .rotary_head = 4}));
  EXPECT_EQ(find_pair(matching.quantized, "blk.0.attn_k")->build_rows.rotary_head, 4U);
  EXPECT_EQ(find_pair(matching.quantized, "blk.0.attn_v")->build_rows.rotary_head, 0U);
  EXPECT_EQ(find_pair(matching.plain, "blk.0.attn_q.bias")->build_rows.rotary_head, 4U);
  EXPECT_EQ(find_pair(matching.plain, "output_norm")->build_offset, 0.0);
  ASSERT_THAT(matching.absent_by_design, SizeIs(1));
  EXPECT_EQ(matching.absent_by_design[0].name, "rope_freqs");

  const Matching turned = match(build, source);
  EXPECT_EQ(find_pair(turned.plain, "model.layers.0.self_attn.q_proj")->source_rows.rotary_head,
            4U);
  const Matching alike = match(build, build);
  EXPECT_EQ(find_pair(alike.quantized, "blk.0.attn_q")->build_rows.rotary_head, 0U);
  const Matching qwen = match(source, gguf("qwen2"));
  EXPECT_EQ(find_pair(qwen.quantized, "blk.0.attn_q")->build_rows.rotary_head, 0U);
}

TEST(WeightMatching, DoesNotGuessTheSizeOfAHead) {
  const Checkpoint source =
      checkpoint_of(plain({{"model.layers.0.self_attn.q_proj.weight", {8, 32}}}));
  const Checkpoint build = checkpoint_of(GgufBuilder()
                                             .key("general.architecture", std::string("llama"))
                                             .tensor("blk.0.attn_q.weight", Dtype::kQ4_0, {32, 8}));
  const Matching matching = match(source, build);
  EXPECT_THAT(matching.quantized, IsEmpty());
  ASSERT_THAT(codes(matching), ElementsAre("WEIGHT_NOT_COMPARABLE"));
  EXPECT_THAT(matching.findings[0].message, HasSubstr("head's size"));
}

TEST(WeightMatching, KnowsWhatGgufAddsToNorms) {
  const Checkpoint source = checkpoint_of(
      plain({{"model.norm.weight", {32}}, {"model.layers.0.self_attn.q_proj.weight", {8, 32}}}));
  const Checkpoint build = checkpoint_of(GgufBuilder()
                                             .key("general.architecture", std::string("gemma3"))
                                             .tensor("output_norm.weight", Dtype::kF32, {32})
                                             .tensor("blk.0.attn_q.weight", Dtype::kQ4_0, {32, 8}));
  EXPECT_EQ(match(source, build).plain[0].build_offset, 1.0);
  EXPECT_EQ(match(source, build).quantized[0].build_offset, 0.0);
  EXPECT_EQ(match(build, source).plain[0].build_offset, 0.0);
  EXPECT_EQ(find_pair(match(build, source).plain, "model.norm")->build_offset, -1.0);
}

TEST(WeightMatching, ComparesAStoredHeadWithTheEmbedding) {
  const Checkpoint tied = checkpoint_of(plain({{"model.embed_tokens.weight", {64, 32}}}));
  SafetensorsBuilder two = plain({{"model.embed_tokens.weight", {64, 32}}});
  add_int4(two, "lm_head", 64, 32);
  const Matching stored = match(tied, checkpoint_of(two));
  EXPECT_THAT(names(stored.quantized), ElementsAre("lm_head = model.embed_tokens"));
  EXPECT_THAT(stored.findings, IsEmpty());

  const Matching left_out = match(checkpoint_of(two, R"({"tie_word_embeddings": true})"), tied);
  EXPECT_THAT(left_out.findings, IsEmpty());
  ASSERT_THAT(left_out.absent_by_design, SizeIs(1));
  EXPECT_EQ(left_out.absent_by_design[0].name, "lm_head");
  EXPECT_THAT(codes(match(checkpoint_of(two), tied)), ElementsAre("SOURCE_ONLY"));
}

TEST(WeightMatching, ComparesValuesThatAreKeys) {
  const Checkpoint source =
      checkpoint_of(plain({{"model.layers.0.self_attn.k_proj.weight", {8, 32}}}),
                    R"({"model_type": "gemma4", "attention_k_eq_v": true,
                        "layer_types": ["full_attention"]})");
  const Checkpoint build =
      checkpoint_of(plain({{"model.layers.0.self_attn.k_proj.weight", {8, 32}},
                           {"model.layers.0.self_attn.v_proj.weight", {8, 32}}}));
  const Matching matching = match(source, build);
  EXPECT_THAT(names(matching.plain),
              ElementsAre("model.layers.0.self_attn.k_proj = model.layers.0.self_attn.k_proj",
                          "model.layers.0.self_attn.v_proj = model.layers.0.self_attn.k_proj"));
  const Matching turned = match(build, source);
  EXPECT_THAT(turned.findings, IsEmpty());
  ASSERT_THAT(turned.absent_by_design, SizeIs(1));
  EXPECT_THAT(turned.absent_by_design[0].reason, HasSubstr("keys"));
}

TEST(WeightMatching, NamesBothShapesWhereTheyDiffer) {
  const Checkpoint source = checkpoint_of(plain({{"a.weight", {8, 32}}, {"b.weight", {4, 2, 3}}}));
  const Checkpoint build = checkpoint_of(plain({{"a.weight", {8, 64}}, {"b.weight", {2, 4, 3}}}));
  const Matching matching = match(source, build);
  EXPECT_THAT(matching.plain, IsEmpty());
  ASSERT_THAT(codes(matching), ElementsAre("SHAPE_MISMATCH"));
  EXPECT_THAT(matching.findings[0].message,
              AllOf(HasSubstr("2 weights have"), HasSubstr("[8, 64]"), HasSubstr("[8, 32]")));
  EXPECT_EQ(matching.findings[0].severity, Severity::kError);
  EXPECT_THAT(matching.findings[0].tensors, ElementsAre("a", "b"));
}

TEST(WeightMatching, TakesPaddedWordsAndVocabularies) {
  SafetensorsBuilder packed = plain({{"model.embed_tokens.weight", {64, 32}}});
  packed.tensor("l.q_proj.weight_packed", Dtype::kI32, {4, 13})
      .tensor("l.q_proj.weight_scale", Dtype::kBF16, {4, 1})
      .tensor("l.q_proj.weight_shape", Dtype::kI64, {2});
  const Checkpoint source = checkpoint_of(
      plain({{"model.embed_tokens.weight", {60, 32}}, {"l.q_proj.weight", {4, 100}}}));
  const Matching matching = match(source, checkpoint_of(packed));
  ASSERT_THAT(codes(matching), ElementsAre("VOCABULARY_PADDED"));
  EXPECT_THAT(matching.findings[0].message, HasSubstr("1 weight has rows"));
  EXPECT_EQ(matching.findings[0].severity, Severity::kWarning);
  ASSERT_THAT(matching.quantized, SizeIs(1));
  EXPECT_EQ(matching.quantized[0].columns, 100U);
  ASSERT_THAT(matching.plain, SizeIs(1));
  EXPECT_EQ(matching.plain[0].build_rows.count, 60U);
  const Checkpoint wider =
      checkpoint_of(plain({{"model.embed_tokens.weight", {60, 32}}, {"l.q_proj.weight", {4, 96}}}));
  EXPECT_THAT(codes(match(wider, checkpoint_of(packed))),
              ElementsAre("SHAPE_MISMATCH", "VOCABULARY_PADDED"));
}

TEST(WeightMatching, ListsWhatHasNoCounterpart) {
  const Checkpoint source = checkpoint_of(plain({{"a.weight", {8, 32}}, {"b.weight", {8}}}));
  const Checkpoint build = checkpoint_of(SafetensorsBuilder()
                                             .tensor("b.weight", Dtype::kBF16, {8})
                                             .tensor("c.trellis", Dtype::kI16, {4, 4, 64}));
  const Matching matching = match(source, build);
  EXPECT_THAT(matching.source_only, ElementsAre("a"));
  EXPECT_THAT(matching.build_only, ElementsAre("c"));
  ASSERT_THAT(codes(matching), ElementsAre("BUILD_ONLY", "SOURCE_ONLY"));
  EXPECT_EQ(matching.findings[0].message, "1 weight of the build is not in the source");
  EXPECT_EQ(matching.findings[1].message, "1 weight of the source is not in the build");
  const Checkpoint other = checkpoint_of(plain({{"c.weight", {64, 64}}}));
  const Matching obstructed = match(other, build);
  ASSERT_THAT(codes(obstructed), ElementsAre("BUILD_ONLY", "WEIGHT_NOT_COMPARABLE"));
  EXPECT_THAT(obstructed.findings[1].tensors, ElementsAre("c"));
  EXPECT_THAT(obstructed.findings[1].message, HasSubstr("trellis"));
}

// One layer of Gemma 4 with dense and routed blocks.
Checkpoint gemma4() {
  return checkpoint_of(
      plain({{"model.language_model.embed_tokens.weight", {64, 32}},
             {"model.language_model.layers.0.experts.down_proj", {2, 32, 32}},
             {"model.language_model.layers.0.experts.gate_up_proj", {2, 64, 32}},
             {"model.language_model.layers.0.layer_scalar", {1}},
             {"model.language_model.layers.0.pre_feedforward_layernorm.weight", {32}},
             {"model.language_model.layers.0.router.per_expert_scale", {2}},
             {"model.language_model.layers.0.router.proj.weight", {2, 32}},
             {"model.language_model.layers.0.router.scale", {32}},
             {"model.vision_tower.std_bias", {8}}}),
      R"({"model_type": "gemma4", "tie_word_embeddings": true})");
}

TEST(WeightMatching, MatchesGemma4WithGguf) {
  const Checkpoint build =
      checkpoint_of(GgufBuilder()
                        .key("general.architecture", std::string("gemma4"))
                        .tensor("token_embd.weight", Dtype::kQ4_0, {32, 64})
                        .tensor("blk.0.ffn_gate_up_exps.weight", Dtype::kQ4_0, {32, 64, 2})
                        .tensor("blk.0.ffn_down_exps.weight", Dtype::kQ4_0, {32, 32, 2})
                        .tensor("blk.0.ffn_down_exps.scale", Dtype::kF32, {2})
                        .tensor("blk.0.layer_output_scale.weight", Dtype::kF32, {1})
                        .tensor("blk.0.ffn_norm.weight", Dtype::kF32, {32})
                        .tensor("blk.0.ffn_gate_inp.weight", Dtype::kF32, {32, 2})
                        .tensor("blk.0.ffn_gate_inp.scale", Dtype::kF32, {32})
                        .tensor("rope_freqs.weight", Dtype::kF32, {4}));
  const Matching matching = match(gemma4(), build);
  EXPECT_THAT(matching.findings, IsEmpty());
  EXPECT_THAT(matching.quantized, SizeIs(3));
  EXPECT_THAT(matching.plain, SizeIs(5));
  EXPECT_THAT(matching.absent_by_design, SizeIs(2));
  const WeightPair* experts = find_pair(matching.quantized, "blk.0.ffn_gate_up_exps");
  ASSERT_NE(experts, nullptr);
  EXPECT_EQ(experts->build_rows, (RowSelection{.count = 128}));
}

TEST(WeightMatching, MatchesGemma4WithMlx) {
  SafetensorsBuilder mlx =
      plain({{"language_model.model.embed_tokens.weight", {64, 32}},
             {"language_model.model.layers.0.layer_scalar", {1}},
             {"language_model.model.layers.0.pre_feedforward_layernorm.weight", {32}},
             {"language_model.model.layers.0.router.per_expert_scale", {2}},
             {"language_model.model.layers.0.router.proj.weight", {2, 32}},
             {"language_model.model.layers.0.router.scale", {32}}});
  for (const char* projection : {"gate_proj", "up_proj", "down_proj"}) {
    const std::string module =
        std::string("language_model.model.layers.0.experts.switch_glu.") + projection;
    mlx.tensor(module + ".weight", Dtype::kU32, {2, 32, 4})
        .tensor(module + ".scales", Dtype::kBF16, {2, 32, 1})
        .tensor(module + ".biases", Dtype::kBF16, {2, 32, 1});
  }
  const Matching matching = match(gemma4(), checkpoint_of(mlx));
  EXPECT_THAT(matching.findings, IsEmpty());
  EXPECT_THAT(matching.quantized, SizeIs(5));
  EXPECT_THAT(matching.plain, SizeIs(6));
  EXPECT_THAT(matching.absent_by_design, SizeIs(1));
}

TEST(WeightMatching, LearnsShapesThatBitsandbytesKeepsInItsData) {
  const Checkpoint source = checkpoint_of(plain({{"l.0.q_proj.weight", {8, 64}}}));
  const auto build = [](std::uint64_t bytes) {
    return checkpoint_of(
        SafetensorsBuilder()
            .tensor("l.0.q_proj.weight", Dtype::kU8, {bytes, 1})
            .tensor("l.0.q_proj.weight.absmax", Dtype::kF32, {bytes / 32})
            .tensor("l.0.q_proj.weight.quant_map", Dtype::kF32, {16})
            .tensor("l.0.q_proj.weight.quant_state.bitsandbytes__nf4", Dtype::kU8, {80}));
  };
  const Matching matching = match(source, build(256));
  EXPECT_THAT(matching.findings, IsEmpty());
  ASSERT_THAT(matching.quantized, SizeIs(1));
  EXPECT_EQ(matching.quantized[0].columns, 64U);
  EXPECT_EQ(matching.quantized[0].build_rows, (RowSelection{.count = 8}));
  EXPECT_THAT(codes(match(source, build(288))), ElementsAre("SHAPE_MISMATCH"));
  EXPECT_THAT(codes(match(source, build(256 + 16))), ElementsAre("WEIGHT_NOT_COMPARABLE"));
}

TEST(WeightMatching, RefusesTwoNamesForOneWeight) {
  const Checkpoint source =
      checkpoint_of(plain({{"model.norm.weight", {8}}, {"language_model.model.norm.weight", {8}}}));
  const auto weights = list_weights(source);
  EXPECT_THAT(
      match_weights(source, weights, source, weights),
      Fails(ErrorCode::kInvalidArgument,
            AllOf(HasSubstr("\"model.norm\""), HasSubstr("\"language_model.model.norm\""))));
}

TEST(WeightMatching, LinksWeightsWithTheNormBeforeThem) {
  const auto layer = [](SafetensorsBuilder builder) {
    for (const char* module :
         {"self_attn.q_proj", "mlp.up_proj", "experts.0.gate_proj", "self_attn.o_proj"}) {
      add_int4(builder, std::string("model.layers.0.") + module, 32, 32);
    }
    return builder;
  };
  const auto norm_of = [](const Matching& matching, const char* module) {
    const WeightPair* pair = find_pair(matching.quantized, std::string("model.layers.0.") + module);
    return pair == nullptr || !pair->norm ? std::string() : matching.plain[*pair->norm].name;
  };
  const Checkpoint llama =
      checkpoint_of(layer(plain({{"model.layers.0.input_layernorm.weight", {32}},
                                 {"model.layers.0.post_attention_layernorm.weight", {32}}})));
  const Matching plain_llama = match(llama, llama);
  EXPECT_EQ(norm_of(plain_llama, "self_attn.q_proj"), "model.layers.0.input_layernorm");
  EXPECT_EQ(norm_of(plain_llama, "mlp.up_proj"), "model.layers.0.post_attention_layernorm");
  EXPECT_EQ(norm_of(plain_llama, "self_attn.o_proj"), "");

  const Checkpoint gemma =
      checkpoint_of(layer(plain({{"model.layers.0.input_layernorm.weight", {32}},
                                 {"model.layers.0.post_attention_layernorm.weight", {32}},
                                 {"model.layers.0.pre_feedforward_layernorm.weight", {32}},
                                 {"model.layers.0.pre_feedforward_layernorm_2.weight", {32}}})));
  const Matching gemma_pairs = match(gemma, gemma);
  EXPECT_EQ(norm_of(gemma_pairs, "mlp.up_proj"), "model.layers.0.pre_feedforward_layernorm");
  EXPECT_EQ(norm_of(gemma_pairs, "experts.0.gate_proj"),
            "model.layers.0.pre_feedforward_layernorm_2");

  const Checkpoint olmo =
      checkpoint_of(layer(plain({{"model.layers.0.post_attention_layernorm.weight", {32}}})));
  EXPECT_EQ(norm_of(match(olmo, olmo), "mlp.up_proj"), "");
}

}  // namespace
}  // namespace gridscope::model
