#include "gridscope/cli/output.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/checkpoints.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OutputTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(directory_.path())) {
      found.push_back(entry.path().filename().string());
    }
    return found;
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    return test::to_text(test::read_file(directory_ / name));
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (directory_ / name).string();
  }

  test::TempDir directory_;
};

TEST_F(OutputTest, PutsTheWholeTextInPlace) {
  auto output = Output::open(path("report"));
  ASSERT_THAT(output, test::IsOk());
  EXPECT_FALSE(fs::exists(path("report")));
  const std::string long_text(100'000, 'x');
  ASSERT_THAT(output->commit(long_text, {}), test::IsOk());
  EXPECT_THAT(names(), ElementsAre("report"));
  EXPECT_EQ(text("report"), long_text);
}

TEST_F(OutputTest, LeavesTheOldFileWhenNothingIsCommitted) {
  test::write_file(directory_ / "report", std::string_view("old"));
  {
    const auto output = Output::open(path("report"));
    ASSERT_THAT(output, test::IsOk());
    EXPECT_EQ(names().size(), 2U);
  }
  EXPECT_THAT(names(), ElementsAre("report"));
  EXPECT_EQ(text("report"), "old");
}

TEST_F(OutputTest, DiscardRemovesWhatWasWrittenAside) {
  const auto output = Output::open(path("report"));
  ASSERT_THAT(output, test::IsOk());
  output->discard();
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(OutputTest, LeavesTheOldFileWhenStopped) {
  test::write_file(directory_ / "report", std::string_view("old"));
  std::stop_source stop;
  stop.request_stop();
  {
    auto output = Output::open(path("report"));
    ASSERT_THAT(output, test::IsOk());
    EXPECT_THAT(output->commit("new", stop.get_token()), test::Fails(ErrorCode::kCancelled, _));
  }
  EXPECT_THAT(names(), ElementsAre("report"));
  EXPECT_EQ(text("report"), "old");
}

TEST_F(OutputTest, KeepsThePermissionsOfTheFileItReplaces) {
  test::write_file(directory_ / "report", std::string_view("old"));
  fs::permissions(path("report"), fs::perms::owner_read | fs::perms::owner_write);
  auto output = Output::open(path("report"));
  ASSERT_THAT(output, test::IsOk());
  ASSERT_THAT(output->commit("new", {}), test::IsOk());
  EXPECT_EQ(fs::status(path("report")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(text("report"), "new");
}

TEST_F(OutputTest, ReplacesTheFileBehindALink) {
  test::write_file(directory_ / "real", std::string_view("old"));
  fs::create_symlink("real", path("link"));
  auto output = Output::open(path("link"));
  ASSERT_THAT(output, test::IsOk());
  ASSERT_THAT(output->commit("new", {}), test::IsOk());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(text("real"), "new");
}

TEST_F(OutputTest, WritesToAPipeDirectly) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  auto output = Output::open(path("pipe"));
  ASSERT_THAT(output, test::IsOk());
  ASSERT_THAT(output->commit("through", {}), test::IsOk());
  std::string received(7, '\0');
  EXPECT_EQ(::read(reader, received.data(), received.size()), 7);
  EXPECT_EQ(received, "through");
  EXPECT_THAT(names(), ElementsAre("pipe"));
  ::close(reader);
}

TEST_F(OutputTest, RefusesWhatCannotBeWritten) {
  EXPECT_THAT(Output::open(directory_.path().string()),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("is a directory")));
  EXPECT_THAT(Output::open(path("missing/report")),
              test::Fails(ErrorCode::kNotFound, HasSubstr("missing/report")));
  test::write_file(directory_ / "file", std::string_view());
  EXPECT_THAT(Output::open(path("file/report")), test::Fails(ErrorCode::kNotFound, _));
  EXPECT_THAT(Output::open("/proc/report"), ::testing::Not(test::IsOk()));
}

TEST_F(OutputTest, OwnsItsFileOnce) {
  auto first = Output::open(path("report"));
  ASSERT_THAT(first, test::IsOk());
  {
    Output second(*std::move(first));
    ASSERT_THAT(second.commit("new", {}), test::IsOk());
  }
  EXPECT_EQ(text("report"), "new");
}

TEST(WriteAll, NoticesAFullDisk) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  EXPECT_THAT(write_all(full, "x", {}),
              test::Fails(ErrorCode::kUnavailable, HasSubstr("No space left")));
  ::close(full);
}

TEST(WriteAll, NoticesAClosedPipe) {
  std::signal(SIGPIPE, SIG_IGN);
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  EXPECT_THAT(write_all(ends[1], "x", {}),
              test::Fails(ErrorCode::kCancelled, HasSubstr("read no more")));
  ::close(ends[1]);
}

TEST(WriteAll, StopsWaitingForAReaderWhenAsked) {
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  std::stop_source stop;
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request_stop();
  });
  const std::string more_than_a_pipe_holds(1'000'000, 'x');
  EXPECT_THAT(write_all(ends[1], more_than_a_pipe_holds, stop.get_token()),
              test::Fails(ErrorCode::kCancelled, _));
  stopper.join();
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace gridscope::cli
