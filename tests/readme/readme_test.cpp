// README's commands, run as they stand there, and what they print held against what README shows.
//
// A block opened with "```console runnable" holds commands ("$ ...") and their output. "..." on a
// line of its own stands for any number of lines. Figures of time are compared as figures, not by
// value.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::test {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::Not;

struct Command {
  std::string line;
  std::vector<std::string> output;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line.substr(0, line.find_last_not_of(' ') + 1));
  }
  return lines;
}

std::vector<Command> runnable_commands(const std::string& markdown) {
  std::vector<Command> commands;
  bool inside = false;
  for (const std::string& line : lines_of(markdown)) {
    if (line.starts_with("```")) {
      inside = line == "```console runnable";
    } else if (inside && line.starts_with("$ ")) {
      commands.push_back({line.substr(2), {}});
    } else if (inside && !commands.empty()) {
      commands.back().output.push_back(line);
    }
  }
  return commands;
}

// With every duration written the same way.
std::string without_times(const std::string& line) {
  static const std::regex kDuration(R"(\d+(\.\d+)? ?(ms|s|seconds?)\b)");
  return std::regex_replace(line, kDuration, "TIME");
}

// Whether `shown` describes `printed` from the given lines on.
bool matches(const std::vector<std::string>& shown, std::size_t s,
             const std::vector<std::string>& printed, std::size_t p) {
  if (s == shown.size()) return p == printed.size();
  if (shown[s] == "...") {
    for (std::size_t next = p; next <= printed.size(); ++next) {
      if (matches(shown, s + 1, printed, next)) return true;
    }
    return false;
  }
  return p < printed.size() && without_times(shown[s]) == without_times(printed[p]) &&
         matches(shown, s + 1, printed, p + 1);
}

std::string text_of(const std::string& path) {
  std::ifstream in(fs::path(GRIDSCOPE_SOURCE_DIR) / path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string readme() {
  return text_of("README.md");
}

// The text of the first block in that language.
std::string block_in(const std::string& markdown, const std::string& language) {
  const std::string opening = "```" + language + "\n";
  const std::size_t begin = markdown.find(opening);
  if (begin == std::string::npos) return {};
  const std::string rest = markdown.substr(begin + opening.size());
  return rest.substr(0, rest.find("```"));
}

// A directory like a checkout after `make run`, and the built programs in PATH.
class Readme : public ::testing::Test {
 protected:
  Readme() {
    fs::create_directory_symlink(fs::path(GRIDSCOPE_SOURCE_DIR) / "fixtures", home_ / "fixtures");
    fs::create_directories(home_ / "build");
    const auto made = run_process(
        {"/bin/sh", "-c",
         std::string(GRIDSCOPE_SPARSE_CHECKPOINT) + " fixtures/gemma-4/*/ build/checkpoints && " +
             GRIDSCOPE_TINY_GEMMA + " build/checkpoints/tiny"},
        {.environment = {}, .directory = home_.path()});
    EXPECT_EQ(made.exit_code, 0) << made.err;
  }

  [[nodiscard]] ProcessResult run(const std::string& command) const {
    const std::string path = fs::path(GRIDSCOPE_PROGRAM).parent_path().string() + ":" +
                             fs::path(GRIDSCOPE_SPARSE_CHECKPOINT).parent_path().string() +
                             ":/usr/bin:/bin";
    return run_process(
        {"/bin/sh", "-c", command},
        {.environment = {{"PATH", path}, {"HOME", home_ / ""}, {"XDG_CACHE_HOME", ""}},
         .directory = home_.path()});
  }

 private:
  TempDir home_;
};

TEST_F(Readme, CommandsDoWhatItShows) {
  const auto commands = runnable_commands(readme());
  ASSERT_THAT(commands, Not(IsEmpty()));
  for (const Command& command : commands) {
    const ProcessResult result = run(command.line);
    EXPECT_EQ(result.exit_code, 0) << command.line << '\n' << result.err;
    EXPECT_TRUE(matches(command.output, 0, lines_of(result.out), 0)) << command.line << " prints\n"
                                                                     << result.out;
  }
}

// tests/install builds that program with the installed package.
TEST(ReadmeBlocks, ShowTheProgramThatTheInstallTestBuilds) {
  EXPECT_EQ(block_in(readme(), "cmake"), text_of("tests/install/consumer/CMakeLists.txt"));
  EXPECT_EQ(block_in(readme(), "cpp"), text_of("tests/install/consumer/main.cpp"));
}

TEST(ReadmeBlocks, AreReadWithTheirOutput) {
  const auto commands = runnable_commands(
      "```console\n$ make run\n```\n```console runnable\n$ a\nx\n$ b\n```\n$ c\n");
  ASSERT_EQ(commands.size(), 2U);
  EXPECT_EQ(commands[0].line, "a");
  EXPECT_THAT(commands[0].output, ::testing::ElementsAre("x"));
  EXPECT_THAT(commands[1].output, IsEmpty());
}

TEST(ReadmeBlocks, MatchUpToTimesAndEllipses) {
  EXPECT_TRUE(matches({"read in 3 ms", "...", "end"}, 0, {"read in 12.5 ms", "a", "b", "end"}, 0));
  EXPECT_TRUE(matches({"..."}, 0, {}, 0));
  EXPECT_FALSE(matches({"3 tensors"}, 0, {"4 tensors"}, 0));
  EXPECT_FALSE(matches({"a"}, 0, {"a", "b"}, 0));
}

}  // namespace
}  // namespace gridscope::test
