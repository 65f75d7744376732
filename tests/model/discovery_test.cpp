#include "gridscope/model/discovery.hpp"

#include <gmock/gmock.h>

#include "support/checkpoints.hpp"
#include "support/memory_repository.hpp"

namespace gridscope::model {
namespace {

using test::Fails;
using test::IsOk;
using test::Listing;
using test::MemoryRepository;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Discovery discovered(const MemoryRepository& repository) {
  auto found = discover(repository);
  EXPECT_THAT(found, IsOk());
  return found ? *std::move(found) : Discovery();
}

// The files of the only set.
std::vector<std::string> files_of(const Discovery& found) {
  EXPECT_THAT(found.sets, SizeIs(1));
  return found.sets.empty() ? std::vector<std::string>() : found.sets.front().files;
}

std::string index_of(const std::vector<std::string>& shards) {
  test::WeightMap map;
  for (const std::string& shard : shards) map.emplace_back("tensor of " + shard, shard);
  return test::index_json(map);
}

const std::vector<std::string> kTwoShards = {"model-00001-of-00002.safetensors",
                                             "model-00002-of-00002.safetensors"};

class DiscoveryEitherWay : public ::testing::TestWithParam<Listing> {};
INSTANTIATE_TEST_SUITE_P(Discovery, DiscoveryEitherWay,
                         ::testing::Values(Listing::kGiven, Listing::kNone));

TEST_P(DiscoveryEitherWay, TakesTheSingleFile) {
  MemoryRepository repository(GetParam());
  repository.add("model.safetensors", "x").add("config.json", "{}");
  const Discovery found = discovered(repository);
  EXPECT_THAT(files_of(found), ElementsAre("model.safetensors"));
  EXPECT_EQ(found.sets[0].container, format::Container::kSafetensors);
  EXPECT_THAT(found.findings, IsEmpty());
}

TEST_P(DiscoveryEitherWay, FollowsTheIndex) {
  MemoryRepository repository(GetParam());
  repository.add("model.safetensors.index.json", index_of(kTwoShards));
  for (const std::string& shard : kTwoShards) repository.add(shard, "x");
  const Discovery found = discovered(repository);
  EXPECT_THAT(files_of(found), ElementsAre(kTwoShards[0], kTwoShards[1]));
  EXPECT_EQ(found.sets[0].index_path, "model.safetensors.index.json");
  EXPECT_THAT(found.sets[0].index.entries, SizeIs(2));
}

TEST_P(DiscoveryEitherWay, NamesTheLimitThatAnIndexPasses) {
  MemoryRepository repository(GetParam());
  repository.add("model.safetensors.index.json", index_of(kTwoShards));
  const auto found = discover(repository, {.index_bytes = 10});
  ASSERT_THAT(found, Fails(ErrorCode::kLimit, HasSubstr("index.json")));
  EXPECT_EQ(found.error().remedy, format::limit_remedy(&format::Limits::index_bytes));
}

TEST_P(DiscoveryEitherWay, PrefersTheSingleFileToAStaleIndex) {
  MemoryRepository repository(GetParam());
  repository.add("model.safetensors", "x")
      .add("model.safetensors.index.json", index_of(kTwoShards));
  const Discovery found = discovered(repository);
  EXPECT_THAT(files_of(found), ElementsAre("model.safetensors"));
  ASSERT_THAT(found.findings, SizeIs(1));
  EXPECT_EQ(found.findings[0].code, "INDEX_STALE");
  EXPECT_EQ(found.sets[0].index_path, "");
}

TEST_P(DiscoveryEitherWay, UsesAnIndexThatSpeaksOfTheSingleFile) {
  MemoryRepository repository(GetParam());
  repository.add("model.safetensors", "x")
      .add("model.safetensors.index.json", index_of({"model.safetensors"}));
  const Discovery found = discovered(repository);
  EXPECT_THAT(found.findings, IsEmpty());
  EXPECT_EQ(found.sets.at(0).index_path, "model.safetensors.index.json");
}

TEST_P(DiscoveryEitherWay, ToleratesABrokenIndexBesideTheSingleFileOnly) {
  MemoryRepository repository(GetParam());
  repository.add("model.safetensors.index.json", "{");
  EXPECT_THAT(discover(repository),
              Fails(ErrorCode::kCorrupt, HasSubstr("model.safetensors.index.json")));
  repository.add("model.safetensors", "x");
  EXPECT_THAT(discovered(repository).findings, SizeIs(1));
}

TEST_P(DiscoveryEitherWay, NamesAPointerOfGitLfsInPlaceOfTheIndex) {
  MemoryRepository repository(GetParam());
  repository.add("model.safetensors.index.json",
                 "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') +
                     "\nsize 1234\n");
  const auto found = discover(repository);
  EXPECT_THAT(found, Fails(ErrorCode::kCorrupt, HasSubstr("is the Git LFS pointer")));
  EXPECT_THAT(found.error().remedy, HasSubstr("git lfs pull"));
}

TEST_P(DiscoveryEitherWay, FindsDiffusersComponents) {
  MemoryRepository repository(GetParam());
  repository
      .add("model_index.json", R"({"_class_name": "P", "scheduler": ["diffusers", "S"],
        "unet": ["diffusers", "U"], "text_encoder": ["transformers", "T"], "safety_checker": null,
        "../evil": ["a", "b"]})")
      .add("unet/diffusion_pytorch_model.safetensors", "x")
      .add("text_encoder/model.safetensors", "x")
      .add("text_encoder/config.json", "{}");
  const Discovery found = discovered(repository);
  ASSERT_THAT(found.sets, SizeIs(2));
  EXPECT_EQ(found.sets[0].component, "unet");
  EXPECT_THAT(found.sets[0].files, ElementsAre("unet/diffusion_pytorch_model.safetensors"));
  EXPECT_EQ(found.sets[1].component, "text_encoder");
}

TEST_P(DiscoveryEitherWay, MissesComponentsThatHaveWeightsByTheirClass) {
  MemoryRepository repository(GetParam());
  repository
      .add("model_index.json", R"({"_class_name": "P", "scheduler": ["diffusers", "S"],
        "tokenizer_2": ["transformers", "X"], "text_tok": ["transformers", "T5TokenizerFast"],
        "processor": ["transformers", "Qwen2VLProcessor"], "force_zeros": [null, true],
        "safety_checker": [null, null], "unet": ["diffusers", "UNet2DConditionModel"],
        "vae": ["diffusers", "AutoencoderKL"], "text_encoder": ["transformers", "T"]})")
      .add("unet/diffusion_pytorch_model.safetensors", "x")
      .add("text_encoder/pytorch_model.bin", "x");
  const Discovery found = discovered(repository);
  EXPECT_THAT(files_of(found), ElementsAre("unet/diffusion_pytorch_model.safetensors"));
  ASSERT_THAT(found.findings, SizeIs(2));
  for (const Finding& finding : found.findings) {
    EXPECT_EQ(finding.code, "SHARD_MISSING");
    EXPECT_EQ(finding.severity, Severity::kError);
  }
  EXPECT_THAT(found.findings[0].message + found.findings[1].message,
              AllOf(HasSubstr("\"vae\""), HasSubstr("\"text_encoder\"")));
}

TEST(Discovery, TakesNoRefusedComponentForAMissingOne) {
  MemoryRepository repository(Listing::kNone);
  repository.add("model_index.json", R"({"unet": ["diffusers", "U"], "vae": ["diffusers", "A"]})")
      .add("unet/diffusion_pytorch_model.safetensors", "x")
      .forbid("vae/diffusion_pytorch_model.safetensors");
  EXPECT_THAT(discover(repository), Fails(ErrorCode::kPermission, HasSubstr("vae/diffusion")));
}

TEST_P(DiscoveryEitherWay, FindsMistralAndAdapterFiles) {
  MemoryRepository mistral(GetParam());
  mistral.add("consolidated.safetensors", "x").add("params.json", "{}");
  EXPECT_THAT(files_of(discovered(mistral)), ElementsAre("consolidated.safetensors"));
  MemoryRepository adapter(GetParam());
  adapter.add("adapter_model.safetensors", "x").add("adapter_config.json", "{}");
  EXPECT_THAT(files_of(discovered(adapter)), ElementsAre("adapter_model.safetensors"));
}

TEST_P(DiscoveryEitherWay, AddsDenseModulesOfSentenceTransformers) {
  MemoryRepository repository(GetParam());
  repository.add("model.safetensors", "x")
      .add("modules.json", R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
                               {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
                               {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}])")
      .add("2_Dense/model.safetensors", "x");
  const Discovery found = discovered(repository);
  ASSERT_THAT(found.sets, SizeIs(2));
  EXPECT_EQ(found.sets[1].component, "2_Dense");
}

TEST(Discovery, TakesNoRefusedModelForAMissingOne) {
  for (const char* path : {"model.safetensors", "model.safetensors.index.json",
                           "diffusion_pytorch_model.safetensors"}) {
    MemoryRepository repository(Listing::kNone);
    repository.add("config.json", "{}").forbid(path);
    EXPECT_THAT(discover(repository), Fails(ErrorCode::kPermission, HasSubstr(path)));
  }
}

TEST_P(DiscoveryEitherWay, SaysWhenThereIsNothing) {
  MemoryRepository repository(GetParam());
  repository.add("README.md", "x");
  EXPECT_THAT(discover(repository), Fails(ErrorCode::kNotFound, HasSubstr("no weights")));
}

TEST(Discovery, SetsAlternativesAside) {
  MemoryRepository repository;
  repository.add("model.safetensors.index.json", index_of(kTwoShards))
      .add("consolidated.safetensors", "x")
      .add("pytorch_model.bin", "x")
      .add("model.fp16.safetensors", "x")
      .add("training_args.bin", "x");
  for (const std::string& shard : kTwoShards) repository.add(shard, "x");
  EXPECT_THAT(
      discovered(repository).set_aside,
      ElementsAre("consolidated.safetensors", "model.fp16.safetensors", "pytorch_model.bin"));
}

TEST(Discovery, GoesOnWithoutMissingShards) {
  MemoryRepository repository;
  repository.add("model.safetensors.index.json", index_of(kTwoShards)).add(kTwoShards[0], "x");
  const Discovery found = discovered(repository);
  EXPECT_THAT(files_of(found), ElementsAre(kTwoShards[0]));
  ASSERT_THAT(found.findings, SizeIs(1));
  EXPECT_EQ(found.findings[0].code, "SHARD_MISSING");
  EXPECT_EQ(found.findings[0].severity, Severity::kError);
  EXPECT_THAT(found.findings[0].message, HasSubstr("1 of 2 shards"));
  EXPECT_THAT(found.findings[0].tensors, ElementsAre("tensor of " + kTwoShards[1]));
}

TEST(Discovery, FailsWhenEveryShardIsMissing) {
  MemoryRepository repository;
  repository.add("model.safetensors.index.json", index_of(kTwoShards));
  EXPECT_THAT(discover(repository), Fails(ErrorCode::kNotFound, HasSubstr("none of them")));
}

TEST(Discovery, ReportsStrayShards) {
  MemoryRepository repository;
  repository.add("model.safetensors.index.json", index_of(kTwoShards))
      .add("model-00003-of-00003.safetensors", "12345");
  for (const std::string& shard : kTwoShards) repository.add(shard, "x");
  const Discovery found = discovered(repository);
  ASSERT_THAT(found.findings, SizeIs(1));
  EXPECT_EQ(found.findings[0].code, "SHARD_STRAY");
  EXPECT_EQ(found.findings[0].severity, Severity::kWarning);
  EXPECT_EQ(found.findings[0].bytes, 5U);
}

TEST(Discovery, RefusesShardsThatEscape) {
  MemoryRepository repository;
  repository.add("model.safetensors.index.json", index_of({"../../etc/passwd"}));
  EXPECT_THAT(discover(repository), Fails(ErrorCode::kCorrupt, HasSubstr("etc/passwd")));
}

TEST(Discovery, TakesVariantsOnlyWithoutADefault) {
  MemoryRepository repository;
  repository.add("model.fp16-00001-of-00002.safetensors", "x")
      .add("model.fp16-00002-of-00002.safetensors", "x")
      .add("model.safetensors.index.fp16.json",
           index_of(
               {"model.fp16-00001-of-00002.safetensors", "model.fp16-00002-of-00002.safetensors"}));
  EXPECT_EQ(discovered(repository).sets.at(0).index_path, "model.safetensors.index.fp16.json");
  repository.add("model.safetensors", "x");
  EXPECT_THAT(files_of(discovered(repository)), ElementsAre("model.safetensors"));
}

TEST(Discovery, TakesTheOneGroupOfAnyName) {
  MemoryRepository repository;
  repository.add("weights-000000-of-000003.safetensors", "x")
      .add("weights-000002-of-000003.safetensors", "x");
  const Discovery found = discovered(repository);
  EXPECT_THAT(files_of(found), SizeIs(2));
  ASSERT_THAT(found.findings, SizeIs(1));
  EXPECT_THAT(found.findings[0].message, HasSubstr("weights-000001-of-000003.safetensors"));
}

TEST(Discovery, MissesTheIndexOfSeveralShards) {
  MemoryRepository repository;
  for (const std::string& shard : kTwoShards) repository.add(shard, "x");
  const Discovery found = discovered(repository);
  EXPECT_THAT(files_of(found), SizeIs(2));
  ASSERT_THAT(found.findings, SizeIs(1));
  EXPECT_EQ(found.findings[0].code, "INDEX_MISSING");
  EXPECT_EQ(found.findings[0].severity, Severity::kWarning);
  EXPECT_THAT(found.findings[0].message, HasSubstr("2 shards without an index"));
}

TEST(Discovery, DoesNotChooseBetweenGroups) {
  MemoryRepository repository;
  repository.add("m-Q4_0.gguf", "x").add("m-Q8_0.gguf", "x").add("mmproj-f16.gguf", "x");
  EXPECT_THAT(discover(repository),
              Fails(ErrorCode::kInvalidArgument,
                    AllOf(HasSubstr("m-Q4_0.gguf, m-Q8_0.gguf"), HasSubstr("name one of them"))));
}

// Where each model has a folder, the folder leads to the whole of it, its configuration included.
TEST(Discovery, NamesModelsByTheirFolders) {
  MemoryRepository repository;
  for (const std::string& shard : kTwoShards) repository.add("big/" + shard, "x");
  repository.add("pair/a.safetensors", "x").add("pair/b.safetensors", "x");
  EXPECT_THAT(discover(repository),
              Fails(ErrorCode::kInvalidArgument,
                    AllOf(HasSubstr("2 folders with models: big, pair"), HasSubstr("/big"))));
}

TEST(Discovery, NotesThatTheNamedFileIsOneOfSeveralShards) {
  MemoryRepository repository(Listing::kGiven, kTwoShards[0]);
  for (const std::string& shard : kTwoShards) repository.add(shard, "x");
  const Discovery found = discovered(repository);
  EXPECT_THAT(files_of(found), ElementsAre(kTwoShards[0]));
  ASSERT_THAT(found.findings, SizeIs(1));
  EXPECT_EQ(found.findings[0].code, "SHARD_ALONE");
  EXPECT_EQ(found.findings[0].severity, Severity::kNote);
  EXPECT_THAT(found.findings[0].message, HasSubstr(kTwoShards[0] + " is one of 2 shards"));
}

TEST(Discovery, TakesTheOneGgufAndLeavesItsProjectorAside) {
  MemoryRepository repository;
  repository.add("m-Q4_0-00001-of-00002.gguf", "x")
      .add("m-Q4_0-00002-of-00002.gguf", "x")
      .add("mmproj-f16.gguf", "x");
  const Discovery found = discovered(repository);
  EXPECT_THAT(files_of(found), SizeIs(2));
  EXPECT_EQ(found.sets[0].container, format::Container::kGguf);
  EXPECT_THAT(found.set_aside, ElementsAre("mmproj-f16.gguf"));
}

TEST(Discovery, RecognisesWhatItCannotRead) {
  MemoryRepository repository;
  repository.add("pytorch_model.bin", "x").add("model.onnx", "x").add("training_args.bin", "x");
  const Discovery found = discovered(repository);
  EXPECT_THAT(files_of(found), ElementsAre("pytorch_model.bin"));
  EXPECT_EQ(found.sets[0].container, format::Container::kUnknown);
}

TEST(Discovery, GoesByTheFileThatIsNamed) {
  MemoryRepository shard(Listing::kGiven, kTwoShards[1]);
  for (const std::string& name : kTwoShards) shard.add(name, "x");
  EXPECT_THAT(files_of(discovered(shard)), ElementsAre(kTwoShards[1]));

  MemoryRepository gguf(Listing::kNone, "m-00002-of-00002.gguf");
  gguf.add("m-00001-of-00002.gguf", "x").add("m-00002-of-00002.gguf", "x");
  EXPECT_THAT(files_of(discovered(gguf)), SizeIs(2));

  MemoryRepository index(Listing::kGiven, "sub/model.safetensors.index.json");
  index.add("sub/model.safetensors.index.json", index_of(kTwoShards));
  for (const std::string& name : kTwoShards) index.add("sub/" + name, "x");
  EXPECT_THAT(files_of(discovered(index)),
              ElementsAre("sub/" + kTwoShards[0], "sub/" + kTwoShards[1]));

  MemoryRepository odd(Listing::kGiven, "weights.dat");
  odd.add("weights.dat", "x");
  EXPECT_EQ(discovered(odd).sets.at(0).container, format::Container::kUnknown);
}

TEST(Discovery, AsksForTheFolderWhenAConfigurationIsNamed) {
  for (const char* name : {"config.json", "model_index.json"}) {
    MemoryRepository repository(Listing::kGiven, name);
    repository.add("config.json", R"({"model_type": "llama"})")
        .add("model_index.json", R"({"vae": ["diffusers", "A"]})");
    const auto found = discover(repository);
    EXPECT_THAT(found, Fails(ErrorCode::kInvalidArgument, HasSubstr("is a configuration")));
    EXPECT_THAT(found.error().remedy, HasSubstr("name the folder"));
  }
}

TEST(Discovery, GoesByTheFolderThatIsNamed) {
  MemoryRepository repository(Listing::kGiven, "unet");
  repository.add("unet/model.safetensors", "x").add("model.safetensors", "x");
  EXPECT_THAT(files_of(discovered(repository)), ElementsAre("unet/model.safetensors"));
  MemoryRepository wrong(Listing::kGiven, "nowhere");
  wrong.add("model.safetensors", "x");
  EXPECT_THAT(discover(wrong), Fails(ErrorCode::kNotFound, HasSubstr("\"nowhere\"")));
}

}  // namespace
}  // namespace gridscope::model
