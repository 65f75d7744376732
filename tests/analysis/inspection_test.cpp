#include "gridscope/analysis/inspection.hpp"

#include <gmock/gmock.h>

#include <chrono>

#include "support/checkpoint_values.hpp"
#include "support/matchers.hpp"

namespace gridscope::analysis {
namespace {

using model::Part;
using model::Role;
using test::CheckpointBuilder;
using test::IsOk;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Inspection inspect_ok(CheckpointBuilder builder, const InspectOptions& options = {}) {
  const model::Checkpoint checkpoint = builder.build();
  const Result<Inspection> inspection = inspect(checkpoint, options);
  EXPECT_THAT(inspection, IsOk());
  return inspection.value_or(Inspection{});
}

Finding finding(std::string code, Severity severity) {
  return {.code = std::move(code), .severity = severity, .message = "m", .remedy = "r"};
}

TEST(Inspect, GivesThePublishedTable) {
  const Inspection inspection = inspect_ok(test::e2b_w4a16());
  struct Line {
    std::string_view key;
    std::uint64_t tensors;
    std::uint64_t bytes;
    double percent;
  };
  constexpr std::array<Line, 5> kPublished = {{
      {"per_layer_embedding", 1, 4'697'620'480, 56.5},
      {"vocabulary_embedding", 2, 1'610'612'736, 19.4},
      {"transformer_body", 1090, 1'056'287'622, 12.7},
      {"audio_tower", 752, 614'368'768, 7.4},
      {"vision_tower", 659, 337'089'408, 4.1},
  }};
  ASSERT_THAT(inspection.parts, SizeIs(kPublished.size()));
  for (std::size_t i = 0; i < kPublished.size(); ++i) {
    EXPECT_EQ(inspection.parts[i].key, kPublished[i].key);
    EXPECT_EQ(inspection.parts[i].tensors, kPublished[i].tensors);
    EXPECT_EQ(inspection.parts[i].bytes, kPublished[i].bytes);
    EXPECT_NEAR(100.0 * inspection.parts[i].share, kPublished[i].percent, 0.05);
  }
  EXPECT_EQ(inspection.parts[2].stored_as, "int4 g32, BF16 scales + BF16");
  EXPECT_EQ(inspection.tensor_count, 2504U);
  EXPECT_EQ(inspection.tensor_bytes, 8'315'979'014U);
  EXPECT_THAT(inspection.findings, ElementsAre(AllOf(Field(&Finding::code, "TIED_HEAD_STORED"),
                                                     Field(&Finding::bytes, 805'306'368U))));
}

TEST(Inspect, SaysWhatTheModelIs) {
  const Inspection inspection = inspect_ok(test::e2b_w4a16());
  EXPECT_EQ(inspection.reference, "google/gemma-4-E2B-it-qat-w4a16-ct");
  EXPECT_EQ(inspection.kind, "hub");
  EXPECT_EQ(inspection.revision, "main");
  EXPECT_EQ(inspection.commit, "1234567890abcdef1234567890abcdef12345678");
  EXPECT_EQ(inspection.container, "safetensors");
  EXPECT_EQ(inspection.model_type, "gemma4");
  EXPECT_THAT(inspection.architectures, ElementsAre("Gemma4ForConditionalGeneration"));
  ASSERT_TRUE(inspection.quantization);
  EXPECT_EQ(inspection.quantization->method, "compressed-tensors");
}

TEST(Inspect, AddsUpFilesHeadersAndParameters) {
  CheckpointBuilder builder;
  builder.file("a.safetensors")
      .module({"a", {}})
      .tensor("weight", Dtype::kBF16, {10})
      .file("b.safetensors")
      .module({"b", {}})
      .tensor("weight", Dtype::kF32, {10});
  const Inspection inspection = inspect_ok(std::move(builder));
  EXPECT_EQ(inspection.files, 2U);
  EXPECT_EQ(inspection.file_bytes, 2 * test::kHeaderBytes + 60);
  EXPECT_EQ(inspection.header_bytes, 2 * test::kHeaderBytes);
  EXPECT_EQ(inspection.tensor_count, 2U);
  EXPECT_EQ(inspection.tensor_bytes, 60U);
  EXPECT_EQ(inspection.parameters, 20U);
}

TEST(Inspect, GroupsAndListsTensorsOnlyWhenAsked) {
  const Inspection plain = inspect_ok(test::e2b_w4a16());
  EXPECT_THAT(plain.groups, IsEmpty());
  EXPECT_THAT(plain.tensors, IsEmpty());
  EXPECT_THAT(plain.roles, Not(IsEmpty()));
  const Inspection by_role = inspect_ok(test::e2b_w4a16(), {.by = GroupBy::kRole});
  EXPECT_EQ(by_role.by, GroupBy::kRole);
  EXPECT_THAT(by_role.groups, IsEmpty());
  const Inspection by_layer = inspect_ok(
      test::e2b_w4a16(), {.by = GroupBy::kLayer, .tensors = InspectOptions::Tensors::kList});
  EXPECT_THAT(by_layer.groups, SizeIs(36));
  EXPECT_THAT(by_layer.tensors, SizeIs(2504));
  EXPECT_EQ(by_layer.tensors[0], (InspectionTensor{.name = "lm_head.weight",
                                                   .file = "model.safetensors",
                                                   .dtype = "BF16",
                                                   .shape = {262'144, 1536},
                                                   .offset = test::kHeaderBytes,
                                                   .bytes = 805'306'368,
                                                   .part = "vocabulary_embedding",
                                                   .role = "lm_head"}));
}

TEST(Inspect, SortsFindingsWorstFirstThenByCode) {
  CheckpointBuilder builder = test::e2b_w4a16();
  builder.value.findings = {finding("NOTE", Severity::kNote), finding("Z_ERROR", Severity::kError),
                            finding("A_WARNING", Severity::kWarning),
                            finding("B_ERROR", Severity::kError)};
  std::vector<std::string> codes;
  for (const Finding& one : inspect_ok(std::move(builder)).findings) codes.push_back(one.code);
  EXPECT_THAT(codes, ElementsAre("B_ERROR", "Z_ERROR", "A_WARNING", "TIED_HEAD_STORED", "NOTE"));
}

TEST(Inspect, TakesAContainerThatIsOnlyRecognised) {
  CheckpointBuilder builder;
  builder.file("model.litertlm");
  builder.value.container = format::Container::kLiteRtLm;
  const Inspection inspection = inspect_ok(std::move(builder));
  EXPECT_THAT(inspection.parts, IsEmpty());
  EXPECT_EQ(inspection.files, 1U);
  EXPECT_FALSE(inspection.quantization);
}

// The largest published mixture of experts has 35,923 tensors; every expert is a module.
TEST(Inspect, IsFastForManyModules) {
  CheckpointBuilder builder;
  for (std::uint32_t i = 0; i < 12'000; ++i) {
    builder.int4_module("model.layers." + std::to_string(i % 30) + ".experts." + std::to_string(i),
                        {Part::kTransformerBody, Role::kRoutedExperts, i % 30}, 704, 2816);
  }
  const model::Checkpoint checkpoint = builder.build();
  const auto start = std::chrono::steady_clock::now();
  const auto inspection = inspect(checkpoint, {.by = GroupBy::kLayer});
  const auto took = std::chrono::steady_clock::now() - start;
  ASSERT_THAT(inspection, IsOk());
  EXPECT_EQ(inspection->parts[0].tensors, 36'000U);
  // Unoptimised and under sanitizers it takes many times what a release build takes.
  EXPECT_LT(took, std::chrono::seconds(2));
}

TEST(GroupBy, NamesAreReadBack) {
  for (const std::string_view name : {"part", "role", "dtype", "layer", "file"}) {
    const std::optional<GroupBy> by = parse_group_by(name);
    ASSERT_TRUE(by) << name;
    EXPECT_EQ(group_by_name(*by), name);
  }
  EXPECT_FALSE(parse_group_by("Part"));
  EXPECT_FALSE(parse_group_by(""));
}

}  // namespace
}  // namespace gridscope::analysis
