#include "gridscope/store/hub_cache.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::store {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::Optional;
using ::testing::UnorderedElementsAre;

const std::string kCommit(40, 'a');

void write(const fs::path& file, std::string_view text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

// Laid out as the Hub's tools do it: blobs, and links to them from the snapshot.
class HubCacheTest : public ::testing::Test {
 protected:
  HubCacheTest() : cache_(directory_.path(), "org/name") {
    write(folder() / "refs/main", kCommit + "\n");
    write(folder() / "refs/refs/pr/7", std::string(40, 'b'));
    write(folder() / "refs/broken", "main");
    write(folder() / "blobs/0123", "content");
    write(folder() / "blobs/4567.incomplete", "cont");
    fs::create_directories(folder() / "snapshots" / kCommit / "sub");
    fs::create_symlink("../../blobs/0123", folder() / "snapshots" / kCommit / "file");
    fs::create_symlink("../../../blobs/0123", folder() / "snapshots" / kCommit / "sub/file");
    fs::create_symlink("../../blobs/9999", folder() / "snapshots" / kCommit / "lost");
  }

  [[nodiscard]] fs::path folder() const { return directory_ / "models--org--name"; }
  void write_tree(std::string_view text) const {
    write(folder() / "trees" / (kCommit + ".json"), text);
  }

  const test::TempDir directory_;
  const HubCache cache_;
};

TEST_F(HubCacheTest, KnowsWhatARevisionWas) {
  EXPECT_EQ(cache_.commit_of("main"), kCommit);
  EXPECT_EQ(cache_.commit_of("refs/pr/7"), std::string(40, 'b'));
  EXPECT_EQ(cache_.commit_of("broken"), std::nullopt);
  EXPECT_EQ(cache_.commit_of("v1"), std::nullopt);
  EXPECT_THAT(cache_.revisions(), UnorderedElementsAre("main", "broken", "refs/pr/7"));
}

TEST_F(HubCacheTest, FindsFilesThroughTheirLinks) {
  EXPECT_TRUE(cache_.file(kCommit, "file").has_value());
  EXPECT_TRUE(cache_.file(kCommit, "sub/file").has_value());
  for (const char* missing : {"lost", "sub", "other", "../refs/main", "/etc/passwd"}) {
    EXPECT_FALSE(cache_.file(kCommit, missing).has_value()) << missing;
  }
  EXPECT_FALSE(cache_.file("main", "file").has_value());
  EXPECT_FALSE(cache_.file(std::string(40, 'b'), "file").has_value());
}

TEST_F(HubCacheTest, ListsASnapshot) {
  EXPECT_THAT(cache_.snapshot(kCommit),
              Optional(ElementsAre(FileEntry{"file", 7}, FileEntry{"sub/file", 7})));
  EXPECT_EQ(cache_.snapshot(std::string(40, 'b')), std::nullopt);
  EXPECT_EQ(cache_.snapshot("../refs"), std::nullopt);
}

TEST_F(HubCacheTest, ReadsAKeptListing) {
  write_tree(R"({"format_version": 1, "files": {
    "model.safetensors": {"size": 9, "blob_id": "g", "lfs_sha256": "s", "lfs_size": 9},
    "../escape": {"size": 1, "blob_id": "x"},
    "config.json": {"size": 2, "blob_id": "h", "xet_hash": null}}})");
  EXPECT_THAT(cache_.listing(kCommit),
              Optional(ElementsAre(FileEntry{"config.json", 2, "h"},
                                   FileEntry{"model.safetensors", 9, "s"})));
  EXPECT_EQ(cache_.listing(std::string(40, 'b')), std::nullopt);
}

TEST_F(HubCacheTest, IgnoresAListingItCannotRead) {
  for (const char* bad :
       {"", "{", "[]", R"({"files": {}})", R"({"format_version": 2, "files": {}})",
        R"({"format_version": 1, "files": []})", R"({"format_version": 1, "files": {"a": {}}})",
        R"({"format_version": 1, "files": {"a": {"size": -1}}})"}) {
    write_tree(bad);
    EXPECT_EQ(cache_.listing(kCommit), std::nullopt) << bad;
  }
}

TEST(HubCache, IsEmptyWithoutAPlace) {
  const HubCache cache("", "org/name");
  EXPECT_EQ(cache.commit_of("main"), std::nullopt);
  EXPECT_FALSE(cache.file(kCommit, "file").has_value());
  EXPECT_EQ(cache.listing(kCommit), std::nullopt);
  EXPECT_EQ(cache.snapshot(kCommit), std::nullopt);
}

TEST(HubCache, NamesFoldersAndBack) {
  const HubCache legacy("/cache", "gpt2");
  EXPECT_EQ(legacy.snapshot_folder("c"), "/cache/models--gpt2/snapshots/c");
  EXPECT_EQ(repo_id_of_folder("models--org--name"), "org/name");
  EXPECT_EQ(repo_id_of_folder("models--gpt2"), "gpt2");
  for (const char* other : {"models", "models--", "datasets--org--name", "models--a--b--c", ""}) {
    EXPECT_EQ(repo_id_of_folder(other), "") << other;
  }
}

}  // namespace
}  // namespace gridscope::store
