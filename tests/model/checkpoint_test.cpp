#include "gridscope/model/checkpoint.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "support/checkpoints.hpp"
#include "support/memory_repository.hpp"

namespace gridscope::model {
namespace {

using test::Fails;
using test::GgufBuilder;
using test::IsOk;
using test::Listing;
using test::MemoryRepository;
using test::SafetensorsBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr std::string_view kInt4Config =
    R"({"model_type": "gemma4", "text_config": {"num_hidden_layers": 1},
  "quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized",
  "ignore": ["lm_head"], "config_groups": {"g": {"targets": ["Linear"],
  "weights": {"num_bits": 4, "group_size": 32, "strategy": "group", "symmetric": true}}}}})";

Checkpoint load(const MemoryRepository& repository) {
  NullObserver observer;
  auto checkpoint = load_checkpoint(repository, observer);
  EXPECT_THAT(checkpoint, IsOk());
  return checkpoint ? *std::move(checkpoint) : Checkpoint();
}

std::vector<std::string> codes(const Checkpoint& checkpoint) {
  std::vector<std::string> all;
  for (const Finding& finding : checkpoint.findings) all.push_back(finding.code);
  return all;
}

SafetensorsBuilder first_shard() {
  return SafetensorsBuilder()
      .tensor("model.embed_tokens.weight", Dtype::kBF16, {16, 8})
      .tensor("model.layers.0.mlp.up_proj.weight_packed", Dtype::kI32, {8, 16});
}
SafetensorsBuilder second_shard() {
  return SafetensorsBuilder()
      .tensor("model.layers.0.mlp.up_proj.weight_scale", Dtype::kBF16, {8, 4})
      .tensor("model.layers.0.mlp.up_proj.weight_shape", Dtype::kI64, {2});
}

MemoryRepository& add_shards(MemoryRepository& repository) {
  test::WeightMap map;
  for (const std::string& name : first_shard().names()) map.emplace_back(name, "m-1.safetensors");
  for (const std::string& name : second_shard().names()) map.emplace_back(name, "m-2.safetensors");
  const std::uint64_t total = first_shard().data_bytes() + second_shard().data_bytes();
  return repository.add("config.json", kInt4Config)
      .add("model.safetensors.index.json", test::index_json(map, total))
      .add("m-1.safetensors", first_shard().build())
      .add("m-2.safetensors", second_shard().build());
}

class CheckpointEitherWay : public ::testing::TestWithParam<Listing> {
 protected:
  MemoryRepository repository_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Checkpoint, CheckpointEitherWay,
                         ::testing::Values(Listing::kGiven, Listing::kNone));

TEST_P(CheckpointEitherWay, PutsShardsConfigAndClaimTogether) {
  const Checkpoint checkpoint = load(add_shards(repository_));
  EXPECT_THAT(codes(checkpoint), IsEmpty());
  EXPECT_EQ(checkpoint.container, format::Container::kSafetensors);
  EXPECT_EQ(checkpoint.repository.location, "models/tiny");
  ASSERT_THAT(checkpoint.files, SizeIs(2));
  EXPECT_EQ(checkpoint.files[1].path, "m-2.safetensors");
  EXPECT_GT(checkpoint.files[1].header_bytes, 8U);
  EXPECT_NE(checkpoint.files[1].source, nullptr);
  EXPECT_THAT(checkpoint.file_of, ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(checkpoint.names[0].part, Part::kVocabularyEmbedding);
  // The companions of one module lie in two shards.
  ASSERT_THAT(checkpoint.modules.modules, SizeIs(2));
  EXPECT_EQ(checkpoint.modules.modules[1].parameters, 8U * 128);
  EXPECT_EQ(checkpoint.config.model_type, "gemma4");
  EXPECT_EQ(checkpoint.quantization->bits, 4U);
  EXPECT_EQ(checkpoint.find_tensor("model.layers.0.mlp.up_proj.weight_shape"), 3U);
  EXPECT_FALSE(checkpoint.find_tensor("nothing"));
}

TEST_P(CheckpointEitherWay, GoesOnWithoutAMissingShard) {
  add_shards(repository_);
  MemoryRepository without(GetParam());
  without.add("config.json", kInt4Config)
      .add("model.safetensors.index.json",
           test::index_json({{"model.embed_tokens.weight", "m-1.safetensors"},
                             {"model.layers.0.mlp.up_proj.weight_packed", "m-1.safetensors"},
                             {"x", "m-2.safetensors"}}))
      .add("m-1.safetensors", first_shard().build());
  const Checkpoint checkpoint = load(without);
  EXPECT_THAT(codes(checkpoint), ::testing::Contains("SHARD_MISSING"));
  EXPECT_THAT(codes(checkpoint), ::testing::Contains("COMPANION_MISSING"));
  EXPECT_THAT(checkpoint.files, SizeIs(1));
  EXPECT_THAT(checkpoint.tensors, SizeIs(2));
}

TEST_P(CheckpointEitherWay, SaysThatTheConfigIsMissing) {
  repository_.add("model.safetensors",
                  SafetensorsBuilder().tensor("a.weight", Dtype::kBF16, {2}).build());
  const Checkpoint checkpoint = load(repository_);
  EXPECT_THAT(codes(checkpoint), ElementsAre("CONFIG_MISSING"));
  EXPECT_FALSE(checkpoint.quantization);
}

TEST_P(CheckpointEitherWay, TakesAnUnreadableConfigForAMissingOne) {
  repository_.add("config.json", "{")
      .add("model.safetensors", SafetensorsBuilder().tensor("a.weight", Dtype::kBF16, {2}).build());
  EXPECT_THAT(codes(load(repository_)), ElementsAre("CONFIG_MISSING"));
}

TEST_P(CheckpointEitherWay, TakesPlainTensorsForPlainWhateverAMethodlessClaimSays) {
  repository_.add("config.json", R"({"quantization_config": {"bits": 4}})")
      .add("model.safetensors",
           SafetensorsBuilder().tensor("a.weight", Dtype::kBF16, {2, 2}).build());
  const Checkpoint checkpoint = load(repository_);
  EXPECT_THAT(codes(checkpoint), IsEmpty());
  EXPECT_FALSE(checkpoint.quantization);
}

TEST_P(CheckpointEitherWay, TellsTheMethodFromTensorsWhenNobodyClaims) {
  add_shards(repository_).add("config.json", "{}");
  const Checkpoint checkpoint = load(repository_);
  EXPECT_THAT(codes(checkpoint), ElementsAre("CONFIG_TENSOR_MISMATCH"));
  ASSERT_TRUE(checkpoint.quantization);
  EXPECT_EQ(checkpoint.quantization->method, "compressed-tensors");
  EXPECT_EQ(checkpoint.quantization->config_source, "");
}

TEST(Checkpoint, TakesNoRefusedShardForAMissingOne) {
  MemoryRepository repository(Listing::kNone);
  add_shards(repository).forbid("m-2.safetensors");
  NullObserver observer;
  EXPECT_THAT(load_checkpoint(repository, observer),
              Fails(ErrorCode::kPermission, HasSubstr("m-2.safetensors")));
}

TEST(Checkpoint, ReadsTheConfigBesideWeightsInAFolderBelow) {
  MemoryRepository repository;
  repository.add("sub/model.safetensors",
                 SafetensorsBuilder().tensor("a.weight", Dtype::kBF16, {2}).build());
  EXPECT_THAT(codes(load(repository)), ElementsAre("CONFIG_MISSING"));
  repository.add("config.json", R"({"model_type": "of the root"})");
  EXPECT_EQ(load(repository).config.model_type, "of the root");
  repository.add("sub/config.json", R"({"model_type": "llama"})");
  const Checkpoint checkpoint = load(repository);
  EXPECT_THAT(codes(checkpoint), IsEmpty());
  EXPECT_EQ(checkpoint.config.model_type, "llama");
}

TEST(Checkpoint, ReadsComponentsApart) {
  MemoryRepository repository;
  const auto weights = [](Dtype dtype) {
    return SafetensorsBuilder().tensor("layers.0.fc1.weight", dtype, {2, 2}).build();
  };
  repository
      .add("model_index.json", R"({"_class_name": "Pipeline", "a": ["x", "y"], "b": ["x", "y"]})")
      .add("a/model.safetensors", weights(Dtype::kBF16))
      .add("b/model.safetensors", weights(Dtype::kF32));
  const Checkpoint checkpoint = load(repository);
  EXPECT_THAT(codes(checkpoint), IsEmpty());
  EXPECT_THAT(checkpoint.tensors, SizeIs(2));
  EXPECT_EQ(checkpoint.files[1].component, "b");
  EXPECT_THAT(checkpoint.file_of, ElementsAre(0, 1));
  EXPECT_THAT(checkpoint.modules.module_of, ElementsAre(0, 1));
  EXPECT_THAT(checkpoint.modules.modules[1].tensors, ElementsAre(1));
  EXPECT_EQ(checkpoint.config.source, "model_index.json");
  EXPECT_THAT(checkpoint.config.architectures, ElementsAre("Pipeline"));
}

TEST(Checkpoint, LearnsAliasesFromMetadata) {
  MemoryRepository repository;
  // Values that name no tensor of the model are remarks of other kinds.
  repository.add("config.json", "{}")
      .add("model-00001-of-00002.safetensors",
           SafetensorsBuilder()
               .metadata("format", "pt")
               .metadata("lm_head.weight", "model.embed_tokens.weight")
               .tensor("model.norm.weight", Dtype::kBF16, {2})
               .build())
      .add("model-00002-of-00002.safetensors",
           SafetensorsBuilder()
               .metadata("format", "pt")
               .tensor("model.embed_tokens.weight", Dtype::kBF16, {4, 2})
               .build())
      .add("model.safetensors.index.json",
           test::index_json({{"model.norm.weight", "model-00001-of-00002.safetensors"},
                             {"model.embed_tokens.weight", "model-00002-of-00002.safetensors"}}));
  EXPECT_THAT(load(repository).aliases,
              ElementsAre(Pair("lm_head.weight", "model.embed_tokens.weight")));
}

TEST(Checkpoint, ReadsGgufWithItsOwnConfiguration) {
  MemoryRepository repository;
  repository.add("m-Q4_0.gguf", GgufBuilder()
                                    .key("general.architecture", std::string("llama"))
                                    .key("llama.block_count", std::uint32_t{1})
                                    .tensor("token_embd.weight", Dtype::kQ4_0, {32, 4})
                                    .tensor("blk.0.attn_q.weight", Dtype::kQ4_0, {32, 32})
                                    .build());
  const Checkpoint checkpoint = load(repository);
  EXPECT_THAT(codes(checkpoint), IsEmpty());
  EXPECT_EQ(checkpoint.container, format::Container::kGguf);
  EXPECT_EQ(checkpoint.config.model_type, "llama");
  EXPECT_EQ(checkpoint.quantization->method, "gguf");
  EXPECT_EQ(checkpoint.quantization->format, "Q4_0");
  EXPECT_EQ(checkpoint.modules.modules[1].parameters, 1024U);
}

TEST(Checkpoint, NotesTheProjectorsBesideAGgufModel) {
  const auto gguf = [] {
    return GgufBuilder()
        .key("general.architecture", std::string("llama"))
        .tensor("token_embd.weight", Dtype::kQ4_0, {32, 4})
        .build();
  };
  MemoryRepository repository;
  repository.add("m-Q4_0.gguf", gguf()).add("mmproj-F16.gguf", "123");
  Checkpoint checkpoint = load(repository);
  EXPECT_THAT(codes(checkpoint), ElementsAre("PROJECTOR_SET_ASIDE"));
  EXPECT_EQ(checkpoint.findings[0].severity, Severity::kNote);
  EXPECT_EQ(checkpoint.findings[0].message,
            "1 projector file of 3 bytes beside the model: mmproj-F16.gguf");
  EXPECT_EQ(checkpoint.findings[0].bytes, 3U);
  repository.add("mmproj-F32.gguf", "4567");
  checkpoint = load(repository);
  EXPECT_THAT(checkpoint.findings[0].message, HasSubstr("mmproj-F16.gguf and 1 more"));
  EXPECT_EQ(checkpoint.findings[0].bytes, 7U);
  MemoryRepository projector(Listing::kGiven, "mmproj-F32.gguf");
  projector.add("mmproj-F16.gguf", "123").add("mmproj-F32.gguf", gguf());
  EXPECT_THAT(codes(load(projector)), IsEmpty());
}

TEST(Checkpoint, IsEmptyForAContainerThatIsOnlyRecognised) {
  MemoryRepository repository;
  repository.add("m.litertlm", "LITERTLM" + std::string(64, '\0'));
  const Checkpoint checkpoint = load(repository);
  EXPECT_THAT(codes(checkpoint), ElementsAre("UNSUPPORTED_CONTAINER"));
  EXPECT_EQ(checkpoint.container, format::Container::kLiteRtLm);
  ASSERT_THAT(checkpoint.files, SizeIs(1));
  EXPECT_EQ(checkpoint.files[0].source, nullptr);
  EXPECT_THAT(checkpoint.tensors, IsEmpty());
}

TEST(Checkpoint, FailsWhenThereAreOnlyPointers) {
  MemoryRepository repository;
  repository.add(
      "model.safetensors",
      "version https://git-lfs.github.com/spec/v1\noid sha256:"
      "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 8316306646\n");
  NullObserver observer;
  EXPECT_THAT(load_checkpoint(repository, observer),
              Fails(ErrorCode::kUnsupported, HasSubstr("8,316,306,646 bytes")));
}

TEST(Checkpoint, HoldsTheLimitOnTensors) {
  MemoryRepository repository;
  add_shards(repository);
  NullObserver observer;
  LoadOptions options;
  options.limits.tensors = 3;
  EXPECT_THAT(load_checkpoint(repository, observer, options),
              Fails(ErrorCode::kLimit, HasSubstr("3")));
}

TEST(Checkpoint, MentionsWhatIsSetAside) {
  struct Details final : Observer {
    void on_event(const Event& event) override {
      if (const auto* detail = std::get_if<Detail>(&event)) messages.emplace_back(detail->message);
    }
    std::vector<std::string> messages;
  };
  MemoryRepository repository;
  repository.add("config.json", "{}")
      .add("model.safetensors", SafetensorsBuilder().tensor("a.weight", Dtype::kBF16, {2}).build())
      .add("pytorch_model.bin", "x");
  Details details;
  EXPECT_THAT(load_checkpoint(repository, details, {.limits = {}, .readers = 1, .stop = {}}),
              IsOk());
  EXPECT_THAT(details.messages, ElementsAre(HasSubstr("pytorch_model.bin is set aside")));
}

}  // namespace
}  // namespace gridscope::model
