#include "gridscope/analysis/inspection_rows.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "support/checkpoint_values.hpp"

namespace gridscope::analysis {
namespace {

using model::Part;
using model::Role;
using model::Scheme;
using model::Storage;
using test::CheckpointBuilder;
using ::testing::ElementsAre;
using ::testing::Pair;

std::vector<InspectionRow> rows_by(const model::Checkpoint& checkpoint, GroupBy by) {
  return inspection_rows(checkpoint, PartTable(checkpoint), by);
}

std::vector<std::string> keys(const std::vector<InspectionRow>& rows) {
  std::vector<std::string> keys;
  for (const InspectionRow& row : rows) keys.push_back(row.key);
  return keys;
}

const InspectionRow& row_of(const std::vector<InspectionRow>& rows, std::string_view key) {
  const auto found = std::ranges::find(rows, key, &InspectionRow::key);
  if (found == rows.end()) throw std::logic_error("no row " + std::string(key));
  return *found;
}

CheckpointBuilder small_model() {
  CheckpointBuilder builder;
  builder.module({"model.embed_tokens", {Part::kVocabularyEmbedding, Role::kEmbedTokens, {}}})
      .tensor("weight", Dtype::kBF16, {100, 64})
      .int4_module("model.layers.0.q_proj", {Part::kTransformerBody, Role::kAttention, 0}, 64, 64)
      .tensor("bias", Dtype::kF32, {64}, Storage::kBias)
      .int4_module("model.layers.10.q_proj", {Part::kTransformerBody, Role::kAttention, 10}, 64, 64)
      .module({"vision_tower.layers.0.fc1", {Part::kVisionTower, Role::kMlp, 0}})
      .tensor("weight", Dtype::kF16, {16, 16})
      .module({"model.norm", {Part::kTransformerBody, Role::kNorm, {}}})
      .tensor("weight", Dtype::kBF16, {64});
  return builder;
}

TEST(RowsByPart, AddUpWhatBelongsTogether) {
  const model::Checkpoint checkpoint = small_model().build();
  const std::vector<InspectionRow> rows = rows_by(checkpoint, GroupBy::kPart);
  EXPECT_THAT(keys(rows), ElementsAre("vocabulary_embedding", "transformer_body", "vision_tower"));
  const InspectionRow& body = rows[1];
  EXPECT_EQ(body.title, "transformer body");
  EXPECT_EQ(body.tensors, 8U);
  EXPECT_EQ(body.bytes, 2U * (16 + 2048 + 256) + 256 + 128);
  EXPECT_EQ(body.parameters, 2U * 4096 + 64 + 64);
  EXPECT_DOUBLE_EQ(body.bits_per_weight, 8.0 * 5024 / 8320);
  EXPECT_DOUBLE_EQ(body.share, 5024.0 / (12800 + 5024 + 512));
  EXPECT_THAT(body.dtypes,
              ElementsAre(Pair("BF16", 3), Pair("F32", 1), Pair("I32", 2), Pair("I64", 2)));
  EXPECT_EQ(body.stored_as, "int4 g32, BF16 scales + F32 + BF16");
}

TEST(RowsByPart, AreOnePerComponentOfADiffusersRepository) {
  CheckpointBuilder builder;
  builder.file("text_encoder/model.safetensors", "text_encoder")
      .module({"encoder.embed_tokens", {Part::kVocabularyEmbedding, Role::kEmbedTokens, {}}})
      .tensor("weight", Dtype::kBF16, {10, 10})
      .file("transformer/a.safetensors", "transformer")
      .module({"blocks.0.attn", {Part::kTransformerBody, Role::kAttention, 0}})
      .tensor("weight", Dtype::kBF16, {20, 10})
      .file("transformer/b.safetensors", "transformer")
      .module({"blocks.1.attn", {Part::kTransformerBody, Role::kAttention, 1}})
      .tensor("weight", Dtype::kF32, {20, 10})
      .file("stray.safetensors")
      .module({"x", {}})
      .tensor("weight", Dtype::kU8, {1});
  const model::Checkpoint checkpoint = builder.build();
  const std::vector<InspectionRow> rows = rows_by(checkpoint, GroupBy::kPart);
  EXPECT_THAT(keys(rows), ElementsAre("transformer", "text_encoder", "other"));
  EXPECT_EQ(rows[0].title, "transformer");
  EXPECT_EQ(rows[0].bytes, 400U + 800U);
  EXPECT_EQ(rows[0].stored_as, "F32 + BF16");
  EXPECT_THAT(keys(rows_by(checkpoint, GroupBy::kLayer)),
              ElementsAre("transformer/0", "transformer/1", "outside_layers"));
}

// A sentence-transformers repository: a whole model, and a projection in a folder of its own.
TEST(RowsByPart, KeepThePartsOfAModelThatLiesBesideAComponent) {
  CheckpointBuilder builder = small_model();
  builder.file("2_Dense/model.safetensors", "2_Dense")
      .module({"linear", {}})
      .tensor("weight", Dtype::kF32, {8, 8});
  const std::vector<InspectionRow> rows = rows_by(builder.build(), GroupBy::kPart);
  EXPECT_THAT(keys(rows),
              ElementsAre("vocabulary_embedding", "transformer_body", "vision_tower", "2_Dense"));
  EXPECT_EQ(rows[1].title, "transformer body");
  EXPECT_EQ(rows[3].title, "2_Dense");
  EXPECT_EQ(rows[3].bytes, 256U);
}

TEST(RowsByRole, SplitAModuleByWhatItsTensorsAre) {
  const model::Checkpoint checkpoint = small_model().build();
  const std::vector<InspectionRow> rows = rows_by(checkpoint, GroupBy::kRole);
  const InspectionRow& codes = row_of(rows, "transformer_body/attention/packed_weights");
  EXPECT_EQ(codes.title, "transformer body: attention, packed weights");
  EXPECT_EQ(codes.tensors, 2U);
  EXPECT_EQ(codes.stored_as, "int4 g32");
  EXPECT_DOUBLE_EQ(codes.bits_per_weight, 4.0);
  const InspectionRow& scales = row_of(rows, "transformer_body/attention/scales");
  EXPECT_EQ(scales.stored_as, "BF16");
  EXPECT_EQ(scales.parameters, 0U);
  EXPECT_EQ(scales.bits_per_weight, 0.0);
  EXPECT_EQ(row_of(rows, "transformer_body/attention/biases").stored_as, "F32");
  EXPECT_TRUE(std::ranges::is_sorted(rows, std::ranges::greater{}, &InspectionRow::bytes));
}

TEST(RowsByDtype, NameEachTypeOnce) {
  const model::Checkpoint checkpoint = small_model().build();
  EXPECT_THAT(keys(rows_by(checkpoint, GroupBy::kDtype)),
              ElementsAre("BF16", "I32", "F16", "F32", "I64"));
}

TEST(RowsByLayer, ComeByNumberDecoderFirstAndTheRestLast) {
  const model::Checkpoint checkpoint = small_model().build();
  const std::vector<InspectionRow> rows = rows_by(checkpoint, GroupBy::kLayer);
  EXPECT_THAT(keys(rows), ElementsAre("transformer_body/0", "transformer_body/10", "vision_tower/0",
                                      "outside_layers"));
  EXPECT_EQ(rows[0].title, "transformer body layer 0");
  EXPECT_EQ(rows[0].tensors, 4U);
  EXPECT_EQ(rows[3].title, "outside layers");
  EXPECT_EQ(rows[3].bytes, 12800U + 128U);
}

TEST(RowsByFile, KeepTheOrderOfTheFilesAndSplitModulesBetweenThem) {
  CheckpointBuilder builder;
  builder.file("b.safetensors")
      .module({.name = "proj", .scheme = Scheme::kCtPackQuantized, .bits = 4, .group_size = 32})
      .tensor("weight_packed", Dtype::kI32, {8, 4}, Storage::kPackedWeight, 256)
      .file("a.safetensors")
      .tensor("weight_scale", Dtype::kF16, {8, 1}, Storage::kScale)
      .file("empty.safetensors");
  const model::Checkpoint checkpoint = builder.build();
  const std::vector<InspectionRow> rows = rows_by(checkpoint, GroupBy::kFile);
  ASSERT_THAT(keys(rows), ElementsAre("b.safetensors", "a.safetensors"));
  EXPECT_EQ(rows[0].stored_as, "int4 g32");
  EXPECT_EQ(rows[1].stored_as, "F16");
}

TEST(Rows, NameTheLargestOfSeveralScales) {
  CheckpointBuilder builder;
  builder.module({.name = "proj", .scheme = Scheme::kCtNvfp4, .bits = 4, .group_size = 16})
      .tensor("weight_packed", Dtype::kU8, {8, 16}, Storage::kPackedWeight, 256)
      .tensor("weight_scale", Dtype::kF8E4M3, {8, 2}, Storage::kScale)
      .tensor("weight_global_scale", Dtype::kF32, {1}, Storage::kScale);
  const model::Checkpoint checkpoint = builder.build();
  EXPECT_EQ(rows_by(checkpoint, GroupBy::kPart)[0].stored_as, "nvfp4 g16, F8_E4M3 scales");
}

// Half-quadratic quantization: a table of codes, its scales and zeros beside it.
TEST(Rows, CountNoParametersOfUnknownPacking) {
  CheckpointBuilder builder;
  builder.module({.name = "proj", .scheme = Scheme::kUnknown})
      .tensor("W_q", Dtype::kU8, {64, 64}, Storage::kBuffer)
      .module({.name = "proj"})
      .tensor("scale", Dtype::kF16, {64})
      .module({.name = "norm"})
      .tensor("weight", Dtype::kBF16, {64});
  const std::vector<InspectionRow> rows = rows_by(builder.build(), GroupBy::kPart);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].bits_per_weight, 0.0);
  EXPECT_EQ(rows[0].parameters, 64U);
  EXPECT_THAT(rows[0].stored_as, ::testing::StartsWith("U8 of unknown packing"));
}

TEST(Rows, OfNothingAreNone) {
  CheckpointBuilder builder;
  const model::Checkpoint checkpoint = builder.build();
  for (const GroupBy by :
       {GroupBy::kPart, GroupBy::kRole, GroupBy::kDtype, GroupBy::kLayer, GroupBy::kFile}) {
    EXPECT_TRUE(rows_by(checkpoint, by).empty());
  }
}

TEST(Rows, OfEmptyTensorsHaveNoShare) {
  CheckpointBuilder builder;
  builder.module({"x", {}}).tensor("weight", Dtype::kF32, {0, 4});
  const model::Checkpoint checkpoint = builder.build();
  const InspectionRow row = rows_by(checkpoint, GroupBy::kPart)[0];
  EXPECT_EQ(row.share, 0.0);
  EXPECT_EQ(row.bits_per_weight, 0.0);
}

// Every grouping accounts for every byte, tensor and parameter.
TEST(Rows, AddUpToTheWholeWhateverTheGrouping) {
  const model::Checkpoint checkpoint = test::e2b_w4a16().build();
  std::uint64_t parameters = 0;
  for (const model::Module& module : checkpoint.modules.modules) parameters += module.parameters;
  for (const GroupBy by :
       {GroupBy::kPart, GroupBy::kRole, GroupBy::kDtype, GroupBy::kLayer, GroupBy::kFile}) {
    InspectionRow sum;
    for (const InspectionRow& row : rows_by(checkpoint, by)) {
      sum.tensors += row.tensors;
      sum.bytes += row.bytes;
      sum.share += row.share;
      sum.parameters += row.parameters;
      EXPECT_FALSE(row.stored_as.empty());
    }
    EXPECT_EQ(sum.tensors, 2504U) << group_by_name(by);
    EXPECT_EQ(sum.bytes, 8'315'979'014U) << group_by_name(by);
    EXPECT_NEAR(sum.share, 1.0, 1e-12) << group_by_name(by);
    EXPECT_EQ(sum.parameters, parameters) << group_by_name(by);
  }
}

TEST(SaturatingAdd, StaysAtTheLargestNumber) {
  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(saturating_add(2, 3), 5U);
  EXPECT_EQ(saturating_add(kMax, 1), kMax);
  EXPECT_EQ(saturating_add(kMax - 1, 1), kMax);
}

}  // namespace
}  // namespace gridscope::analysis
