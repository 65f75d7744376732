#include "gridscope/store/file_list.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>

#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::store {
namespace {

namespace fs = std::filesystem;

using test::Fails;
using test::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

TEST(WalkDirectory, FollowsLinksToFilesOnly) {
  const test::TempDir dir;
  write(dir / "blobs/x", "123");
  fs::create_directories(dir / "model");
  fs::create_symlink("../blobs/x", dir / "model/file");
  fs::create_symlink("../blobs/missing", dir / "model/broken");
  fs::create_directory_symlink("..", dir / "model/loop");
  EXPECT_THAT(paths_of(walk_directory(dir / "model")), ElementsAre("file"));
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
  EXPECT_THAT(walk_directory(dir.path(), {.max_files = 1}),
              Fails(ErrorCode::kLimit, HasSubstr("more than 1 files")));
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
