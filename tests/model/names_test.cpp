#include "gridscope/model/names.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "model/tensor_values.hpp"

namespace gridscope::model {
namespace {

struct Case {
  std::string_view name;
  Part part;
  Role role;
  std::optional<std::uint32_t> layer = {};
};

void expect_all(const std::vector<Case>& cases, const NameContext& context = {}) {
  for (const Case& c : cases) {
    const NameInfo info = classify_name(c.name, context);
    EXPECT_EQ(part_key(info.part), part_key(c.part)) << c.name;
    EXPECT_EQ(role_key(info.role), role_key(c.role)) << c.name;
    EXPECT_EQ(info.layer, c.layer) << c.name;
  }
}

constexpr Part kBody = Part::kTransformerBody;
constexpr Part kVocabulary = Part::kVocabularyEmbedding;
constexpr Part kVision = Part::kVisionTower;
constexpr Part kAudio = Part::kAudioTower;

TEST(Names, ReadsGemma) {
  expect_all({
      {"model.language_model.embed_tokens.weight", kVocabulary, Role::kEmbedTokens},
      {"lm_head.weight_packed", kVocabulary, Role::kLmHead},
      {"model.language_model.embed_tokens_per_layer.weight", Part::kPerLayerEmbedding,
       Role::kPerLayerEmbedding},
      {"model.language_model.per_layer_model_projection.weight_scale", kBody, Role::kOther},
      {"model.language_model.per_layer_projection_norm.weight", kBody, Role::kNorm},
      {"model.language_model.layers.7.self_attn.q_proj.weight_packed", kBody, Role::kAttention, 7},
      {"model.language_model.layers.7.self_attn.q_norm.weight", kBody, Role::kNorm, 7},
      {"model.language_model.layers.7.layer_scalar", kBody, Role::kOther, 7},
      {"model.language_model.layers.3.experts.gate_up_proj", kBody, Role::kRoutedExperts, 3},
      {"model.language_model.layers.3.experts.12.up_proj.weight_scale", kBody, Role::kRoutedExperts,
       3},
      {"model.language_model.layers.3.router.per_expert_scale", kBody, Role::kRouter, 3},
      {"model.vision_tower.encoder.layers.1.mlp.up_proj.linear.weight", kVision, Role::kMlp, 1},
      {"model.vision_tower.patch_embedder.position_embedding_table", kVision,
       Role::kPositionEmbedding},
      {"model.embed_vision.embedding_projection.weight", kVision, Role::kProjector},
      {"model.embed_audio.embedding_projection.weight", kAudio, Role::kProjector},
      {"model.audio_tower.layers.2.lconv1d.depthwise_conv1d.weight", kAudio, Role::kConvolution, 2},
      {"model.vision_embedder.patch_ln1.bias", kVision, Role::kNorm},
  });
}

TEST(Names, ReadsQwenLlamaMistralAndDeepSeek) {
  expect_all(
      {
          {"model.layers.0.mlp.down_proj.qweight", kBody, Role::kMlp, 0},
          {"model.layers.0.mlp.gate.weight", kBody, Role::kRouter, 0},
          {"model.layers.0.mlp.gate.e_score_correction_bias", kBody, Role::kRouter, 0},
          {"model.layers.0.mlp.shared_experts.up_proj.weight", kBody, Role::kSharedExperts, 0},
          {"model.layers.0.mlp.shared_expert_gate.weight", kBody, Role::kRouter, 0},
          {"model.layers.60.mlp.experts.255.w1.weight", kBody, Role::kRoutedExperts, 60},
          {"model.layers.61.eh_proj.weight", Part::kMtp, Role::kOther, 61},
          {"model.layers.61.self_attn.q_proj.weight", Part::kMtp, Role::kAttention, 61},
          {"model.layers.61.embed_tokens.weight", Part::kMtp, Role::kOther, 61},
          {"mtp.layers.0.mlp.up_proj.weight", Part::kMtp, Role::kMlp, 0},
          {"layers.4.attention.wq.weight", kBody, Role::kAttention, 4},
          {"layers.4.feed_forward.w1.weight", kBody, Role::kMlp, 4},
          {"tok_embeddings.weight", kVocabulary, Role::kEmbedTokens},
          {"output.weight", kVocabulary, Role::kLmHead},
          {"pre_mm_projector_norm.weight", kVision, Role::kNorm},
          {"vision_language_adapter.w_in.weight", kVision, Role::kProjector},
          {"norm.weight", kBody, Role::kNorm},
          {"model.norm.weight", kBody, Role::kNorm},
          {"visual.patch_embed.proj.weight", kVision, Role::kConvolution},
          {"visual.merger.mlp.0.weight", kVision, Role::kProjector},
          {"model.visual.blocks.3.attn.qkv.weight", kVision, Role::kAttention, 3},
          {"vision_model.encoder.layers.3.self_attn.k_proj.weight", kVision, Role::kAttention, 3},
          {"multi_modal_projector.linear_1.weight", kVision, Role::kProjector},
          {"mlp1.1.weight", kVision, Role::kProjector},
          {"language_model.lm_head.weight", kVocabulary, Role::kLmHead},
          {"thinker.audio_tower.layers.0.fc1.weight", kAudio, Role::kMlp, 0},
          {"thinker.model.layers.0.mlp.up_proj.weight", kBody, Role::kMlp, 0},
      },
      {.mtp_from = 61});
}

TEST(Names, ReadsGptOss) {
  expect_all({
      {"embedding.weight", kVocabulary, Role::kEmbedTokens},
      {"unembedding.weight", kVocabulary, Role::kLmHead},
      {"block.2.attn.norm.scale", kBody, Role::kNorm, 2},
      {"block.2.attn.qkv.weight", kBody, Role::kAttention, 2},
      {"block.2.attn.sinks", kBody, Role::kAttention, 2},
      {"block.2.mlp.gate.weight", kBody, Role::kRouter, 2},
      {"block.2.mlp.mlp1_weight.blocks", kBody, Role::kRoutedExperts, 2},
      {"block.2.mlp.mlp2_bias", kBody, Role::kRoutedExperts, 2},
  });
}

TEST(Names, ReadsGguf) {
  expect_all(
      {
          {"token_embd.weight", kVocabulary, Role::kEmbedTokens},
          {"output.weight", kVocabulary, Role::kLmHead},
          {"output_norm.weight", kBody, Role::kNorm},
          {"per_layer_token_embd.weight", Part::kPerLayerEmbedding, Role::kPerLayerEmbedding},
          {"per_layer_model_proj.weight", kBody, Role::kOther},
          {"blk.5.attn_q.weight", kBody, Role::kAttention, 5},
          {"blk.5.attn_norm.weight", kBody, Role::kNorm, 5},
          {"blk.5.ffn_down.weight", kBody, Role::kMlp, 5},
          {"blk.5.ffn_up_exps.weight", kBody, Role::kRoutedExperts, 5},
          {"blk.5.ffn_up_shexp.weight", kBody, Role::kSharedExperts, 5},
          {"blk.5.ffn_gate_inp.weight", kBody, Role::kRouter, 5},
          {"blk.5.nextn.eh_proj.weight", Part::kMtp, Role::kOther, 5},
          {"rope_freqs.weight", kBody, Role::kPositionEmbedding},
          {"v.blk.2.attn_out.weight", kVision, Role::kAttention, 2},
          {"mm.0.weight", kVision, Role::kProjector},
          {"a.blk.2.ffn_up.weight", kAudio, Role::kMlp, 2},
          {"mm.a.mlp.1.weight", kAudio, Role::kProjector},
          {"v.class_embd", kVision, Role::kOther},
          {"v", Part::kOther, Role::kOther},
          {"a", Part::kOther, Role::kOther},
          {"v.weight", Part::kOther, Role::kOther},
          {"a.bias", Part::kOther, Role::kOther},
      },
      {.container = format::Container::kGguf});
}

TEST(Names, KeepsGgufsShortNamesToGguf) {
  expect_all({
      {"a.foo.weight", Part::kOther, Role::kOther},
      {"v.head.weight", Part::kOther, Role::kOther},
      {"mm.0.weight", Part::kOther, Role::kOther},
      {"a.blk.2.ffn_up.weight", kBody, Role::kMlp, 2},
      {"mlp1.1.weight", kVision, Role::kProjector},
  });
}

TEST(Names, ReadsMlxEncodersAndOthers) {
  expect_all({
      {"language_model.model.layers.1.mlp.switch_glu.up_proj.scales", kBody, Role::kRoutedExperts,
       1},
      {"embeddings.word_embeddings.weight", kVocabulary, Role::kEmbedTokens},
      {"embeddings.position_embeddings.weight", kBody, Role::kPositionEmbedding},
      {"embeddings.LayerNorm.weight", kBody, Role::kNorm},
      {"encoder.layer.3.attention.self.query.weight", kBody, Role::kAttention, 3},
      {"encoder.layer.3.output.dense.weight", kBody, Role::kMlp, 3},
      {"encoder.layer.3.output.LayerNorm.bias", kBody, Role::kNorm, 3},
      {"pooler.dense.weight", kBody, Role::kOther},
      {"bert.pooler.dense.weight", kBody, Role::kOther},
      {"shared.weight", kVocabulary, Role::kEmbedTokens},
      {"transformer.embedding.word_embeddings.weight", kVocabulary, Role::kEmbedTokens},
      {"transformer.output_layer.weight", kVocabulary, Role::kLmHead},
      {"encoder.block.0.layer.0.SelfAttention.q.weight", kBody, Role::kAttention, 0},
      {"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", kBody,
       Role::kPositionEmbedding, 0},
      {"transformer.h.2.mlp.c_fc.weight", kBody, Role::kMlp, 2},
      {"transformer.wte.weight", kVocabulary, Role::kEmbedTokens},
      {"gpt_neox.embed_in.weight", kVocabulary, Role::kEmbedTokens},
      {"backbone.embeddings.weight", kVocabulary, Role::kEmbedTokens},
      {"transformer_blocks.0.attn1.to_q.weight", kBody, Role::kAttention, 0},
      {"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", kBody, Role::kAttention,
       0},
      {"_orig_mod.model.layers.0.self_attn.q_proj.base_layer.weight", kBody, Role::kAttention, 0},
      {"linear.weight", Part::kOther, Role::kOther},
      {"score.weight", Part::kOther, Role::kOther},
      {"", Part::kOther, Role::kOther},
      {"...", Part::kOther, Role::kOther},
  });
}

TEST(Names, SurvivesDeepNamesAndHugeNumbers) {
  std::string deep = "model.layers.99999999999.self_attn";
  for (int i = 0; i < 100; ++i) deep += ".x";
  EXPECT_FALSE(classify_name(deep).layer);
  EXPECT_EQ(classify_name("model.layers.4294967295.norm.weight").layer, 4294967295U);
}

std::vector<NameInfo> settled(const std::vector<format::TensorInfo>& tensors) {
  std::vector<NameInfo> names;
  for (const auto& tensor : tensors) names.push_back(classify_name(tensor.name));
  settle_parts(tensors, names);
  return names;
}

TEST(Names, GivesAProjectorToTheOnlyTower) {
  const auto audio =
      settled({test::tensor("audio_tower.layers.0.fc1.weight", Dtype::kBF16, {2, 2}),
               test::tensor("multi_modal_projector.linear.weight", Dtype::kBF16, {2, 2})});
  EXPECT_EQ(audio[1].part, kAudio);
  const auto both =
      settled({test::tensor("audio_tower.layers.0.fc1.weight", Dtype::kBF16, {2, 2}),
               test::tensor("vision_tower.layers.0.fc1.weight", Dtype::kBF16, {2, 2}),
               test::tensor("multi_modal_projector.linear.weight", Dtype::kBF16, {2, 2})});
  EXPECT_EQ(both[2].part, kVision);
}

TEST(Names, TakesTheEncoderOfASpeechModelForAnAudioTower) {
  const auto whisper =
      settled({test::tensor("model.encoder.conv1.weight", Dtype::kF16, {4, 80, 3}),
               test::tensor("model.encoder.layers.0.self_attn.q_proj.weight", Dtype::kF16, {4, 4}),
               test::tensor("model.decoder.layers.0.fc1.weight", Dtype::kF16, {4, 4}),
               test::tensor("model.decoder.embed_tokens.weight", Dtype::kF16, {8, 4})});
  EXPECT_EQ(whisper[0].part, kAudio);
  EXPECT_EQ(whisper[1].part, kAudio);
  EXPECT_EQ(whisper[2].part, kBody);
  EXPECT_EQ(whisper[3].part, kVocabulary);
}

TEST(Names, BringsFamiliesToOneForm) {
  for (const char* name :
       {"model.language_model.layers.0.mlp.up_proj", "language_model.model.layers.0.mlp.up_proj",
        "model.layers.0.mlp.up_proj", "language_model.layers.0.mlp.up_proj",
        "module.model.layers.0.mlp.up_proj",
        "base_model.model.model.layers.0.mlp.up_proj.base_layer"}) {
    EXPECT_EQ(canonical_module(name), "layers.0.mlp.up_proj") << name;
  }
  EXPECT_EQ(canonical_module("language_model.lm_head"), "lm_head");
  EXPECT_EQ(canonical_module("model.vision_tower.encoder.layers.0.q_proj.linear"),
            "vision_tower.encoder.layers.0.q_proj");
  EXPECT_EQ(canonical_module("model.visual.blocks.0"), "visual.blocks.0");
  EXPECT_EQ(canonical_module("blk.0.attn_q"), "blk.0.attn_q");
  EXPECT_EQ(canonical_module("model"), "model");
  EXPECT_EQ(canonical_module("lm.linear"), "lm.linear");
}

TEST(Names, GivesEveryPartAndRoleItsOwnWords) {
  std::set<std::string_view> words;
  for (int i = 0; i <= static_cast<int>(Part::kOther); ++i) {
    words.insert(part_key(static_cast<Part>(i)));
    EXPECT_FALSE(part_title(static_cast<Part>(i)).empty());
  }
  EXPECT_EQ(words.size(), 7U);
  words.clear();
  for (int i = 0; i <= static_cast<int>(Role::kOther); ++i) {
    words.insert(role_key(static_cast<Role>(i)));
    EXPECT_FALSE(role_title(static_cast<Role>(i)).empty());
  }
  EXPECT_EQ(words.size(), 13U);
}

}  // namespace
}  // namespace gridscope::model
