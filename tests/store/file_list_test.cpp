#include "gridscope/store/file_list.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>

#include "store/unprivileged.hpp"
#include "support/fakes.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::store {
namespace {

namespace fs = std::filesystem;

using test::Fails;
using test::IsOk;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

void write(const fs::path& file, std::string_view text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

std::vector<std::string> paths_of(const Result<std::vector<FileEntry>>& files) {
  EXPECT_THAT(files, IsOk());
  std::vector<std::string> paths;
  for (const FileEntry& file : files.value()) paths.push_back(file.path);
  return paths;
}

TEST(WalkDirectory, ListsFilesWithSizesSorted) {
  const test::TempDir dir;
  write(dir / "b", "12");
  write(dir / "a/c", "123");
  write(dir / "a.txt", "");
  const auto files = walk_directory(dir.path());
  ASSERT_THAT(files, IsOk());
  EXPECT_THAT(*files, ElementsAre(FileEntry{"a.txt", 0}, FileEntry{"a/c", 3}, FileEntry{"b", 2}));
}

TEST(WalkDirectory, FollowsLinks) {
  const test::TempDir dir;
  write(dir / "blobs/x", "123");
  write(dir / "shared/vae/weights", "1");
  fs::create_directories(dir / "model");
  fs::create_symlink("../blobs/x", dir / "model/file");
  fs::create_directory_symlink("../shared/vae", dir / "model/vae");
  EXPECT_THAT(paths_of(walk_directory(dir / "model")), ElementsAre("file", "vae/weights"));
  EXPECT_THAT(paths_of(walk_directory(dir / "model", {.depth = 0})), ElementsAre("file"));
}

TEST(WalkDirectory, FollowsNoLinkBackToWhereItLies) {
  const test::TempDir dir;
  write(dir / "model/a/x", "1");
  write(dir / "outside/y", "1");
  fs::create_directory_symlink(".", dir / "model/itself");
  fs::create_directory_symlink("..", dir / "model/parent");
  fs::create_directory_symlink("/", dir / "model/root");
  fs::create_directory_symlink("../../model", dir / "model/a/back");
  fs::create_directory_symlink("../outside", dir / "model/b");
  fs::create_directory_symlink("../model", dir / "outside/again");
  EXPECT_THAT(paths_of(walk_directory(dir / "model")), ElementsAre("a/x", "b/y"));
  fs::create_directory_symlink("model", dir / "by-link");
  EXPECT_THAT(paths_of(walk_directory(dir / "by-link")), ElementsAre("a/x", "b/y"));
}

TEST(WalkDirectory, CountsDirectoriesSinceCrossingLinksMultiply) {
  const test::TempDir dir;
  for (int from = 0; from < 8; ++from) {
    fs::create_directories(dir / std::to_string(from));
    for (int to = 0; to < 8; ++to) {
      const std::string name = std::to_string(to);
      fs::create_directory_symlink("../" + name, dir / std::to_string(from) / name);
    }
  }
  EXPECT_THAT(walk_directory(dir.path(), {.max_entries = 1'000}),
              Fails(ErrorCode::kLimit, HasSubstr("1,000 files and directories")));
}

TEST(WalkDirectory, LeavesOutWhatCannotBeListedAndSaysSo) {
  const test::TempDir dir;
  write(dir / "model.safetensors", "x");
  write(dir / "lost+found/x", "x");
  fs::permissions(dir.path(), fs::perms(0755));
  fs::permissions(dir / "lost+found", fs::perms::none);
  test::CollectingObserver observer;
  {
    const Unprivileged nobody;
    EXPECT_THAT(paths_of(walk_directory(dir.path(), {.observer = &observer})),
                ElementsAre("model.safetensors"));
    EXPECT_THAT(walk_directory(dir / "lost+found"),
                Fails(ErrorCode::kPermission, HasSubstr("lost+found")));
  }
  fs::permissions(dir / "lost+found", fs::perms::owner_all);
  ASSERT_EQ(observer.warnings().size(), 1U);
  EXPECT_EQ(observer.warnings()[0].code, "DIRECTORY_SKIPPED");
  EXPECT_THAT(observer.warnings()[0].message, HasSubstr("lost+found"));
}

TEST(WalkDirectory, NamesLinksToNothing) {
  const test::TempDir dir;
  for (int i = 0; i < 7; ++i) {
    fs::create_symlink("../missing", dir / ("m" + std::to_string(i) + ".safetensors"));
  }
  fs::create_symlink("missing", dir / ".#lock");
  test::CollectingObserver observer;
  EXPECT_THAT(paths_of(walk_directory(dir.path(), {.observer = &observer})), ElementsAre());
  ASSERT_EQ(observer.warnings().size(), 1U);
  EXPECT_EQ(observer.warnings()[0].code, "LINK_DANGLING");
  EXPECT_THAT(
      observer.warnings()[0].message,
      AllOf(HasSubstr("\"m0.safetensors\""), HasSubstr("and 2 more"), Not(HasSubstr("lock"))));
}

TEST(WalkDirectory, LeavesHiddenDirectoriesAndOddNamesOut) {
  const test::TempDir dir;
  write(dir / ".git/config", "x");
  write(dir / ".gitattributes", "x");
  write(dir / "new\nline", "x");
  write(dir / "back\\slash", "x");
  EXPECT_THAT(paths_of(walk_directory(dir.path())), ElementsAre(".gitattributes"));
}

TEST(WalkDirectory, StopsAtItsLimits) {
  const test::TempDir dir;
  write(dir / "a/b/c", "x");
  write(dir / "d", "x");
  EXPECT_THAT(paths_of(walk_directory(dir.path(), {.depth = 0})), ElementsAre("d"));
  EXPECT_THAT(paths_of(walk_directory(dir.path(), {.depth = 1})), ElementsAre("d"));
  EXPECT_THAT(paths_of(walk_directory(dir.path(), {.depth = 2})), ElementsAre("a/b/c", "d"));
  EXPECT_THAT(walk_directory(dir.path(), {.max_entries = 1}),
              Fails(ErrorCode::kLimit, HasSubstr("more than 1 files and directories")));
}

TEST(WalkDirectory, SaysWhyItCannot) {
  const test::TempDir dir;
  write(dir / "file", "x");
  EXPECT_THAT(walk_directory(dir / "missing"), Fails(ErrorCode::kNotFound, HasSubstr("missing")));
  EXPECT_THAT(walk_directory(dir / "file"), Fails(ErrorCode::kNotFound, HasSubstr("file")));
}

TEST(FileList, FindsFilesAndFolders) {
  std::vector<FileEntry> files = {{"b/c", 1}, {"a", 2}, {"b.txt", 3}, {"a", 2}};
  sort_files(files);
  EXPECT_THAT(files, ElementsAre(FileEntry{"a", 2}, FileEntry{"b.txt", 3}, FileEntry{"b/c", 1}));
  ASSERT_NE(find_file(files, "b/c"), nullptr);
  EXPECT_EQ(find_file(files, "b/c")->size, 1U);
  EXPECT_EQ(find_file(files, "b"), nullptr);
  EXPECT_EQ(find_file(files, "z"), nullptr);
  EXPECT_TRUE(has_folder(files, "b"));
  EXPECT_FALSE(has_folder(files, "a"));
  EXPECT_FALSE(has_folder(files, "b/c"));
}

RC_GTEST_PROP(FileList, ReadsWhatItWrote, (std::vector<std::pair<std::uint64_t, unsigned>> raw)) {
  std::vector<FileEntry> files;
  for (const auto& [size, name] : raw) {
    files.push_back({.path = "dir/" + std::to_string(name),
                     .size = size,
                     .content_id = name % 2 == 0 ? "" : "id" + std::to_string(name)});
  }
  sort_files(files);
  const auto read = read_file_list(write_file_list(files));
  RC_ASSERT(read.has_value());
  RC_ASSERT(*read == files);
}

TEST(FileList, RefusesWhatIsDamaged) {
  const std::string good = write_file_list({{"a", 1, "x"}, {"b", 2, ""}});
  EXPECT_THAT(read_file_list(good), IsOk());
  for (std::size_t cut = 1; cut < good.size(); ++cut) {
    const auto read = read_file_list(std::string_view(good).substr(0, cut));
    const bool whole_lines = good[cut - 1] == '\n';
    EXPECT_EQ(read.has_value(), whole_lines) << cut;
  }
  for (const char* bad : {"", "gridscope.files/2\n", "gridscope.files/1\nx\ty\tz\n",
                          "gridscope.files/1\n1\t\t../x\n", "gridscope.files/1\n-1\t\ta\n"}) {
    EXPECT_THAT(read_file_list(bad), Fails(ErrorCode::kCorrupt, HasSubstr("damaged"))) << bad;
  }
}

}  // namespace
}  // namespace gridscope::store
