#include "gridscope/analysis/quantization_summary.hpp"

#include <gtest/gtest.h>

#include "support/checkpoint_values.hpp"

namespace gridscope::analysis {
namespace {

using model::Scheme;
using model::Storage;
using test::CheckpointBuilder;

model::QuantizationConfig claim(std::string method) {
  model::QuantizationConfig config;
  config.method = std::move(method);
  config.config_source = "config.json quantization_config";
  return config;
}

TEST(QuantizationSummary, IsEmptyForPlainTensors) {
  CheckpointBuilder builder;
  builder.module({"x", {}}).tensor("weight", Dtype::kBF16, {4, 4});
  EXPECT_FALSE(summarize_quantization(builder.build()));
}

TEST(QuantizationSummary, RepeatsTheClaim) {
  const auto summary = summarize_quantization(test::e2b_w4a16().build());
  EXPECT_EQ(summary, (QuantizationSummary{.method = "compressed-tensors",
                                          .format = "pack-quantized",
                                          .bits = 4,
                                          .group_size = 32,
                                          .symmetric = true,
                                          .config_source = "config.json quantization_config"}));
}

TEST(QuantizationSummary, CompletesTheClaimFromTheTensors) {
  CheckpointBuilder builder;
  builder.value.quantization = claim("compressed-tensors");
  builder.int4_module("x", {}, 32, 32);
  const auto summary = summarize_quantization(builder.build());
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->format, model::scheme_key(Scheme::kCtPackQuantized));
  EXPECT_EQ(summary->bits, 4U);
  EXPECT_EQ(summary->group_size, 32);
  EXPECT_EQ(summary->symmetric, std::nullopt);
}

TEST(QuantizationSummary, LeavesOpenWhatDiffersInAClaimOfMixedPrecision) {
  CheckpointBuilder builder;
  builder.value.quantization = claim("compressed-tensors");
  builder.int4_module("x", {}, 32, 32);
  builder.module({.name = "y", .scheme = Scheme::kCtFloat, .bits = 8, .group_size = -1})
      .tensor("weight", Dtype::kF8E4M3, {64, 64});
  const auto summary = summarize_quantization(builder.build());
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->bits, std::nullopt);
  EXPECT_EQ(summary->group_size, std::nullopt);
}

TEST(QuantizationSummary, RepeatsAClaimThatNoTensorBearsOut) {
  CheckpointBuilder builder;
  builder.value.quantization = claim("awq");
  builder.module({"x", {}}).tensor("weight", Dtype::kBF16, {4, 4});
  const auto summary = summarize_quantization(builder.build());
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->method, "awq");
  EXPECT_EQ(summary->bits, std::nullopt);
}

TEST(QuantizationSummary, LeavesOutAClaimWithoutMethodThatNoTensorBearsOut) {
  CheckpointBuilder builder;
  builder.value.quantization = claim("");
  builder.module({"x", {}}).tensor("weight", Dtype::kBF16, {4, 4});
  EXPECT_FALSE(summarize_quantization(builder.build()));
}

TEST(QuantizationSummary, SpeaksForTensorsThatNoConfigurationMentions) {
  CheckpointBuilder builder;
  builder.module({.name = "small", .scheme = Scheme::kBnbInt8, .bits = 8})
      .tensor("weight", Dtype::kI8, {4, 4})
      .module({.name = "large", .scheme = Scheme::kBnbNf4, .bits = 4, .group_size = 64})
      .tensor("weight", Dtype::kU8, {128, 1}, Storage::kPackedWeight, 256);
  const auto summary = summarize_quantization(builder.build());
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->method, "bitsandbytes");
  EXPECT_EQ(summary->format, model::scheme_key(Scheme::kBnbNf4));
  EXPECT_EQ(summary->bits, 4U);
  EXPECT_EQ(summary->group_size, 64);
  EXPECT_EQ(summary->config_source, "");
}

TEST(QuantizationSummary, OfGgufIsItsMainBlockType) {
  CheckpointBuilder builder;
  builder.value.container = format::Container::kGguf;
  builder.module({.name = "a", .scheme = Scheme::kGgufBlock, .bits = 6})
      .tensor("weight", Dtype::kQ6_K, {256})
      .module({.name = "b", .scheme = Scheme::kGgufBlock, .bits = 4})
      .tensor("weight", Dtype::kQ4_K, {4, 256})
      .module({.name = "norm"})
      .tensor("weight", Dtype::kF32, {4096});
  const auto summary = summarize_quantization(builder.build());
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->method, "gguf");
  EXPECT_EQ(summary->format, "Q4_K");
  EXPECT_EQ(summary->bits, std::nullopt);
  EXPECT_EQ(summary->group_size, std::nullopt);
}

// Every scheme that can be detected has a method that a report can name.
TEST(QuantizationSummary, NamesAMethodForEveryScheme) {
  for (int i = 1; i < static_cast<int>(Scheme::kUnknown); ++i) {
    CheckpointBuilder builder;
    builder.module({.name = "x", .scheme = static_cast<Scheme>(i)})
        .tensor("weight", Dtype::kU8, {16});
    const auto summary = summarize_quantization(builder.build());
    ASSERT_TRUE(summary) << i;
    EXPECT_NE(summary->method, "") << i;
    EXPECT_NE(summary->format, "") << i;
  }
}

}  // namespace
}  // namespace gridscope::analysis
