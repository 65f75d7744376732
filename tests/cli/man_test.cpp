#include "gridscope/cli/man.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "gridscope/cli/finding_codes.hpp"
#include "gridscope/cli/verbs.hpp"
#include "support/checkpoints.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::cli {
namespace {

using ::testing::HasSubstr;

TEST(RoffEscape, KeepsTextFromActingAsRoff) {
  EXPECT_EQ(roff_escape("--no-cache"), "\\-\\-no\\-cache");
  EXPECT_EQ(roff_escape("a\\b"), "a\\eb");
  EXPECT_EQ(roff_escape(".cache"), "\\&.cache");
  EXPECT_EQ(roff_escape("'quoted'"), "\\&'quoted'");
  EXPECT_EQ(roff_escape("~/x \"y\""), "\\(ti/x \\(dqy\\(dq");
}

TEST(ManPage, DescribesEveryOption) {
  const std::string page = man_page();
  for (const VerbSpec& verb : program().verbs) {
    for_each_option(verb, [&](const OptionSpec& option) {
      EXPECT_THAT(page, HasSubstr("\\fB" + roff_escape(spelling(option)) + "\\fR"));
    });
  }
  for (const Term& variable : program().environment) {
    EXPECT_THAT(page, HasSubstr(roff_escape(variable.name)));
  }
}

TEST(ManPage, ListsEveryCode) {
  const std::string page = man_page();
  for (const Term& code : finding_codes()) EXPECT_THAT(page, HasSubstr(roff_escape(code.name)));
  for (const Term& code : warning_codes()) EXPECT_THAT(page, HasSubstr(roff_escape(code.name)));
}

TEST(ManPage, BearsADate) {
  EXPECT_THAT(man_page(), ::testing::StartsWith(".TH GRIDSCOPE 1 \"20"));
}

TEST(ManPage, HasNoLineThatRoffTakesForAnotherRequest) {
  std::istringstream in(man_page());
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with('.') && !line.starts_with('\'')) continue;
    EXPECT_TRUE(line.starts_with(".TH ") || line.starts_with(".SH ") || line.starts_with(".SS ") ||
                line == ".TP")
        << line;
  }
}

TEST(ManPage, FormatsWithoutAWarning) {
  if (test::run_process({"sh", "-c", "command -v man"}).exit_code != 0) {
    GTEST_SKIP() << "man is not installed";
  }
  const test::TempDir directory;
  test::write_file(directory / "gridscope.1", man_page());
  const auto ran =
      test::run_process({"man", "--warnings", "-l", (directory / "gridscope.1").string()},
                        {.environment = {{"MANWIDTH", "80"}, {"LC_ALL", "C.UTF-8"}}});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out, HasSubstr("--max-json-depth N"));
}

}  // namespace
}  // namespace gridscope::cli
