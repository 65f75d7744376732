#include "gridscope/store/disk_repository.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "store/unprivileged.hpp"
#include "store/world.hpp"

namespace gridscope::store {
namespace {

namespace fs = std::filesystem;

using test::Fails;
using test::IsOk;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kCommit(40, 'a');

void write(const fs::path& file, std::string_view text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

class DiskRepositoryTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Repository>> open(const fs::path& path, bool chosen_from_disk = false) {
    return open_disk_repository({.kind = ReferenceKind::kDisk,
                                 .text = path.string(),
                                 .location = path.string(),
                                 .chosen_from_disk = chosen_from_disk},
                                {.observer = &observer_});
  }

  const test::TempDir directory_;
  test::CollectingObserver observer_;
};

TEST_F(DiskRepositoryTest, ListsADirectoryWhole) {
  write(directory_ / "model.safetensors", "tensors");
  write(directory_ / "unet/model.safetensors", "more");
  for (const fs::path& path : {directory_.path(), directory_.path() / ""}) {
    const auto repository = open(path);
    ASSERT_THAT(repository, IsOk());
    EXPECT_EQ((*repository)->info().kind, ReferenceKind::kDisk);
    EXPECT_EQ((*repository)->info().location, directory_.path().string());
    EXPECT_EQ((*repository)->info().commit, "");
    EXPECT_THAT(*(*repository)->listing(), SizeIs(2));
    EXPECT_EQ((*repository)->named_file(), "");
    const auto source = (*repository)->open("unet/model.safetensors");
    ASSERT_THAT(source, IsOk());
    EXPECT_EQ(read_all(**source), "more");
  }
}

TEST_F(DiskRepositoryTest, NamesAFileAndListsItsDirectoryAlone) {
  write(directory_ / "model.safetensors", "tensors");
  write(directory_ / "config.json", "{}");
  write(directory_ / "sub/other.safetensors", "x");
  const auto repository = open(directory_ / "model.safetensors");
  ASSERT_THAT(repository, IsOk());
  EXPECT_EQ((*repository)->named_file(), "model.safetensors");
  EXPECT_THAT(*(*repository)->listing(), SizeIs(2));
}

TEST_F(DiskRepositoryTest, FindsInsideOnly) {
  write(directory_ / "model/a", "x");
  write(directory_ / "secret", "x");
  const auto repository = open(directory_ / "model");
  ASSERT_THAT(repository, IsOk());
  EXPECT_EQ((*repository)->find("a").value()->size, 1U);
  EXPECT_EQ((*repository)->find("b").value(), std::nullopt);
  EXPECT_THAT((*repository)->find("../secret"),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("..")));
  EXPECT_THAT((*repository)->open("../secret"),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("..")));
  EXPECT_THAT((*repository)->open("b"), Fails(ErrorCode::kNotFound, HasSubstr("b")));
}

TEST_F(DiskRepositoryTest, SaysWhatIsMissing) {
  EXPECT_THAT(open(directory_ / "missing"),
              Fails(ErrorCode::kNotFound, HasSubstr("no such file or directory")));
}

TEST_F(DiskRepositoryTest, SaysWhatStandsThereInsteadOfAFile) {
  fs::create_symlink("blobs/gone", directory_ / "model.safetensors");
  EXPECT_THAT(open(directory_ / "model.safetensors"),
              Fails(ErrorCode::kNotFound, HasSubstr("is a dangling link to \"blobs/gone\"")));
  ASSERT_EQ(::mkfifo((directory_ / "pipe.gguf").c_str(), 0600), 0);
  for (const fs::path& path : {directory_ / "pipe.gguf", fs::path("/dev/null")}) {
    EXPECT_THAT(open(path), Fails(ErrorCode::kInvalidArgument, HasSubstr("not a regular file")));
  }
}

TEST_F(DiskRepositoryTest, FindsByNameWhereItMayNotList) {
  write(directory_ / "model.safetensors", "tensors");
  write(directory_ / "config.json", "{}");
  write(directory_ / "secret/x", "x");
  fs::permissions(directory_ / "secret", fs::perms::none);
  fs::permissions(directory_.path(), fs::perms(0311));
  {
    const Unprivileged nobody;
    const auto repository = open(directory_ / "model.safetensors");
    ASSERT_THAT(repository, IsOk());
    EXPECT_EQ((*repository)->listing(), std::nullopt);
    EXPECT_EQ((*repository)->named_file(), "model.safetensors");
    EXPECT_EQ((*repository)->find("config.json").value(), (FileEntry{"config.json", 2}));
    EXPECT_EQ((*repository)->find("missing").value(), std::nullopt);
    EXPECT_EQ((*repository)->find("secret/x").value(), std::nullopt);
    EXPECT_THAT((*repository)->find("../x"), Fails(ErrorCode::kInvalidArgument, HasSubstr("..")));
    EXPECT_THAT((*repository)->open("../x"), Fails(ErrorCode::kInvalidArgument, HasSubstr("..")));
    EXPECT_THAT((*repository)->open("secret/x"), Fails(ErrorCode::kPermission, HasSubstr("x")));
    EXPECT_EQ(read_all(**(*repository)->open("model.safetensors")), "tensors");
    EXPECT_THAT(observer_.details(), Contains(HasSubstr("cannot be listed")));
    EXPECT_THAT(open(directory_.path()), Fails(ErrorCode::kPermission, HasSubstr("directory")));
  }
  fs::permissions(directory_.path(), fs::perms::owner_all);
  fs::permissions(directory_ / "secret", fs::perms::owner_all);
}

TEST_F(DiskRepositoryTest, SaysThatTheDiskWasChosen) {
  write(directory_ / "a", "x");
  ASSERT_THAT(open(directory_.path(), true), IsOk());
  EXPECT_THAT(observer_.details(), Contains(HasSubstr("exists on disk")));
  observer_.clear();
  ASSERT_THAT(open(directory_.path()), IsOk());
  EXPECT_THAT(observer_.details(), IsEmpty());
}

class HubFolder : public DiskRepositoryTest {
 protected:
  HubFolder() { write(folder() / "snapshots" / kCommit / "model.safetensors", "tensors"); }
  [[nodiscard]] fs::path folder() const { return directory_ / "models--org--name"; }
};

TEST_F(HubFolder, StandsForTheSnapshotOfMain) {
  write(folder() / "refs/main", kCommit);
  const auto repository = open(folder());
  ASSERT_THAT(repository, IsOk());
  EXPECT_EQ((*repository)->info().commit, kCommit);
  EXPECT_EQ((*repository)->info().location, (folder() / "snapshots" / kCommit).string());
  EXPECT_THAT(*(*repository)->listing(), SizeIs(1));
  EXPECT_THAT(observer_.details(), Contains(HasSubstr("commit " + kCommit)));
}

TEST_F(HubFolder, IsNeverGuessed) {
  EXPECT_THAT(open(folder()), Fails(ErrorCode::kNotFound, HasSubstr("no snapshot of main")));
  write(folder() / "refs/v1", kCommit);
  EXPECT_THAT(open(folder()), Fails(ErrorCode::kNotFound, HasSubstr("only of: v1")));
  write(folder() / "refs/main", std::string(40, 'b'));
  EXPECT_THAT(open(folder()), Fails(ErrorCode::kNotFound, HasSubstr("snapshots")));
}

TEST_F(HubFolder, KnowsTheCommitOfASnapshot) {
  const auto repository = open(folder() / "snapshots" / kCommit);
  ASSERT_THAT(repository, IsOk());
  EXPECT_EQ((*repository)->info().commit, kCommit);
  const auto file = open(folder() / "snapshots" / kCommit / "model.safetensors");
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ((*file)->info().commit, kCommit);
  EXPECT_EQ((*file)->named_file(), "model.safetensors");
}

}  // namespace
}  // namespace gridscope::store
