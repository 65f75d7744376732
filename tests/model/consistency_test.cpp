#include "gridscope/model/consistency.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "model/tensor_values.hpp"

namespace gridscope::model {
namespace {

using format::TensorInfo;
using test::tensor;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kMismatch = "CONFIG_TENSOR_MISMATCH";

auto finding(std::string_view code, Severity severity, const std::string& message) {
  return AllOf(Field(&Finding::code, code), Field(&Finding::severity, severity),
               Field(&Finding::message, HasSubstr(message)));
}

QuantizationConfig int4(std::vector<std::string> ignore = {}) {
  QuantizationConfig config;
  config.method = "compressed-tensors";
  config.config_source = "config.json quantization_config";
  config.ignore = std::move(ignore);
  config.schemes.push_back({.targets = {"Linear"},
                            .format = "pack-quantized",
                            .bits = 4,
                            .group_size = 32,
                            .symmetric = true});
  return config;
}

void add_packed(std::vector<TensorInfo>& tensors, const std::string& module,
                std::uint64_t words = 16, std::uint64_t groups = 4) {
  tensors.push_back(tensor(module + ".weight_packed", Dtype::kI32, {8, words}));
  tensors.push_back(tensor(module + ".weight_scale", Dtype::kBF16, {8, groups}));
  tensors.push_back(tensor(module + ".weight_shape", Dtype::kI64, {2}));
}

std::vector<Finding> findings_of(const std::vector<TensorInfo>& tensors,
                                 const QuantizationConfig* config) {
  return detect_modules(tensors, config).findings;
}

TEST(Consistency, HasNothingToSayWhenClaimAndTensorsAgree) {
  std::vector<TensorInfo> tensors = {
      tensor("lm_head.weight", Dtype::kBF16, {16, 8}),
      tensor("model.embed_tokens.weight", Dtype::kBF16, {16, 8}),
      tensor("model.layers.0.norm.weight", Dtype::kBF16, {8}),
      tensor("vision_tower.layers.0.fc1.weight", Dtype::kBF16, {8, 8})};
  add_packed(tensors, "model.layers.0.mlp.up_proj");
  const auto config = int4({"lm_head"});
  EXPECT_THAT(findings_of(tensors, &config), IsEmpty());
}

// Google's QAT sources keep a quantization_config without a method beside plain tensors.
TEST(Consistency, TakesAClaimWithoutMethodOnPlainTensorsForNothing) {
  const std::vector<TensorInfo> tensors = {
      tensor("model.layers.0.mlp.up_proj.weight", Dtype::kBF16, {8, 8})};
  auto config = int4();
  config.method = "";
  EXPECT_THAT(findings_of(tensors, &config), IsEmpty());
  EXPECT_THAT(findings_of(tensors, nullptr), IsEmpty());
}

TEST(Consistency, FlagsQuantizedTensorsThatNobodyClaims) {
  std::vector<TensorInfo> tensors;
  add_packed(tensors, "model.layers.0.mlp.up_proj");
  EXPECT_THAT(findings_of(tensors, nullptr),
              ElementsAre(finding(kMismatch, Severity::kWarning, "no configuration says so")));
}

TEST(Consistency, FlagsAClaimThatNoTensorBears) {
  const std::vector<TensorInfo> tensors = {
      tensor("model.layers.0.mlp.up_proj.weight", Dtype::kBF16, {8, 8})};
  const auto config = int4();
  EXPECT_THAT(findings_of(tensors, &config),
              ElementsAre(finding(kMismatch, Severity::kError, "no tensor is quantized")));
}

TEST(Consistency, FlagsIgnoredButPackedAndTargetedButPlain) {
  std::vector<TensorInfo> tensors = {
      tensor("model.layers.1.mlp.up_proj.weight", Dtype::kBF16, {8, 8})};
  add_packed(tensors, "model.layers.0.mlp.up_proj");
  add_packed(tensors, "lm_head");
  const auto config = int4({"lm_head"});
  EXPECT_THAT(
      findings_of(tensors, &config),
      ::testing::UnorderedElementsAre(
          finding(kMismatch, Severity::kError, "1 module quantized although the ignore list"),
          finding(kMismatch, Severity::kWarning, "1 module stored plain although")));
}

// DeepSeek-V4: the claim is of FP8 in blocks, and the experts are kept in FP4.
TEST(Consistency, DoesNotHoldFp4ExpertsToTheNumbersOfAnFp8Claim) {
  const std::vector<TensorInfo> tensors = {
      tensor("model.layers.0.attn.wq.weight", Dtype::kF8E4M3, {128, 128}),
      tensor("model.layers.0.attn.wq.weight_scale_inv", Dtype::kF32, {1, 1}),
      tensor("model.layers.0.ffn.experts.0.w1.weight", Dtype::kI8, {128, 64}),
      tensor("model.layers.0.ffn.experts.0.w1.scale", Dtype::kF8E8M0, {128, 4})};
  QuantizationConfig config;
  config.method = "fp8";
  config.schemes.push_back(
      {.targets = {}, .format = "block", .bits = 8, .group_size = 128, .symmetric = {}});
  const ModuleTable table = detect_modules(tensors, &config);
  EXPECT_TRUE(std::ranges::any_of(
      table.modules, [](const Module& module) { return module.scheme == Scheme::kPackedFp4; }));
  EXPECT_THAT(table.findings, IsEmpty());
}

TEST(Consistency, FlagsOtherBitsAndGroupSizes) {
  std::vector<TensorInfo> tensors;
  add_packed(tensors, "model.layers.0.mlp.up_proj", 16,
             1);  // one scale a row: no group size to tell
  add_packed(tensors, "model.layers.1.mlp.up_proj", 16, 2);  // 64 a group
  const auto config = int4();
  EXPECT_THAT(findings_of(tensors, &config),
              ElementsAre(finding(kMismatch, Severity::kError,
                                  "group size 64 where the configuration says 32")));

  const std::vector<TensorInfo> awq = {tensor("l.0.q_proj.qweight", Dtype::kI32, {64, 2}),
                                       tensor("l.0.q_proj.qzeros", Dtype::kI32, {2, 2}),
                                       tensor("l.0.q_proj.scales", Dtype::kF16, {2, 16})};
  QuantizationConfig eight;
  eight.method = "awq";
  eight.schemes.push_back(
      {.targets = {}, .format = "", .bits = 8, .group_size = 32, .symmetric = false});
  EXPECT_THAT(
      findings_of(awq, &eight),
      ElementsAre(finding(kMismatch, Severity::kError, "4 bits where the configuration says 8")));
}

TEST(Consistency, FlagsALabelThatFitsAnotherLayout) {
  const std::vector<TensorInfo> gptq = {tensor("l.0.q_proj.qweight", Dtype::kI32, {8, 16}),
                                        tensor("l.0.q_proj.qzeros", Dtype::kI32, {2, 2}),
                                        tensor("l.0.q_proj.scales", Dtype::kF16, {2, 16})};
  QuantizationConfig config;
  config.method = "awq";
  config.schemes.push_back(
      {.targets = {}, .format = "", .bits = 4, .group_size = 32, .symmetric = false});
  EXPECT_THAT(
      findings_of(gptq, &config),
      ElementsAre(finding(kMismatch, Severity::kError, "stored as gptq, which is no layout of")));
}

TEST(Consistency, FlagsZeroPointsOfASymmetricScheme) {
  std::vector<TensorInfo> tensors;
  add_packed(tensors, "model.layers.0.mlp.up_proj");
  tensors.push_back(tensor("model.layers.0.mlp.up_proj.weight_zero_point", Dtype::kI32, {1, 4}));
  const auto config = int4();
  EXPECT_THAT(findings_of(tensors, &config),
              ElementsAre(finding(kMismatch, Severity::kWarning, "zero points")));
}

TEST(Consistency, NotesUnknownMethodsAndPatterns) {
  std::vector<TensorInfo> tensors;
  add_packed(tensors, "model.layers.0.mlp.up_proj");
  auto config = int4({"re:(?!x).*"});
  EXPECT_THAT(findings_of(tensors, &config),
              ElementsAre(finding(kMismatch, Severity::kNote, "not understood")));
  config = int4();
  config.method = "hqq";
  const auto unknown = findings_of(tensors, &config);
  ASSERT_THAT(unknown, ElementsAre(finding("UNKNOWN_QUANTIZATION", Severity::kWarning, "\"hqq\"")));
  EXPECT_THAT(unknown[0].remedy, HasSubstr("not counted as parameters"));
}

TEST(Consistency, SaysWhatTensorsShowInTheWordsOfAConfiguration) {
  std::vector<TensorInfo> tensors = {tensor("lm_head.weight", Dtype::kF8E4M3, {2, 2}),
                                     tensor("lm_head.weight_scale", Dtype::kF32, {})};
  add_packed(tensors, "model.layers.0.mlp.up_proj");
  const auto config = quantization_from_tensors(tensors, detect_modules(tensors, nullptr));
  ASSERT_TRUE(config);
  EXPECT_EQ(config->method, "compressed-tensors");
  EXPECT_EQ(config->format, "pack-quantized");
  EXPECT_EQ(config->bits, 4U);
  EXPECT_EQ(config->group_size, 32);
  EXPECT_EQ(config->config_source, "");

  const std::vector<TensorInfo> gguf = {tensor("blk.0.attn_q.weight", Dtype::kQ4_K, {8, 256}),
                                        tensor("output.weight", Dtype::kQ6_K, {1, 256})};
  const auto blocks = quantization_from_tensors(gguf, detect_modules(gguf, nullptr));
  ASSERT_TRUE(blocks);
  EXPECT_EQ(blocks->method, "gguf");
  EXPECT_EQ(blocks->format, "Q4_K");

  const std::vector<TensorInfo> plain = {tensor("a.weight", Dtype::kBF16, {2, 2})};
  EXPECT_FALSE(quantization_from_tensors(plain, detect_modules(plain, nullptr)));
}

}  // namespace
}  // namespace gridscope::model
