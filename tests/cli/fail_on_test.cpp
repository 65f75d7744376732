#include "gridscope/cli/fail_on.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace gridscope::cli {
namespace {

std::vector<Finding> one(Severity severity) {
  return {{.code = "A", .severity = severity, .message = "", .remedy = ""}};
}

TEST(FailOn, NothingFoundNeverFails) {
  for (const std::string_view level : {"error", "warning", "never"}) {
    EXPECT_FALSE(reaches({}, level));
    EXPECT_FALSE(reaches(one(Severity::kNote), level));
  }
}

TEST(FailOn, TheWorstFindingIsHeldAgainstTheLevel) {
  EXPECT_FALSE(reaches(one(Severity::kWarning), "error"));
  EXPECT_TRUE(reaches(one(Severity::kWarning), "warning"));
  EXPECT_TRUE(reaches(one(Severity::kError), "error"));
  EXPECT_TRUE(reaches(one(Severity::kError), "warning"));
  EXPECT_FALSE(reaches(one(Severity::kError), "never"));
}

}  // namespace
}  // namespace gridscope::cli
