// The script is run by bash itself, as readline would call it.

#include "gridscope/cli/completion.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "gridscope/cli/verbs.hpp"
#include "support/checkpoints.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
using Words = std::vector<std::string>;

class BashCompletion : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_file(directory_ / "gridscope.bash", bash_completion());
    test::write_file(directory_ / "model.gguf", std::string_view());
    test::write_file(directory_ / "models/x", std::string_view());
  }

  // What bash offers for the last word; words are as readline splits them.
  [[nodiscard]] Words complete(const Words& words) const {
    std::string script = "source ./gridscope.bash\nCOMP_WORDS=(gridscope";
    for (const std::string& word : words) script += fmt::format(" '{}'", word);
    script += fmt::format(")\nCOMP_CWORD={}\n_gridscope\n", words.size());
    script += "printf '%s\\n' \"${COMPREPLY[@]}\"\n";
    const auto ran =
        test::run_process({"bash", "-u", "-c", script}, {.directory = directory_.path().string()});
    EXPECT_EQ(ran.err, "");
    Words offered;
    std::istringstream in(ran.out);
    for (std::string line; std::getline(in, line);) {
      if (!line.empty()) offered.push_back(line);
    }
    return offered;
  }

 private:
  test::TempDir directory_;
};

TEST_F(BashCompletion, OffersTheVerbs) {
  EXPECT_THAT(complete({""}),
              UnorderedElementsAre("inspect", "grid-check", "cache", "completion", "man", "help"));
  EXPECT_THAT(complete({"c"}), UnorderedElementsAre("cache", "completion"));
  EXPECT_THAT(complete({"--connections", "3", "i"}), ElementsAre("inspect"));
}

TEST_F(BashCompletion, OffersTheOptionsOfTheVerb) {
  EXPECT_THAT(complete({"inspect", "--f"}), UnorderedElementsAre("--format", "--fail-on"));
  EXPECT_THAT(complete({"man", "--f"}), IsEmpty());
  EXPECT_THAT(complete({"-"}), IsSupersetOf({"--help", "--version", "--timeout"}));
  EXPECT_THAT(complete({"-"}), Not(Contains("--format")));
}

TEST_F(BashCompletion, OffersChoices) {
  EXPECT_THAT(complete({"inspect", "--by", ""}),
              ElementsAre("part", "role", "dtype", "layer", "file"));
  EXPECT_THAT(complete({"inspect", "x", "--fail-on", "w"}), ElementsAre("warning"));
  EXPECT_THAT(complete({"inspect", "--format", "=", "j"}), ElementsAre("json"));
  EXPECT_THAT(complete({"inspect", "--format", "="}), ElementsAre("text", "markdown", "json"));
  EXPECT_THAT(complete({"cache", "--format", ""}), ElementsAre("text", "json"));
  EXPECT_THAT(complete({"--color", "n"}), ElementsAre("never"));
}

TEST_F(BashCompletion, OffersArgumentsByTheirPlace) {
  EXPECT_THAT(complete({"cache", ""}), ElementsAre("info", "clear"));
  EXPECT_THAT(complete({"cache", "--quiet", "--format", "json", "i"}), ElementsAre("info"));
  EXPECT_THAT(complete({"cache", "info", ""}), IsEmpty());
  EXPECT_THAT(complete({"completion", ""}), ElementsAre("bash"));
  EXPECT_THAT(complete({"help", "in"}), ElementsAre("inspect"));
}

TEST_F(BashCompletion, OffersFilesAndDirectories) {
  EXPECT_THAT(complete({"inspect", "mod"}), UnorderedElementsAre("model.gguf", "models"));
  EXPECT_THAT(complete({"inspect", "--output", "=", "model."}), ElementsAre("model.gguf"));
  EXPECT_THAT(complete({"inspect", "-o", "model."}), ElementsAre("model.gguf"));
  EXPECT_THAT(complete({"--cache-dir", "mod"}), ElementsAre("models"));
}

TEST_F(BashCompletion, OffersNothingWhereOnlyTheUserKnows) {
  EXPECT_THAT(complete({"inspect", "--revision", ""}), IsEmpty());
  EXPECT_THAT(complete({"inspect", "--connections", ""}), IsEmpty());
}

}  // namespace
}  // namespace gridscope::cli
