#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gridscope/report/grid_check_report.hpp"
#include "report/sample_grid_reports.hpp"

namespace gridscope::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(GridCheckMarkdown, HasAHeadingTablesAndFindings) {
  const std::string text = grid_check_markdown(test::full_grid_report());
  EXPECT_THAT(text, StartsWith("# Grid check against org/source\n"));
  EXPECT_THAT(text, HasSubstr("| build"));
  EXPECT_THAT(text, HasSubstr("## Build org/build-awq\n"));
  EXPECT_THAT(text, HasSubstr("## Findings: 1 error\n"));
  EXPECT_THAT(text, HasSubstr("Read: 3,456 bytes"));
}

TEST(GridCheckMarkdown, ForeignNamesAreNoMarkup) {
  analysis::GridReport report = test::full_grid_report();
  report.builds[0].model = "<script>|x|";
  const std::string text = grid_check_markdown(report);
  EXPECT_THAT(text, Not(HasSubstr("<script>")));
  EXPECT_THAT(text, Not(HasSubstr("|x|")));
}

}  // namespace
}  // namespace gridscope::report
