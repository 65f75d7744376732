#include "gridscope/io/file_source.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "gridscope/core/parallel.hpp"
#include "support/fakes.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::io {
namespace {

using test::Fails;
using test::IsOk;
using test::to_text;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using Read = test::CollectingObserver::Read;

void write_file(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

class FileSource : public ::testing::Test {
 protected:
  std::unique_ptr<ByteSource> open(std::string_view text) {
    write_file(path_, text);
    auto source = open_file(path_, observer_);
    EXPECT_THAT(source, IsOk());
    return *std::move(source);
  }

  const test::TempDir directory_;
  const std::filesystem::path path_ = directory_ / "a file.bin";
  test::CollectingObserver observer_;
};

TEST_F(FileSource, ReadsByPosition) {
  const auto source = open("abcdefghij");
  EXPECT_EQ(source->size(), 10);
  EXPECT_EQ(source->identity().name, path_.string());
  EXPECT_FALSE(source->identity().version.empty());
  std::vector<std::byte> bytes(4);
  ASSERT_THAT(source->read_at(6, bytes), IsOk());
  EXPECT_EQ(to_text(bytes), "ghij");
}

TEST_F(FileSource, ReportsEveryReadOnce) {
  const auto source = open("abcdefghij");
  std::vector<std::byte> bytes(4);
  ASSERT_THAT(source->read_at(2, bytes), IsOk());
  ASSERT_THAT(source->read_at(0, {}), IsOk());
  const std::vector<Read> expected = {{path_.string(), 2, 4, Origin::kDisk}};
  EXPECT_EQ(observer_.reads(), expected);
}

TEST_F(FileSource, MergesNeighboursInReadMany) {
  const auto source = open("abcdefghij" + std::string(100'000, '.') + "klm");
  std::vector<std::byte> one(2);
  std::vector<std::byte> two(3);
  std::vector<std::byte> far(3);
  const ReadRequest requests[] = {{100'010, far}, {5, two}, {0, one}};
  ASSERT_THAT(source->read_many(requests), IsOk());
  EXPECT_EQ(to_text(one), "ab");
  EXPECT_EQ(to_text(two), "fgh");
  EXPECT_EQ(to_text(far), "klm");
  const std::vector<Read> expected = {{path_.string(), 0, 8, Origin::kDisk},
                                      {path_.string(), 100'010, 3, Origin::kDisk}};
  EXPECT_EQ(observer_.reads(), expected);
}

TEST_F(FileSource, ReadsLongRequestsInParts) {
  std::string text(9'000'000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 + (i >> 12));
  const auto source = open(text);
  std::vector<std::byte> all(text.size());
  std::vector<std::byte> middle(10);
  const ReadRequest requests[] = {{0, all}, {4'194'300, middle}};
  ASSERT_THAT(source->read_many(requests), IsOk());
  EXPECT_EQ(to_text(all), text);
  EXPECT_EQ(to_text(middle), text.substr(4'194'300, 10));
  EXPECT_EQ(observer_.reads().size(), 3);
}

TEST_F(FileSource, RefusesToReadBeyondTheEnd) {
  const auto source = open("abc");
  std::vector<std::byte> bytes(2);
  const ReadRequest requests[] = {{0, bytes}, {2, bytes}};
  EXPECT_THAT(source->read_at(2, bytes),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("2 bytes at 2 asked of")));
  EXPECT_THAT(source->read_many(requests),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("which has 3 bytes")));
  EXPECT_TRUE(observer_.reads().empty());
}

TEST_F(FileSource, ReadsAnEmptyFile) {
  const auto source = open("");
  EXPECT_EQ(source->size(), 0);
  EXPECT_THAT(source->read_at(0, {}), IsOk());
}

TEST_F(FileSource, NoticesThatTheFileWasCut) {
  const auto source = open("abcdefghij");
  std::filesystem::resize_file(path_, 5);
  std::vector<std::byte> bytes(10);
  EXPECT_THAT(source->read_at(0, bytes),
              Fails(ErrorCode::kChanged, HasSubstr("was written to while it was read")));
}

TEST_F(FileSource, NoticesThatTheFileGrew) {
  const auto source = open("abc");
  std::ofstream(path_, std::ios::app) << "d";
  std::vector<std::byte> bytes(3);
  EXPECT_THAT(source->read_at(0, bytes), Fails(ErrorCode::kChanged, HasSubstr("written to")));
}

TEST_F(FileSource, NoticesANewModificationTime) {
  const auto source = open("abc");
  const timespec times[] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, {.tv_sec = 1000, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  std::vector<std::byte> bytes(3);
  const ReadRequest requests[] = {{0, bytes}};
  EXPECT_THAT(source->read_many(requests), Fails(ErrorCode::kChanged, HasSubstr("written to")));
  EXPECT_TRUE(observer_.reads().empty());
}

TEST_F(FileSource, GoesOnReadingAFileThatWasReplacedByRename) {
  const auto source = open("old");
  write_file(directory_ / "new", "new");
  std::filesystem::rename(directory_ / "new", path_);
  std::vector<std::byte> bytes(3);
  ASSERT_THAT(source->read_at(0, bytes), IsOk());
  EXPECT_EQ(to_text(bytes), "old");
}

TEST_F(FileSource, OpensThroughSymbolicLinks) {
  write_file(path_, "abc");
  std::filesystem::create_symlink(path_.filename(), directory_ / "link");
  const auto source = open_file(directory_ / "link", observer_);
  ASSERT_THAT(source, IsOk());
  EXPECT_EQ((*source)->size(), 3);
  EXPECT_THAT((*source)->identity().name, EndsWith("/link"));
}

TEST_F(FileSource, SaysWhyItCannotOpen) {
  EXPECT_THAT(open_file(directory_ / "none", observer_),
              Fails(ErrorCode::kNotFound, HasSubstr("No such file or directory")));
  EXPECT_THAT(open_file(directory_.path(), observer_),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("is a directory; name a regular file")));
  EXPECT_THAT(open_file("/dev/null", observer_),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("is not a file")));
  EXPECT_THAT(open_file("", observer_), Fails(ErrorCode::kNotFound, HasSubstr("\"\"")));
}

TEST_F(FileSource, DoesNotWaitForTheWriterOfAPipe) {
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(open_file(directory_ / "pipe", observer_),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("is not a file")));
}

TEST_F(FileSource, RespectsPermissions) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  write_file(path_, "abc");
  std::filesystem::permissions(path_, std::filesystem::perms::none);
  EXPECT_THAT(open_file(path_, observer_),
              Fails(ErrorCode::kPermission, HasSubstr("Permission denied")));
}

TEST_F(FileSource, ShowsItsNamePrintably) {
  write_file(directory_ / "a\x1B[2J", "abc");
  const auto source = open_file(directory_ / "a\x1B[2J", observer_);
  ASSERT_THAT(source, IsOk());
  EXPECT_THAT((*source)->identity().name, EndsWith("/a\\x1B[2J"));
}

TEST_F(FileSource, ServesManyThreads) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += static_cast<char>(i % 251);
  const auto source = open(text);
  EXPECT_THAT(parallel_chunks(200, 8,
                              [&](std::size_t i) -> Status {
                                std::vector<std::byte> bytes(50);
                                GRIDSCOPE_CHECK(source->read_at(i * 50, bytes));
                                if (to_text(bytes) == text.substr(i * 50, 50)) return {};
                                return fail(ErrorCode::kInternal, "wrong bytes");
                              }),
              IsOk());
  EXPECT_EQ(observer_.reads().size(), 200);
}

}  // namespace
}  // namespace gridscope::io
