#include "gridscope/model/module_matcher.hpp"

#include <gmock/gmock.h>

namespace gridscope::model {
namespace {

using ::testing::ElementsAre;

QuantizationConfig with_ignore(std::string method, std::vector<std::string> ignore) {
  QuantizationConfig config;
  config.method = std::move(method);
  config.ignore = std::move(ignore);
  return config;
}

TEST(ModuleMatcher, ComparesExactNamesAcrossFamilies) {
  const auto config = with_ignore(
      "compressed-tensors",
      {"language_model.model.layers.0.mlp.gate", "model.vision_tower.layers.0.q_proj.linear"});
  const ModuleMatcher matcher(config);
  EXPECT_TRUE(matcher.ignores("model.layers.0.mlp.gate"));
  EXPECT_TRUE(matcher.ignores("model.language_model.layers.0.mlp.gate"));
  EXPECT_TRUE(matcher.ignores("vision_tower.layers.0.q_proj"));
  EXPECT_FALSE(matcher.ignores("model.layers.0.mlp.gate_proj"));
  EXPECT_FALSE(matcher.ignores("model.layers.0.mlp"));
}

TEST(ModuleMatcher, TriesPatternsOnEverySpelling) {
  const auto config = with_ignore(
      "compressed-tensors",
      {R"(re:language_model\.model\.layers\.0\..*)", "re:^lm_head$", "re:model.vision_tower.*"});
  const ModuleMatcher matcher(config);
  EXPECT_TRUE(matcher.ignores("model.layers.0.mlp.up_proj"));
  EXPECT_FALSE(matcher.ignores("model.layers.1.mlp.up_proj"));
  EXPECT_TRUE(matcher.ignores("lm_head"));
  EXPECT_TRUE(matcher.ignores("language_model.lm_head"));
  EXPECT_TRUE(matcher.ignores("vision_tower.layers.0.q_proj"));
}

TEST(ModuleMatcher, KeepsTowersOutOfPatternsForTheLanguageModel) {
  const auto config = with_ignore("compressed-tensors", {"re:.*language_model.*"});
  EXPECT_FALSE(ModuleMatcher(config).ignores("model.vision_tower.layers.0.q_proj"));
  EXPECT_TRUE(ModuleMatcher(config).ignores("model.layers.0.q_proj"));
}

TEST(ModuleMatcher, ReadsEntriesAsTheMethodDoes) {
  const auto awq = with_ignore("awq", {"mlp.gate"});
  EXPECT_TRUE(ModuleMatcher(awq).ignores("model.layers.0.mlp.gate_proj"));
  const auto fp8 = with_ignore("fp8", {"mlp.gate"});
  EXPECT_FALSE(ModuleMatcher(fp8).ignores("model.layers.0.mlp.gate_proj"));
  EXPECT_TRUE(ModuleMatcher(fp8).ignores("model.layers.0.mlp.gate"));
  const auto modelopt = with_ignore("modelopt_fp4", {"model.layers.0*", "lm_head"});
  EXPECT_TRUE(ModuleMatcher(modelopt).ignores("language_model.model.layers.0.mlp.gate"));
  EXPECT_TRUE(ModuleMatcher(modelopt).ignores("lm_head"));
  const auto gptq = with_ignore("gptq", {"re:.*mlp"});
  EXPECT_TRUE(ModuleMatcher(gptq).ignores("model.layers.0.mlp.gate"));
}

TEST(ModuleMatcher, NamesPatternsItDoesNotUnderstand) {
  auto config = with_ignore("compressed-tensors", {"re:(?!lm_head).*", "lm_head"});
  config.schemes.push_back(
      {.targets = {"re:(?=x)"}, .format = "", .bits = {}, .group_size = {}, .symmetric = {}});
  const ModuleMatcher matcher(config);
  EXPECT_THAT(matcher.not_understood(), ElementsAre("re:(?!lm_head).*", "re:(?=x)"));
  EXPECT_FALSE(matcher.ignores("model.layers.0.mlp"));
}

TEST(ModuleMatcher, FindsTheSchemeByNameThenPatternThenClass) {
  QuantizationConfig config;
  config.method = "compressed-tensors";
  const auto add = [&](std::vector<std::string> targets, std::uint32_t bits) {
    config.schemes.push_back({.targets = std::move(targets),
                              .format = "",
                              .bits = bits,
                              .group_size = {},
                              .symmetric = {}});
  };
  add({"Linear"}, 4);
  add({"re:.*down_proj$"}, 8);
  add({"model.layers.0.mlp.down_proj"}, 3);
  add({"Embedding"}, 2);
  const ModuleMatcher matcher(config);
  const auto bits = [&](std::string_view module, ModuleClass kind) {
    const auto* scheme = matcher.scheme_for(module, kind);
    return scheme == nullptr ? 0U : *scheme->bits;
  };
  EXPECT_EQ(bits("model.layers.0.mlp.up_proj", ModuleClass::kLinear), 4U);
  EXPECT_EQ(bits("model.layers.1.mlp.down_proj", ModuleClass::kLinear), 8U);
  EXPECT_EQ(bits("model.layers.0.mlp.down_proj", ModuleClass::kLinear), 3U);
  EXPECT_EQ(bits("model.embed_tokens", ModuleClass::kEmbedding), 2U);
  EXPECT_EQ(bits("model.norm", ModuleClass::kOther), 0U);
}

TEST(ModuleMatcher, LetsASchemeWithoutTargetsHoldForTheRest) {
  QuantizationConfig config;
  config.method = "gptq";
  config.schemes.push_back(
      {.targets = {}, .format = "", .bits = 4, .group_size = {}, .symmetric = {}});
  const ModuleMatcher matcher(config);
  EXPECT_NE(matcher.scheme_for("anything", ModuleClass::kOther), nullptr);
}

}  // namespace
}  // namespace gridscope::model
