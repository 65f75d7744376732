#include "gridscope/model/gguf_names.hpp"

#include <gtest/gtest.h>

namespace gridscope::model {
namespace {

TEST(GgufNames, MapsTheNamesOfALayer) {
  EXPECT_EQ(canonical_gguf_name("blk.12.attn_q", "llama"), "layers.12.self_attn.q_proj");
  EXPECT_EQ(canonical_gguf_name("blk.0.ffn_gate_up_exps", "gemma4"),
            "layers.0.experts.gate_up_proj");
  EXPECT_EQ(canonical_gguf_name("blk.0.nextn.eh_proj", "glm4moe"), "layers.0.eh_proj");
  EXPECT_EQ(canonical_gguf_name("blk.0.exp_probs_b", "deepseek2"),
            "layers.0.router.e_score_correction_bias");
}

TEST(GgufNames, MapsWhatOnlyGemma4Has) {
  EXPECT_EQ(canonical_gguf_name("blk.0.ffn_gate_inp", "gemma4"), "layers.0.router");
  EXPECT_EQ(canonical_gguf_name("blk.0.ffn_gate_inp.scale", "gemma4"), "layers.0.router.scale");
  EXPECT_EQ(canonical_gguf_name("blk.0.ffn_down_exps.scale", "gemma4"),
            "layers.0.router.per_expert_scale");
  EXPECT_EQ(canonical_gguf_name("blk.0.layer_output_scale", "gemma4"), "layers.0.layer_scalar");
  EXPECT_EQ(canonical_gguf_name("blk.0.proj", "gemma4"), "layers.0.per_layer_projection");
  EXPECT_EQ(canonical_gguf_name("per_layer_token_embd", "gemma4"), "embed_tokens_per_layer");
}

TEST(GgufNames, MapsWhatStandsOutsideOfLayers) {
  EXPECT_EQ(canonical_gguf_name("token_embd", "llama"), "embed_tokens");
  EXPECT_EQ(canonical_gguf_name("output", "llama"), "lm_head");
  EXPECT_EQ(canonical_gguf_name("output_norm", "llama"), "norm");
}

TEST(GgufNames, KnowsWhereAnArchitectureMeansSomethingElse) {
  EXPECT_EQ(canonical_gguf_name("blk.1.ffn_norm", "llama"), "layers.1.post_attention_layernorm");
  EXPECT_EQ(canonical_gguf_name("blk.1.ffn_norm", "gemma"), "layers.1.post_attention_layernorm");
  EXPECT_EQ(canonical_gguf_name("blk.1.ffn_norm", "gemma3"), "layers.1.pre_feedforward_layernorm");
  EXPECT_EQ(canonical_gguf_name("blk.1.ffn_up", "phi3"), "layers.1.mlp.gate_up_proj");
  EXPECT_EQ(canonical_gguf_name("blk.1.attn_qkv", "gpt2"), "h.1.attn.c_attn");
  EXPECT_EQ(canonical_gguf_name("output_norm", "gpt2"), "ln_f");
}

TEST(GgufNames, KeepsNamesThatItDoesNotKnow) {
  EXPECT_EQ(canonical_gguf_name("blk.3.new_thing", "llama"), "layers.3.new_thing");
  EXPECT_EQ(canonical_gguf_name("other", "llama"), "other");
  EXPECT_EQ(canonical_gguf_name("blk.", "llama"), "blk.");
  EXPECT_EQ(canonical_gguf_name("blk.3", "llama"), "blk.3");
  EXPECT_EQ(canonical_gguf_name("", "llama"), "");
}

TEST(GgufNames, KnowsWhatTheConverterChanges) {
  EXPECT_TRUE(gguf_permutes_heads("llama"));
  EXPECT_FALSE(gguf_permutes_heads("qwen3"));
  EXPECT_FALSE(gguf_permutes_heads("llama4"));
  EXPECT_EQ(gguf_norm_offset("gemma3", "layers.0.self_attn.q_norm"), 1.0);
  EXPECT_EQ(gguf_norm_offset("gemma2", "norm"), 1.0);
  EXPECT_EQ(gguf_norm_offset("gemma3", "layers.0.self_attn.q_proj"), 0.0);
  EXPECT_EQ(gguf_norm_offset("gemma3n", "norm"), 0.0);
  EXPECT_EQ(gguf_norm_offset("gemma4", "norm"), 0.0);
  EXPECT_TRUE(is_generated_by_gguf("rope_freqs"));
  EXPECT_TRUE(is_generated_by_gguf("rope_factors_long"));
  EXPECT_FALSE(is_generated_by_gguf("output"));
}

}  // namespace
}  // namespace gridscope::model
