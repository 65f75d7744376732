#include "gridscope/model/config.hpp"

#include <gmock/gmock.h>

#include "support/matchers.hpp"

namespace gridscope::model {
namespace {

using test::Fails;
using test::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelConfig parse(std::string_view text) {
  auto config = parse_config(text, "config.json");
  EXPECT_THAT(config, IsOk());
  return config ? *std::move(config) : ModelConfig();
}

TEST(Config, ReadsAWrapperOfALanguageModel) {
  const ModelConfig config = parse(R"({"model_type": "gemma4", "architectures": ["A"],
    "text_config": {"hidden_size": 1536, "vocab_size": 262144, "num_hidden_layers": 35,
                    "num_kv_shared_layers": 20, "tie_word_embeddings": false}, "tie_word_embeddings": true})");
  EXPECT_EQ(config.source, "config.json");
  EXPECT_EQ(config.model_type, "gemma4");
  EXPECT_THAT(config.architectures, ElementsAre("A"));
  EXPECT_EQ(config.hidden_size, 1536U);
  EXPECT_EQ(config.vocab_size, 262144U);
  EXPECT_EQ(config.num_hidden_layers, 35U);
  EXPECT_EQ(config.num_kv_shared_layers, 20U);
  EXPECT_EQ(config.tie_word_embeddings, false);
}

TEST(Config, TellsAHeadsWidth) {
  EXPECT_EQ(parse(R"({"hidden_size": 64, "num_attention_heads": 4})").head_dim, 16U);
  EXPECT_EQ(parse(R"({"hidden_size": 64, "num_attention_heads": 4, "head_dim": 32})").head_dim,
            32U);
  EXPECT_EQ(parse(R"({"hidden_size": 64, "num_attention_heads": 0})").head_dim, std::nullopt);
  EXPECT_EQ(parse(R"({"num_attention_heads": 4})").head_dim, std::nullopt);
  EXPECT_EQ(
      parse(R"({"vision_config": {"hidden_size": 64, "num_attention_heads": 4}})").vision_head_dim,
      16U);
  EXPECT_EQ(parse(R"({"vision_encoder": {"head_dim": 8}})").vision_head_dim, 8U);
  EXPECT_EQ(parse(R"({"hidden_size": 64, "num_attention_heads": 4, "vision_config": []})")
                .vision_head_dim,
            std::nullopt);
  format::TensorTable table;
  table.metadata = {{"general.architecture", "llama"},
                    {"llama.embedding_length", "64"},
                    {"llama.attention.head_count", "8"}};
  EXPECT_EQ(config_from_gguf(table).head_dim, 8U);
  table.metadata.emplace_back("llama.attention.key_length", "16");
  EXPECT_EQ(config_from_gguf(table).head_dim, 16U);
}

TEST(Config, KnowsWhoTiesWhenNobodySays) {
  EXPECT_EQ(parse(R"({"model_type": "gemma3_text"})").tie_word_embeddings, true);
  EXPECT_EQ(parse(R"({"model_type": "llama"})").tie_word_embeddings, std::nullopt);
  EXPECT_EQ(parse(R"({"model_type": "llama", "tie_word_embeddings": true})").tie_word_embeddings,
            true);
  EXPECT_EQ(parse(R"({"dim": 64, "tied_embeddings": true})").tie_word_embeddings, true);
}

TEST(Config, FindsTheTextConfigUnderItsOtherNames) {
  EXPECT_EQ(parse(R"({"llm_config": {"hidden_size": 8}})").hidden_size, 8U);
  EXPECT_EQ(parse(R"({"thinker_config": {"text_config": {"hidden_size": 9}}})").hidden_size, 9U);
  EXPECT_EQ(parse(R"({"hidden_size": 7, "text_config": null})").hidden_size, 7U);
}

TEST(Config, ReadsParamsAndPipelines) {
  EXPECT_EQ(parse(R"({"dim": 4096, "n_layers": 32})").num_hidden_layers, 32U);
  EXPECT_THAT(parse(R"({"_class_name": "FluxPipeline"})").architectures,
              ElementsAre("FluxPipeline"));
}

TEST(Config, TakesNoHarmFromWrongTypes) {
  const ModelConfig config = parse(R"({"model_type": 3, "architectures": "x", "hidden_size": -1,
    "vocab_size": 1.5, "tie_word_embeddings": "yes", "rope": NaN})");
  EXPECT_EQ(config.model_type, "");
  EXPECT_EQ(config.hidden_size, std::nullopt);
  EXPECT_EQ(config.tie_word_embeddings, std::nullopt);
}

TEST(Config, RefusesWhatIsNoObject) {
  EXPECT_THAT(parse_config("[]", "config.json"),
              Fails(ErrorCode::kCorrupt, HasSubstr("config.json")));
  EXPECT_THAT(parse_config("{", "config.json"),
              Fails(ErrorCode::kCorrupt, HasSubstr("config.json")));
}

TEST(Config, ReadsGgufMetadata) {
  format::TensorTable table;
  table.metadata = {{"general.architecture", "glm4moe"},
                    {"glm4moe.block_count", "47"},
                    {"glm4moe.nextn_predict_layers", "1"},
                    {"glm4moe.embedding_length", "4096"},
                    {"glm4moe.vocab_size", "many"}};
  const ModelConfig config = config_from_gguf(table);
  EXPECT_EQ(config.source, "GGUF metadata");
  EXPECT_EQ(config.model_type, "glm4moe");
  EXPECT_EQ(config.num_hidden_layers, 46U);
  EXPECT_EQ(config.hidden_size, 4096U);
  EXPECT_EQ(config.vocab_size, std::nullopt);
}

}  // namespace
}  // namespace gridscope::model
