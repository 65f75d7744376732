#include "gridscope/model/absences.hpp"

#include <gmock/gmock.h>

#include "model/weight_lists.hpp"

namespace gridscope::model {
namespace {

using test::checkpoint_of;
using test::SafetensorsBuilder;
using ::testing::HasSubstr;
using ::testing::Optional;

Checkpoint with_config(std::string_view config) {
  return checkpoint_of(SafetensorsBuilder().tensor("model.norm.weight", Dtype::kBF16, {4}), config);
}

constexpr std::string_view kGemma4 = R"({"model_type": "gemma4", "text_config": {
  "attention_k_eq_v": true, "layer_types": ["sliding_attention", "full_attention"],
  "num_hidden_layers": 4, "num_kv_shared_layers": 2, "tie_word_embeddings": true}})";

std::optional<std::string> explain(const Checkpoint& absent_from, std::string_view name,
                                   std::string_view canonical) {
  const Checkpoint other = with_config(kGemma4);
  const std::vector<Weight> weights = list_weights(absent_from);
  const AbsenceRules rules(absent_from, weights, sharing_facts(other, absent_from));
  return rules.explain({.name = std::string(name),
                        .canonical = std::string(canonical),
                        .spec = {},
                        .info = classify_name(std::string(name) + ".weight")},
                       canonical);
}

TEST(Absences, ReadsTheFactsOfTheSourceFirst) {
  const Checkpoint silent = with_config("{}");
  for (const auto& facts :
       {sharing_facts(with_config(kGemma4), silent), sharing_facts(silent, with_config(kGemma4))}) {
    EXPECT_TRUE(facts.tied_head);
    EXPECT_TRUE(facts.values_are_keys);
    EXPECT_THAT(facts.full_attention, ::testing::ElementsAre(false, true));
    EXPECT_EQ(facts.first_kv_shared, 2U);
  }
  const Checkpoint untied =
      with_config(R"({"model_type": "gemma4", "tie_word_embeddings": false})");
  EXPECT_FALSE(sharing_facts(untied, with_config(kGemma4)).tied_head);
  EXPECT_TRUE(sharing_facts(with_config(kGemma4), untied).tied_head);
  EXPECT_FALSE(sharing_facts(silent, silent).tied_head);
}

TEST(Absences, ExplainsATiedHead) {
  EXPECT_THAT(explain(with_config("{}"), "lm_head", "lm_head"), Optional(HasSubstr("tied")));
}

TEST(Absences, ExplainsSharedKeysAndValues) {
  const Checkpoint none = with_config("{}");
  EXPECT_THAT(explain(none, "model.layers.1.self_attn.v_proj", "layers.1.self_attn.v_proj"),
              Optional(HasSubstr("its keys")));
  EXPECT_EQ(explain(none, "model.layers.0.self_attn.v_proj", "layers.0.self_attn.v_proj"),
            std::nullopt);
  EXPECT_EQ(explain(none, "model.layers.1.self_attn.k_proj", "layers.1.self_attn.k_proj"),
            std::nullopt);
  EXPECT_THAT(explain(none, "model.layers.2.self_attn.k_proj", "layers.2.self_attn.k_proj"),
              Optional(HasSubstr("an earlier one")));
  EXPECT_THAT(explain(none, "model.layers.3.self_attn.k_norm", "layers.3.self_attn.k_norm"),
              Optional(HasSubstr("an earlier one")));
  EXPECT_EQ(explain(none, "model.layers.3.self_attn.q_proj", "layers.3.self_attn.q_proj"),
            std::nullopt);
}

TEST(Absences, ExplainsTowersOnlyWhenAllOfThemIsGone) {
  const std::string_view tower = "model.vision_tower.encoder.layers.0.mlp.up_proj";
  EXPECT_THAT(explain(with_config("{}"), tower, "vision_tower.encoder.layers.0.mlp.up_proj"),
              Optional(HasSubstr("nothing of the vision tower")));
  const Checkpoint some =
      checkpoint_of(SafetensorsBuilder().tensor("model.vision_tower.std_bias", Dtype::kBF16, {4}));
  EXPECT_EQ(explain(some, tower, "vision_tower.encoder.layers.0.mlp.up_proj"), std::nullopt);
}

TEST(Absences, ExplainsAliasesAndComputedTables) {
  const Checkpoint aliased =
      checkpoint_of(SafetensorsBuilder()
                        .tensor("model.embed_tokens.weight", Dtype::kBF16, {4, 4})
                        .metadata("decoder.embed.weight", "model.embed_tokens.weight"));
  EXPECT_THAT(explain(aliased, "decoder.embed", "decoder.embed"),
              Optional(HasSubstr("the same tensor as \"model.embed_tokens.weight\"")));
  EXPECT_THAT(explain(with_config("{}"), "rope_freqs", "rope_freqs"),
              Optional(HasSubstr("computed")));
  EXPECT_EQ(explain(with_config("{}"), "model.norm2", "norm2"), std::nullopt);
}

}  // namespace
}  // namespace gridscope::model
