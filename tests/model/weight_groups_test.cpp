#include "gridscope/model/weight_groups.hpp"

#include <gmock/gmock.h>

namespace gridscope::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<store::FileEntry> files(const std::vector<std::string>& paths) {
  std::vector<store::FileEntry> entries;
  for (const std::string& path : paths) entries.push_back({.path = path, .size = 1});
  return entries;
}

TEST(WeightGroups, PutsShardsTogether) {
  const auto all =
      files({"a-00001-of-00003.gguf", "a-00003-of-00003.gguf", "b.gguf", "sub/b.gguf"});
  const auto groups = group_weights(all, "", ".gguf");
  ASSERT_THAT(groups, SizeIs(3));
  EXPECT_EQ(groups[0].name, "a-00001-of-00003.gguf");
  EXPECT_THAT(groups[0].files, SizeIs(2));
  EXPECT_THAT(groups[0].missing, ElementsAre("a-00002-of-00003.gguf"));
  EXPECT_THAT(groups[1].missing, IsEmpty());
  EXPECT_THAT(group_weights(all, "sub/", ".gguf"), SizeIs(1));
  const std::vector<std::string> taken = {"b.gguf"};
  EXPECT_THAT(group_weights(all, "", ".gguf", taken), SizeIs(2));
}

TEST(WeightGroups, CountsFromZeroAndInSixDigits) {
  const auto groups =
      group_weights(files({"m-000000-of-000002.safetensors", "m-000001-of-000002.safetensors"}), "",
                    ".safetensors");
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_THAT(groups[0].missing, IsEmpty());
  EXPECT_THAT(shard_siblings("d/m-000001-of-000002.safetensors"),
              ElementsAre("d/m-000001-of-000002.safetensors", "d/m-000002-of-000002.safetensors"));
}

TEST(WeightGroups, NamesTheSiblingsOfAShard) {
  EXPECT_THAT(shard_siblings("x/m-00002-of-00002.gguf"),
              ElementsAre("x/m-00001-of-00002.gguf", "x/m-00002-of-00002.gguf"));
  EXPECT_THAT(shard_siblings("m.gguf"), ElementsAre("m.gguf"));
  EXPECT_THAT(shard_siblings("m-00001-of-99999.gguf"), ElementsAre("m-00001-of-99999.gguf"));
}

TEST(WeightGroups, PrefersTheFolderItselfAndDefaultsToVariants) {
  const auto preferred = preferred_groups(
      group_weights(files({"m.fp16.safetensors", "m.safetensors", "sub/x.safetensors"}), "",
                    ".safetensors"),
      "");
  ASSERT_THAT(preferred, SizeIs(1));
  EXPECT_EQ(preferred[0].name, "m.safetensors");
  EXPECT_THAT(
      preferred_groups(group_weights(files({"m.fp16.safetensors"}), "", ".safetensors"), ""),
      SizeIs(1));
}

TEST(WeightGroups, KnowsWeightsByTheirName) {
  EXPECT_TRUE(is_weight_file("a/model.safetensors"));
  EXPECT_TRUE(is_weight_file("pytorch_model-00001-of-00002.bin"));
  EXPECT_FALSE(is_weight_file("training_args.bin"));
  EXPECT_FALSE(is_weight_file("config.json"));
}

TEST(WeightGroups, AreNamedByTheirFolders) {
  const std::vector<WeightGroup> groups = {
      {.name = "a/big/m-00001-of-00002.safetensors", .files = {}, .missing = {}},
      {.name = "a/here.safetensors", .files = {}, .missing = {}},
      {.name = "a/pair/x.safetensors", .files = {}, .missing = {}},
      {.name = "a/pair/y.safetensors", .files = {}, .missing = {}}};
  EXPECT_THAT(names_to_choose(groups, "a/"), ElementsAre("a/big", "a/here.safetensors", "a/pair"));
  EXPECT_THAT(names_to_choose(std::span(groups).last(2), "a/"),
              ElementsAre("a/pair/x.safetensors", "a/pair/y.safetensors"));
}

TEST(WeightGroups, TellsProjectorsByName) {
  EXPECT_TRUE(is_projector_file("mmproj-model-f16.gguf"));
  EXPECT_TRUE(is_projector_file("d/gemma-mmproj.gguf"));
  EXPECT_FALSE(is_projector_file("mmproj/model-f16.gguf"));
  EXPECT_FALSE(is_projector_file("mmproj.safetensors"));
}

}  // namespace
}  // namespace gridscope::model
