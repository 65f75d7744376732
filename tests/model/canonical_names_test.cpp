#include "gridscope/model/canonical_names.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace gridscope::model {
namespace {

TEST(CanonicalNames, BringsFamiliesAndWrappersToOneForm) {
  for (const char* name :
       {"model.language_model.layers.3.self_attn.q_proj",
        "language_model.model.layers.3.self_attn.q_proj", "model.layers.3.self_attn.q_proj",
        "language_model.layers.3.self_attn.q_proj",
        "module._orig_mod.model.layers.3.self_attn.q_proj",
        "base_model.model.model.layers.3.self_attn.q_proj.base_layer"}) {
    EXPECT_EQ(canonical_weight(name), "layers.3.self_attn.q_proj") << name;
  }
  EXPECT_EQ(canonical_weight("language_model.lm_head"), "lm_head");
  EXPECT_EQ(canonical_weight("transformer.h.0.attn.c_attn"), "h.0.attn.c_attn");
  EXPECT_EQ(canonical_weight("model.vision_tower.encoder.layers.0.mlp.up_proj.linear"),
            "vision_tower.encoder.layers.0.mlp.up_proj");
}

TEST(CanonicalNames, BringsExpertsToOnePlace) {
  EXPECT_EQ(canonical_weight("model.layers.0.block_sparse_moe.experts.3.w1"),
            "layers.0.experts.3.gate_proj");
  EXPECT_EQ(canonical_weight("model.layers.0.block_sparse_moe.experts.3.w3"),
            "layers.0.experts.3.up_proj");
  EXPECT_EQ(canonical_weight("model.layers.0.block_sparse_moe.experts.3.w2"),
            "layers.0.experts.3.down_proj");
  EXPECT_EQ(canonical_weight("model.layers.0.mlp.switch_mlp.up_proj"), "layers.0.experts.up_proj");
  EXPECT_EQ(canonical_weight("language_model.model.layers.0.experts.switch_glu.gate_proj"),
            "layers.0.experts.gate_proj");
  EXPECT_EQ(canonical_weight("model.language_model.layers.0.experts.gate_up_proj"),
            "layers.0.experts.gate_up_proj");
  EXPECT_EQ(canonical_weight("model.layers.0.mlp.experts.gate_up_projs.7"),
            "layers.0.experts.7.gate_up_proj");
  EXPECT_EQ(canonical_weight("language_model.model.layers.0.feed_forward.experts.down_proj"),
            "layers.0.experts.down_proj");
  EXPECT_EQ(canonical_weight("model.layers.0.mlp.shared_experts.up_proj"),
            "layers.0.shared_expert.up_proj");
}

TEST(CanonicalNames, TellsRoutersFromGateProjections) {
  EXPECT_EQ(canonical_weight("model.layers.0.mlp.gate"), "layers.0.router");
  EXPECT_EQ(canonical_weight("model.layers.0.block_sparse_moe.gate"), "layers.0.router");
  EXPECT_EQ(canonical_weight("model.layers.0.mlp.router"), "layers.0.router");
  EXPECT_EQ(canonical_weight("model.layers.0.router.proj"), "layers.0.router");
  EXPECT_EQ(canonical_weight("model.layers.0.router.scale"), "layers.0.router.scale");
  EXPECT_EQ(canonical_weight("model.layers.0.mlp.gate.e_score_correction_bias"),
            "layers.0.router.e_score_correction_bias");
  EXPECT_EQ(canonical_weight("model.layers.0.mlp.shared_expert_gate"),
            "layers.0.shared_expert_gate");
  EXPECT_EQ(canonical_weight("model.layers.0.mlp.gate_proj"), "layers.0.mlp.gate_proj");
  EXPECT_EQ(canonical_weight("model.layers.0.feed_forward.w1"), "layers.0.mlp.gate_proj");
  EXPECT_EQ(canonical_weight("model.layers.0.gate"), "layers.0.gate");
}

TEST(CanonicalNames, KnowsTheOriginalNamesOfGptOss) {
  for (const auto& [original, canonical] :
       {std::pair("embedding", "embed_tokens"), std::pair("unembedding", "lm_head"),
        std::pair("norm.scale", "norm"),
        std::pair("block.12.attn.norm.scale", "layers.12.input_layernorm"),
        std::pair("block.12.attn.qkv", "layers.12.self_attn.qkv_proj"),
        std::pair("block.12.attn.out", "layers.12.self_attn.o_proj"),
        std::pair("block.12.attn.sinks", "layers.12.self_attn.sinks"),
        std::pair("block.12.mlp.norm.scale", "layers.12.post_attention_layernorm"),
        std::pair("block.12.mlp.gate", "layers.12.router"),
        std::pair("block.12.mlp.mlp1_weight", "layers.12.experts.gate_up_proj"),
        std::pair("block.12.mlp.mlp1_bias", "layers.12.experts.gate_up_proj.bias"),
        std::pair("block.12.mlp.mlp2_weight", "layers.12.experts.down_proj"),
        std::pair("block.12.mlp.mlp2_bias", "layers.12.experts.down_proj.bias")}) {
    EXPECT_EQ(canonical_weight(original), canonical) << original;
  }
  for (const char* other : {"block.12.attn.rope", "block.x.attn.qkv", "block.12",
                            "encoder.block.0.attn.out", "norm.bias"}) {
    EXPECT_EQ(canonical_weight(other), other);
  }
}

TEST(CanonicalNames, KnowsTheNamesOfMistralAndMeta) {
  for (const auto& [native, canonical] :
       {std::pair("tok_embeddings", "embed_tokens"),
        std::pair("output", "lm_head"),
        std::pair("norm", "norm"),
        std::pair("layers.3.attention.wq", "layers.3.self_attn.q_proj"),
        std::pair("layers.3.attention.wk", "layers.3.self_attn.k_proj"),
        std::pair("layers.3.attention.wv", "layers.3.self_attn.v_proj"),
        std::pair("layers.3.attention.wo", "layers.3.self_attn.o_proj"),
        std::pair("layers.3.attention_norm", "layers.3.input_layernorm"),
        std::pair("layers.3.ffn_norm", "layers.3.post_attention_layernorm"),
        std::pair("layers.3.attention.wq_a", "layers.3.self_attn.q_a_proj"),
        std::pair("layers.3.attention.wq_b", "layers.3.self_attn.q_b_proj"),
        std::pair("layers.3.attention.wkv_a_with_mqa", "layers.3.self_attn.kv_a_proj_with_mqa"),
        std::pair("layers.3.attention.wkv_b", "layers.3.self_attn.kv_b_proj"),
        std::pair("layers.3.attention.q_a_norm", "layers.3.self_attn.q_a_layernorm"),
        std::pair("layers.3.attention.kv_a_norm", "layers.3.self_attn.kv_a_layernorm"),
        std::pair("layers.3.feed_forward.w1", "layers.3.mlp.gate_proj"),
        std::pair("layers.3.feed_forward.w2", "layers.3.mlp.down_proj"),
        std::pair("layers.3.feed_forward.w3", "layers.3.mlp.up_proj"),
        std::pair("layers.3.feed_forward.gate", "layers.3.router"),
        std::pair("layers.3.gate", "layers.3.router"),
        std::pair("layers.3.experts.7.w1", "layers.3.experts.7.gate_proj"),
        std::pair("layers.3.shared_experts.w3", "layers.3.shared_expert.up_proj"),
        std::pair("layers.3.feed_forward.experts.7.w2", "layers.3.experts.7.down_proj")}) {
    EXPECT_EQ(canonical_weight(native), canonical) << native;
  }
  for (const char* other : {"layers.3.attention.wx", "layers.3.attention", "layers.x.ffn_norm"}) {
    EXPECT_EQ(canonical_weight(other), other);
  }
}

TEST(CanonicalNames, KnowsTheNamesOfMistralsVisionTower) {
  for (const auto& [native, canonical] :
       {std::pair("vision_encoder.transformer.layers.3.attention.wq",
                  "vision_tower.transformer.layers.3.attention.q_proj"),
        std::pair("vision_encoder.transformer.layers.3.attention.wo",
                  "vision_tower.transformer.layers.3.attention.o_proj"),
        std::pair("vision_encoder.transformer.layers.3.feed_forward.w2",
                  "vision_tower.transformer.layers.3.feed_forward.down_proj"),
        std::pair("vision_encoder.transformer.layers.3.ffn_norm",
                  "vision_tower.transformer.layers.3.ffn_norm"),
        std::pair("vision_encoder.ln_pre", "vision_tower.ln_pre"),
        std::pair("vision_encoder.patch_conv", "vision_tower.patch_conv"),
        std::pair("vision_language_adapter.w_in", "multi_modal_projector.linear_1"),
        std::pair("vision_language_adapter.w_out", "multi_modal_projector.linear_2"),
        std::pair("patch_merger.merging_layer", "multi_modal_projector.patch_merger.merging_layer"),
        std::pair("pre_mm_projector_norm", "multi_modal_projector.norm")}) {
    EXPECT_EQ(canonical_weight(native), canonical) << native;
    EXPECT_EQ(canonical_weight("model." + std::string(canonical)), canonical);
  }
}

TEST(CanonicalNames, TellsInWhichOrderHeadsKeepTheirRows) {
  EXPECT_TRUE(alternates_rotary_halves("layers.3.attention.wq"));
  EXPECT_TRUE(alternates_rotary_halves("layers.3.attention.wk.bias"));
  EXPECT_FALSE(alternates_rotary_halves("layers.3.attention.wv"));
  EXPECT_FALSE(alternates_rotary_halves("model.layers.3.self_attn.q_proj"));
  EXPECT_TRUE(alternates_rotary_halves("vision_encoder.transformer.layers.0.attention.wq"));
  EXPECT_FALSE(alternates_rotary_halves("vision_tower.transformer.layers.0.attention.q_proj"));
  EXPECT_FALSE(alternates_rotary_halves("layers.3.attention.wq_b"));
  EXPECT_FALSE(alternates_rotary_halves("attention.wq"));
  EXPECT_FALSE(alternates_rotary_halves(""));
}

TEST(CanonicalNames, LeavesOtherNamesAlone) {
  EXPECT_EQ(canonical_weight("model.layers.0"), "layers.0");
  EXPECT_EQ(canonical_weight("model.layers.x.mlp.gate"), "layers.x.mlp.gate");
  EXPECT_EQ(canonical_weight("model.layers.0.mlp"), "layers.0.mlp");
  EXPECT_EQ(canonical_weight("audio_tower.layers.0.feed_forward.w1"),
            "audio_tower.layers.0.feed_forward.w1");
}

TEST(CanonicalNames, NamesTheMatricesOfAStack) {
  EXPECT_EQ(matrix_of_stack("layers.0.experts.down_proj", 5), "layers.0.experts.5.down_proj");
  EXPECT_EQ(matrix_of_stack("layers.0.experts.down_proj.bias", 5),
            "layers.0.experts.5.down_proj.bias");
  EXPECT_EQ(matrix_of_stack("layers.0.experts.5.down_proj", 5), std::nullopt);
  EXPECT_EQ(matrix_of_stack("layers.0.mlp.down_proj", 5), std::nullopt);
  EXPECT_EQ(matrix_of_stack("altup_projections", 2), "altup_projections.2");
}

TEST(CanonicalNames, ReplacesProjections) {
  EXPECT_EQ(with_projection("layers.0.mlp.gate_up_proj", "gate_up_proj", "up_proj"),
            "layers.0.mlp.up_proj");
  EXPECT_EQ(with_projection("layers.0.mlp.gate_up_proj.bias", "gate_up_proj", "up_proj"),
            "layers.0.mlp.up_proj.bias");
  EXPECT_EQ(with_projection("gate_up_proj", "gate_up_proj", "up_proj"), "up_proj");
  EXPECT_EQ(with_projection("layers.0.mlp.up_proj", "gate_up_proj", "up_proj"), std::nullopt);
}

TEST(CanonicalNames, KnowsWhatIsFusedTogether) {
  for (const char* name : {"layers.0.experts.3.up_proj", "layers.0.experts.gate_proj",
                           "layers.0.experts.gate_up_proj", "layers.0.experts.0.gate_up_proj"}) {
    EXPECT_EQ(projection_family(name), "layers.0.experts.gate_up_proj") << name;
  }
  EXPECT_EQ(projection_family("layers.0.self_attn.v_proj.bias"),
            "layers.0.self_attn.qkv_proj.bias");
  EXPECT_EQ(projection_family("layers.0.experts.3.down_proj"), "layers.0.experts.down_proj");
  EXPECT_EQ(projection_family("norm"), "norm");
  EXPECT_EQ(projection_family(""), "");
}

TEST(CanonicalNames, KnowsBiases) {
  EXPECT_EQ(canonical_bias("layers.0.self_attn.q_proj"), "layers.0.self_attn.q_proj.bias");
  EXPECT_EQ(canonical_bias("layers.0.router.e_score_correction_bias"),
            "layers.0.router.e_score_correction_bias");
  EXPECT_TRUE(is_bias("layers.0.self_attn.q_proj.bias"));
  EXPECT_FALSE(is_bias("layers.0.self_attn.q_proj"));
}

}  // namespace
}  // namespace gridscope::model
