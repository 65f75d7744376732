#include "gridscope/model/norms_before.hpp"

#include <gmock/gmock.h>

namespace gridscope::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NormsBefore, OfAttention) {
  for (const char* name : {"layers.3.self_attn.q_proj", "layers.3.self_attn.k_proj",
                           "layers.3.self_attn.v_proj", "layers.3.self_attn.qkv_proj"}) {
    EXPECT_THAT(norms_before(name), ElementsAre("layers.3.input_layernorm")) << name;
  }
  EXPECT_THAT(norms_before("layers.3.self_attn.q_b_proj"),
              ElementsAre("layers.3.self_attn.q_a_layernorm"));
}

TEST(NormsBefore, OfFeedForwardBlocks) {
  EXPECT_THAT(
      norms_before("layers.0.mlp.up_proj"),
      ElementsAre("layers.0.pre_feedforward_layernorm", "layers.0.post_attention_layernorm"));
  EXPECT_THAT(
      norms_before("layers.0.shared_expert.gate_proj"),
      ElementsAre("layers.0.pre_feedforward_layernorm", "layers.0.post_attention_layernorm"));
  for (const char* name : {"layers.0.experts.7.gate_proj", "layers.0.experts.gate_up_proj"}) {
    EXPECT_THAT(norms_before(name), ElementsAre("layers.0.pre_feedforward_layernorm_2",
                                                "layers.0.pre_feedforward_layernorm",
                                                "layers.0.post_attention_layernorm"));
  }
  EXPECT_THAT(norms_before("layers.0.router"),
              ElementsAre("layers.0.router.scale", "layers.0.pre_feedforward_layernorm",
                          "layers.0.post_attention_layernorm"));
}

TEST(NormsBefore, OfGpt2AndTheHead) {
  EXPECT_THAT(norms_before("h.11.attn.c_attn"), ElementsAre("h.11.ln_1"));
  EXPECT_THAT(norms_before("h.11.mlp.c_fc"), ElementsAre("h.11.ln_2"));
  EXPECT_THAT(norms_before("lm_head"), ElementsAre("norm", "ln_f"));
}

TEST(NormsBefore, OfWhatReadsNone) {
  for (const char* name :
       {"layers.0.self_attn.o_proj", "layers.0.mlp.down_proj", "layers.0.experts.1.down_proj",
        "layers.0.self_attn.q_proj.bias", "layers.0.input_layernorm", "embed_tokens",
        "h.0.attn.c_proj", "vision_tower.encoder.layers.0.mlp.up_proj", ""}) {
    EXPECT_THAT(norms_before(name), IsEmpty()) << name;
  }
}

}  // namespace
}  // namespace gridscope::model
