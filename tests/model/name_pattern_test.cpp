#include "gridscope/model/name_pattern.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <regex>

#include "support/matchers.hpp"

namespace gridscope::model {
namespace {

using test::Fails;
using test::IsOk;
using ::testing::HasSubstr;

bool matches(std::string_view pattern, std::string_view name) {
  const auto compiled = NamePattern::regex(pattern);
  EXPECT_THAT(compiled, IsOk());
  return compiled && compiled->matches(name);
}

bool glob_matches(std::string_view pattern, std::string_view name) {
  const auto compiled = NamePattern::glob(pattern);
  EXPECT_THAT(compiled, IsOk());
  return compiled && compiled->matches(name);
}

TEST(NamePattern, IsAnchoredAtTheStartOnly) {
  EXPECT_TRUE(matches("lm_head", "lm_head"));
  EXPECT_TRUE(matches("lm_head", "lm_head.extra"));
  EXPECT_FALSE(matches("lm_head", "model.lm_head"));
  EXPECT_TRUE(matches("^lm_head$", "lm_head"));
  EXPECT_FALSE(matches("^lm_head$", "lm_headx"));
  EXPECT_TRUE(matches("", "anything"));
}

TEST(NamePattern, UnderstandsWhatIgnoreListsUse) {
  EXPECT_TRUE(matches(".*lm_head", "model.lm_head"));
  EXPECT_TRUE(matches(R"(.*\.embed_tokens$)", "model.embed_tokens"));
  EXPECT_FALSE(matches(R"(.*\.embed_tokens$)", "model.embed_tokens_per_layer"));
  EXPECT_TRUE(matches(".*mlp.gate$", "model.layers.3.mlp.gate"));
  EXPECT_FALSE(matches(".*mlp.gate$", "model.layers.3.mlp.gate_proj"));
  EXPECT_TRUE(matches(R"(model\.layers\.(0|[1-4])\..*)", "model.layers.4.mlp"));
  EXPECT_FALSE(matches(R"(model\.layers\.(0|[1-4])\..*)", "model.layers.5.mlp"));
  EXPECT_TRUE(matches("(?:vision|audio)_tower.*", "audio_tower.x"));
  EXPECT_TRUE(matches(R"(layers\.\d+\.\w+$)", "layers.12.mlp"));
  EXPECT_FALSE(matches(R"(layers\.\d+\.\w+$)", "layers.x.mlp"));
  EXPECT_TRUE(matches("[^.]+$", "lm_head"));
  EXPECT_FALSE(matches("[^.]+$", "a.b"));
  EXPECT_TRUE(matches(R"(layers\.\d{2}$)", "layers.12"));
  EXPECT_FALSE(matches(R"(layers\.\d{2}$)", "layers.1"));
  EXPECT_TRUE(matches("a{2,}b?", "aaa"));
  EXPECT_FALSE(matches("a{2,3}$", "aaaa"));
  EXPECT_TRUE(matches("a{,2}$", ""));
  EXPECT_TRUE(matches("x.*?y", "x12y"));
  EXPECT_TRUE(matches("(^a|^b)c", "bc"));
  EXPECT_TRUE(matches("[]x]", "]"));
  EXPECT_TRUE(matches(R"([\d-]+$)", "3-4"));
}

// The same verdict as ECMAScript, which agrees with Python on what both know.
TEST(NamePattern, AgreesWithABacktrackingMatcher) {
  const std::vector<std::string> patterns = {"(a|b)*c",  "a(b|c)+d?",    "(ab?)*$",
                                             "a.c|b.d$", "(a{1,2}b){2}", "((a|b)(c|d))*e",
                                             "[a-c]+d",  "a*a*a*b",      "(a?b?)?c"};
  const std::vector<std::string> names = {"",     "a",    "abc",  "acbd", "ababc", "aabab", "acade",
                                          "abcd", "aaab", "bcd.", "cabd", "abab",  "abbd",  "bxd"};
  for (const std::string& pattern : patterns) {
    const std::regex reference(pattern);
    for (const std::string& name : names) {
      const bool expected =
          std::regex_search(name, reference, std::regex_constants::match_continuous);
      EXPECT_EQ(matches(pattern, name), expected) << pattern << " on " << name;
    }
  }
}

TEST(NamePattern, RefusesWhatItDoesNotUnderstand) {
  for (const char* pattern :
       {"(?!lm_head).*", "(?<=a)b", R"((a)\1)", "a**", "(a", "a)", "[a", "*a", "a{3,1}", "a{1000}",
        "b^a", R"(\b)", "a\\", "[z-a]", "a{", "(?P<n>a)"}) {
    EXPECT_THAT(NamePattern::regex(pattern), Fails(ErrorCode::kUnsupported, HasSubstr("pattern")))
        << pattern;
  }
}

TEST(NamePattern, TakesNoTimeOverHostilePatterns) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(matches("(a*)*(a*)*(a|a)*b$", std::string(4000, 'a')));
  EXPECT_THAT(NamePattern::regex("((((a{100}){100}){100}){100}){100}"),
              Fails(ErrorCode::kUnsupported, HasSubstr("limit")));
  EXPECT_THAT(NamePattern::regex(std::string(100'000, '(')),
              Fails(ErrorCode::kUnsupported, HasSubstr("nested")));
  EXPECT_THAT(NamePattern::regex("((((()){100}){100}){100}){100}"),
              Fails(ErrorCode::kUnsupported, HasSubstr("limit")));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(NamePattern, ReadsGlobsOverTheWholeName) {
  EXPECT_TRUE(glob_matches("model.layers.0*", "model.layers.0.self_attn"));
  EXPECT_FALSE(glob_matches("model.layers.0*", "xmodel.layers.0"));
  EXPECT_FALSE(glob_matches("*.mlp", "layers.0.mlp.gate"));
  EXPECT_TRUE(glob_matches("layers.[0-3].m?p", "layers.2.mlp"));
  EXPECT_FALSE(glob_matches("layers.[!0-3].mlp", "layers.2.mlp"));
  EXPECT_FALSE(glob_matches("layers.0", "layers_0"));
  EXPECT_TRUE(glob_matches("a+(b)", "a+(b)"));
  EXPECT_TRUE(glob_matches("a[", "a["));
}

}  // namespace
}  // namespace gridscope::model
