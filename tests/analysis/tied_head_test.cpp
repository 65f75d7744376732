#include "gridscope/analysis/tied_head.hpp"

#include <gmock/gmock.h>

#include <limits>

#include "support/checkpoint_values.hpp"
#include "support/fakes.hpp"
#include "support/matchers.hpp"

namespace gridscope::analysis {
namespace {

using model::Part;
using model::Role;
using model::Scheme;
using model::Storage;
using test::CheckpointBuilder;
using test::Fails;
using test::IsOk;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr model::NameInfo kHead = {Part::kVocabularyEmbedding, Role::kLmHead, {}};
constexpr model::NameInfo kEmbedding = {Part::kVocabularyEmbedding, Role::kEmbedTokens, {}};
constexpr std::uint64_t kRows = 1000;
constexpr std::uint64_t kRowBytes = 16;  // of bfloat16 tables 8 wide

std::vector<std::byte> pattern(std::uint64_t bytes, unsigned seed) {
  std::vector<std::byte> data;
  for (std::uint64_t i = 0; i < bytes; ++i) data.push_back(static_cast<std::byte>(i * 7 + seed));
  return data;
}

CheckpointBuilder model_with(std::optional<bool> tied) {
  CheckpointBuilder builder;
  builder.value.config.tie_word_embeddings = tied;
  builder.value.config.architectures = {"Gemma4ForConditionalGeneration"};
  return builder;
}

CheckpointBuilder& add_table(CheckpointBuilder& builder, std::string name,
                             const model::NameInfo& place) {
  return builder.module({.name = std::move(name), .place = place})
      .tensor("weight", Dtype::kBF16, {kRows, 8});
}

// A tied model that stores both tables, with data in each.
CheckpointBuilder tied_model(std::vector<std::byte> head, std::vector<std::byte> embedding) {
  CheckpointBuilder builder = model_with(true);
  add_table(builder, "lm_head", kHead).data(std::move(head));
  add_table(builder, "model.embed_tokens", kEmbedding).data(std::move(embedding));
  return builder;
}

Finding finding_of(CheckpointBuilder builder, std::uint64_t rows = 16) {
  const auto finding = check_tied_head(builder.build(), rows);
  EXPECT_THAT(finding, IsOk());
  return finding && *finding ? **finding : Finding{};
}

bool is_clean(CheckpointBuilder builder) {
  const auto finding = check_tied_head(builder.build(), 16);
  EXPECT_THAT(finding, IsOk());
  return finding && !*finding;
}

TEST(TiedHeadStored, SaysThatSampledRowsAreACopy) {
  const std::vector<std::byte> table = pattern(kRows * kRowBytes, 1);
  const Finding finding = finding_of(tied_model(table, table));
  EXPECT_EQ(finding.code, "TIED_HEAD_STORED");
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_EQ(finding.bytes, kRows * kRowBytes);
  EXPECT_THAT(finding.tensors, ElementsAre("lm_head.weight"));
  EXPECT_EQ(finding.tensor_count, 1U);
  EXPECT_THAT(finding.message,
              AllOf(HasSubstr("16,000 bytes (15.6 KiB);"),
                    HasSubstr("byte-identical to \"model.embed_tokens\": 16 of 16")));
  EXPECT_THAT(finding.remedy, HasSubstr("leave the output layer's tensors out"));
}

TEST(TiedHeadStored, SaysHowManyRowsDiffer) {
  std::vector<std::byte> head = pattern(kRows * kRowBytes, 1);
  const std::vector<std::byte> embedding = head;
  head.back() ^= std::byte{1};
  head.front() ^= std::byte{1};
  const Finding finding = finding_of(tied_model(head, embedding));
  EXPECT_THAT(finding.message, HasSubstr(": 14 of 16, so that it is no plain copy"));
  EXPECT_THAT(finding.remedy, HasSubstr("find out which table is meant"));
}

TEST(TiedHeadStored, SaysThatZerosProveNothing) {
  EXPECT_THAT(finding_of(tied_model({}, {})).message,
              HasSubstr("all sampled rows (16) are zero on both sides, which proves nothing"));
}

TEST(TiedHeadStored, ReadsOneBatchOfRowsFirstAndLastIncluded) {
  model::Checkpoint checkpoint = tied_model({}, {}).build();
  const auto source = std::make_shared<test::RecordingSource>(
      std::make_unique<test::SparseSource>("model.safetensors", checkpoint.files[0].bytes,
                                           std::map<std::uint64_t, std::vector<std::byte>>{}));
  checkpoint.files[0].source = source;
  ASSERT_THAT(check_tied_head(checkpoint, 2), IsOk());
  const std::uint64_t head = checkpoint.tensors[0].offset;
  const std::uint64_t embedding = checkpoint.tensors[1].offset;
  const std::uint64_t last = (kRows - 1) * kRowBytes;
  EXPECT_THAT(
      source->batches(),
      ElementsAre(ElementsAre(io::ByteRange{head, kRowBytes}, io::ByteRange{embedding, kRowBytes},
                              io::ByteRange{head + last, kRowBytes},
                              io::ByteRange{embedding + last, kRowBytes})));
}

TEST(TiedHeadStored, ComparesTablesOfTwoFiles) {
  const std::vector<std::byte> table = pattern(kRows * kRowBytes, 1);
  CheckpointBuilder builder = model_with(true);
  builder.file("model-00001-of-00002.safetensors");
  add_table(builder, "lm_head", kHead).data(table);
  builder.file("model-00002-of-00002.safetensors");
  add_table(builder, "model.embed_tokens", kEmbedding).data(table);
  EXPECT_THAT(finding_of(std::move(builder)).message, HasSubstr(": 16 of 16"));
}

TEST(TiedHeadStored, ComparesNoMoreRowsThanThereAre) {
  CheckpointBuilder builder = model_with(true);
  builder.module({.name = "lm_head", .place = kHead})
      .tensor("weight", Dtype::kBF16, {3, 8})
      .data(pattern(48, 1))
      .module({.name = "embed", .place = kEmbedding})
      .tensor("weight", Dtype::kBF16, {3, 8})
      .data(pattern(48, 1));
  EXPECT_THAT(finding_of(std::move(builder)).message, HasSubstr(": 3 of 3"));
}

TEST(TiedHeadStored, IsReportedWithoutSamplesToo) {
  const Finding finding = finding_of(tied_model({}, {}), 0);
  EXPECT_EQ(finding.code, "TIED_HEAD_STORED");
  EXPECT_THAT(finding.message, HasSubstr("rows were not compared"));
}

TEST(TiedHeadStored, DoesNotReadRowsThatAreTooLong) {
  CheckpointBuilder builder = model_with(true);
  builder.module({.name = "lm_head", .place = kHead})
      .tensor("weight", Dtype::kBF16, {2, std::uint64_t{1} << 40})
      .module({.name = "embed", .place = kEmbedding})
      .tensor("weight", Dtype::kBF16, {2, std::uint64_t{1} << 40});
  EXPECT_THAT(finding_of(std::move(builder)).message, HasSubstr("rows were not compared"));
}

TEST(TiedHeadStored, ComparesQuantizedTablesWithTheirScales) {
  const auto model = [](unsigned scale_seed) {
    CheckpointBuilder builder = model_with(true);
    builder.int4_module("lm_head", kHead, 100, 64).data(pattern(400, 1));
    builder.int4_module("embed", kEmbedding, 100, 64).data(pattern(400, scale_seed));
    return builder;
  };
  const Finding copy = finding_of(model(1));
  EXPECT_EQ(copy.bytes, 16U + 3200U + 400U);
  EXPECT_EQ(copy.tensor_count, 3U);
  EXPECT_THAT(copy.message, HasSubstr(": 16 of 16"));
  EXPECT_THAT(finding_of(model(2)).message, HasSubstr(": 0 of 16"));
}

TEST(TiedHeadStored, SaysWhenTheTablesAreNotStoredAlike) {
  CheckpointBuilder other_scheme = model_with(true);
  other_scheme.int4_module("lm_head", kHead, 100, 64);
  other_scheme.module({.name = "embed", .place = kEmbedding})
      .tensor("weight", Dtype::kBF16, {100, 64});
  EXPECT_THAT(finding_of(std::move(other_scheme)).message,
              AllOf(HasSubstr("not stored alike"), HasSubstr("int4 g32"), HasSubstr("BF16")));
  CheckpointBuilder other_shape = model_with(true);
  add_table(other_shape, "lm_head", kHead);
  other_shape.module({.name = "embed", .place = kEmbedding})
      .tensor("weight", Dtype::kBF16, {kRows - 1, 8});
  EXPECT_THAT(finding_of(std::move(other_shape)).message,
              HasSubstr("not stored alike (BF16 of shape [1000, 8]; BF16 of shape [999, 8])"));
}

TEST(TiedHeadStored, LeavesTheBiasOutOfTheComparison) {
  CheckpointBuilder builder = model_with(true);
  add_table(builder, "lm_head", kHead)
      .data(pattern(kRows * kRowBytes, 1))
      .tensor("bias", Dtype::kBF16, {kRows}, Storage::kBias);
  add_table(builder, "embed", kEmbedding).data(pattern(kRows * kRowBytes, 1));
  const Finding finding = finding_of(std::move(builder));
  EXPECT_EQ(finding.bytes, kRows * kRowBytes + kRows * 2);
  EXPECT_THAT(finding.message, HasSubstr(": 16 of 16"));
}

TEST(TiedHeadStored, PassesReadErrorsOn) {
  model::Checkpoint checkpoint = tied_model({}, {}).build();
  checkpoint.files[0].source = std::make_shared<test::FaultySource>(
      std::make_unique<test::SparseSource>("model.safetensors", checkpoint.files[0].bytes,
                                           std::map<std::uint64_t, std::vector<std::byte>>{}),
      test::FaultPlan{.fault = test::Fault::kChanged, .fault_at = checkpoint.tensors[0].offset});
  EXPECT_THAT(check_tied_head(checkpoint, 16),
              Fails(ErrorCode::kChanged, HasSubstr("comparing the output layer")));
}

// Headers only, as a server that ignores ranges gives them.
class HeadersOnlySource final : public io::ByteSource {
 public:
  explicit HeadersOnlySource(std::uint64_t size) : size_(size) {}
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] const io::SourceIdentity& identity() const override { return identity_; }
  [[nodiscard]] Status read_at(std::uint64_t /*offset*/,
                               std::span<std::byte> /*into*/) const override {
    return fail(ErrorCode::kUnsupported, "the server ignores ranges");
  }

 private:
  std::uint64_t size_;
  io::SourceIdentity identity_{.name = "model.safetensors", .version = {}};
};

TEST(TiedHeadStored, IsReportedWhereRowsCannotBeRead) {
  model::Checkpoint checkpoint = tied_model({}, {}).build();
  checkpoint.files[0].source = std::make_shared<HeadersOnlySource>(checkpoint.files[0].bytes);
  const auto finding = check_tied_head(checkpoint, 16);
  ASSERT_THAT(finding, IsOk());
  EXPECT_EQ((*finding)->code, "TIED_HEAD_STORED");
  EXPECT_THAT((*finding)->message,
              HasSubstr("its rows could not be compared with \"model.embed_tokens\": the server "
                        "ignores ranges"));
}

TEST(TiedHeadStored, DoesNotReadAFileThatWasOnlyRecognised) {
  model::Checkpoint checkpoint = tied_model({}, {}).build();
  checkpoint.files[0].source = nullptr;
  const auto finding = check_tied_head(checkpoint, 16);
  ASSERT_THAT(finding, IsOk());
  EXPECT_THAT((*finding)->message, HasSubstr("rows were not compared"));
}

TEST(TiedHeadStored, OfThePublishedModelIs805MB) {
  const Finding finding = finding_of(test::e2b_w4a16());
  EXPECT_EQ(finding.bytes, 805'306'368U);
  EXPECT_THAT(finding.message, HasSubstr("805,306,368 bytes (0.805 GB, 0.750 GiB)"));
}

TEST(TiedHead, IsCleanWhenStoredAndClaimedAgree) {
  CheckpointBuilder tied = model_with(true);
  add_table(tied, "embed", kEmbedding);
  EXPECT_TRUE(is_clean(std::move(tied)));
  CheckpointBuilder untied = model_with(false);
  add_table(untied, "embed", kEmbedding);
  add_table(untied, "lm_head", kHead);
  EXPECT_TRUE(is_clean(std::move(untied)));
}

TEST(TiedHead, IsNotJudgedWhenNobodySays) {
  CheckpointBuilder builder = model_with(std::nullopt);
  add_table(builder, "embed", kEmbedding);
  add_table(builder, "lm_head", kHead);
  EXPECT_TRUE(is_clean(std::move(builder)));
}

TEST(TiedHead, IsNotJudgedWithoutAnEmbedding) {
  CheckpointBuilder adapter = model_with(false);
  adapter.module({.name = "q_proj"}).tensor("lora_A", Dtype::kF32, {8, 8});
  EXPECT_TRUE(is_clean(std::move(adapter)));
}

TEST(TiedHeadMissing, IsAnErrorOfALanguageModel) {
  CheckpointBuilder builder = model_with(false);
  add_table(builder, "model.embed_tokens", kEmbedding);
  const Finding finding = finding_of(std::move(builder));
  EXPECT_EQ(finding.code, "TIED_HEAD_MISSING");
  EXPECT_EQ(finding.severity, Severity::kError);
  EXPECT_EQ(finding.bytes, 0U);
  EXPECT_THAT(finding.tensors, ElementsAre("model.embed_tokens.weight"));
  EXPECT_THAT(finding.message, HasSubstr("config.json"));
  EXPECT_THAT(finding.remedy, HasSubstr("tie_word_embeddings"));
}

TEST(TiedHeadMissing, DoesNotConcernEncoders) {
  CheckpointBuilder builder = model_with(false);
  builder.value.config.architectures = {"BertModel"};
  add_table(builder, "embeddings.word_embeddings", kEmbedding);
  EXPECT_TRUE(is_clean(std::move(builder)));
}

// safetensors leaves shared tensors out and notes in the metadata which one stands for them.
TEST(TiedHeadMissing, IsNoErrorWhenTheFileNamesTheEmbeddingInItsPlace) {
  CheckpointBuilder builder = model_with(false);
  add_table(builder, "model.embed_tokens", kEmbedding);
  builder.value.aliases = {{"lm_head.weight", "model.embed_tokens.weight"}};
  EXPECT_TRUE(is_clean(std::move(builder)));
  CheckpointBuilder other = model_with(false);
  add_table(other, "model.embed_tokens", kEmbedding);
  other.value.aliases = {{"lm_head.weight", "model.norm.weight"}};
  EXPECT_EQ(finding_of(std::move(other)).code, "TIED_HEAD_MISSING");
}

TEST(TiedHeadMissing, IsNotJudgedFromPartOfTheFiles) {
  CheckpointBuilder one_shard = model_with(false);
  one_shard.file("sub/model-00001-of-00002.safetensors");
  add_table(one_shard, "embed", kEmbedding);
  EXPECT_TRUE(is_clean(std::move(one_shard)));
  CheckpointBuilder shard_missing = model_with(false);
  add_table(shard_missing, "embed", kEmbedding);
  shard_missing.value.findings.push_back(
      {.code = "SHARD_MISSING", .severity = Severity::kError, .message = "", .remedy = ""});
  EXPECT_TRUE(is_clean(std::move(shard_missing)));
}

TEST(SampledRow, SpreadsEvenlyFromFirstToLast) {
  std::vector<std::uint64_t> rows;
  for (std::uint64_t k = 0; k < 5; ++k) rows.push_back(sampled_row(k, 5, 10));
  EXPECT_THAT(rows, ElementsAre(0, 2, 4, 6, 9));
  EXPECT_EQ(sampled_row(0, 1, 10), 0U);
}

TEST(SampledRow, ReachesTheLastOfAnyNumberOfRows) {
  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t samples : {2ULL, 3ULL, 16ULL, 65'536ULL}) {
    EXPECT_EQ(sampled_row(samples - 1, samples, kMax), kMax - 1);
    EXPECT_LT(sampled_row(samples - 2, samples, kMax), kMax - 1);
    EXPECT_EQ(sampled_row(samples - 1, samples, 2), 1U);
  }
}

}  // namespace
}  // namespace gridscope::analysis
