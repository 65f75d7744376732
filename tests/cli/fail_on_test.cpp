#include "gridscope/cli/fail_on.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace gridscope::cli {
namespace {

Finding finding(Severity severity) {
  return {.code = "A", .severity = severity, .message = "", .remedy = ""};
}

// With a note, which is never a failure.
std::vector<Finding> findings(std::size_t errors, std::size_t warnings) {
  std::vector<Finding> made = {finding(Severity::kNote)};
  made.insert(made.end(), warnings, finding(Severity::kWarning));
  made.insert(made.end(), errors, finding(Severity::kError));
  return made;
}

TEST(Failures, AreNoneWhereNothingWasFound) {
  for (const std::string_view level : {"error", "warning", "never"}) {
    EXPECT_EQ(failures({}, level), "");
    EXPECT_EQ(failures(findings(0, 0), level), "");
  }
}

TEST(Failures, AreTheFindingsThatAreSevereEnough) {
  EXPECT_EQ(failures(findings(0, 3), "error"), "");
  EXPECT_EQ(failures(findings(1, 3), "error"), "1 error");
  EXPECT_EQ(failures(findings(0, 1), "warning"), "1 warning");
  EXPECT_EQ(failures(findings(0, 3), "warning"), "3 warnings");
  EXPECT_EQ(failures(findings(2, 0), "warning"), "2 errors");
  EXPECT_EQ(failures(findings(2, 1), "warning"), "2 errors and 1 warning");
  EXPECT_EQ(failures(findings(2, 1), "never"), "");
}

TEST(Judged, GivesTheReportItsExitCode) {
  const Answer good = judged("report", findings(0, 1), "error");
  EXPECT_EQ(good.text, "report");
  EXPECT_EQ(good.exit_code, 0);
  const Answer bad = judged("report", findings(1, 1), "error");
  EXPECT_EQ(bad.text, "report");
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_EQ(bad.failures, "1 error");
}

}  // namespace
}  // namespace gridscope::cli
