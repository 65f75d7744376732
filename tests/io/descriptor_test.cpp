#include "gridscope/io/descriptor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::io {
namespace {

using test::bytes_of;
using test::Fails;
using test::IsOk;
using test::to_text;

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) != -1;
}

Descriptor open_for_writing(const std::filesystem::path& path) {
  return Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
}

TEST(Descriptor, ClosesWhatItOwns) {
  const test::TempDir directory;
  int fd = -1;
  {
    const Descriptor file = open_for_writing(directory / "a");
    ASSERT_TRUE(file.is_open());
    fd = file.get();
    EXPECT_TRUE(is_open(fd));
  }
  EXPECT_FALSE(is_open(fd));
  EXPECT_FALSE(Descriptor().is_open());
}

TEST(Descriptor, HandsItsFileOnWhenMoved) {
  const test::TempDir directory;
  Descriptor first = open_for_writing(directory / "a");
  const int fd = first.get();
  Descriptor second(std::move(first));
  EXPECT_EQ(second.get(), fd);
  Descriptor third;
  third = std::move(second);
  EXPECT_EQ(third.get(), fd);
  EXPECT_TRUE(is_open(fd));
}

TEST(ReadUpTo, ReturnsWhatTheFileHolds) {
  const test::TempDir directory;
  const Descriptor file = open_for_writing(directory / "a");
  ASSERT_THAT(write_all(file, bytes_of("abcdef")), IsOk());
  std::vector<std::byte> bytes(4);
  EXPECT_EQ(read_up_to(file, 1, bytes), 4);
  EXPECT_EQ(to_text(bytes), "bcde");
  EXPECT_EQ(read_up_to(file, 4, bytes), 2);
  EXPECT_EQ(read_up_to(file, 100, bytes), 0);
}

TEST(ReadUpTo, ReportsTheSystemsError) {
  const test::TempDir directory;
  const Descriptor file(::open(directory.path().c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<std::byte> bytes(4);
  EXPECT_THAT(read_up_to(file, 0, bytes),
              Fails(ErrorCode::kInvalidArgument, "reading: Is a directory"));
}

TEST(WriteAll, ReportsTheSystemsError) {
  const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.is_open());
  EXPECT_THAT(write_all(full, bytes_of("x")),
              Fails(ErrorCode::kUnavailable, "writing: No space left on device"));
}

TEST(SystemError, ChoosesTheCodeThatTellsWhatToDo) {
  EXPECT_EQ(system_error(ENOENT, "a").code, ErrorCode::kNotFound);
  EXPECT_EQ(system_error(ENOTDIR, "a").code, ErrorCode::kNotFound);
  EXPECT_EQ(system_error(EACCES, "a").code, ErrorCode::kPermission);
  EXPECT_EQ(system_error(EROFS, "a").code, ErrorCode::kPermission);
  EXPECT_EQ(system_error(ELOOP, "a").code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(system_error(EIO, "a").code, ErrorCode::kUnavailable);
  EXPECT_EQ(system_error(ENOENT, "reading x").message, "reading x: No such file or directory");
}

}  // namespace
}  // namespace gridscope::io
