#include "gridscope/analysis/requirements.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridscope::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A hundred weights, ten moved, 20 dB.
GridReport report() {
  GridReport made{.source = "source"};
  GridBuild build{.model = "build", .verdict = Verdict::kLevelsMoved};
  build.totals.sums.weights = 100;
  build.totals.sums.moved = 10;
  build.totals.sums.squared_source = 100.0;
  build.totals.sums.squared_error = 1.0;
  made.builds.push_back(build);
  return made;
}

std::vector<std::string> codes(const Requirements& requirements, GridReport checked) {
  add_requirement_findings(requirements, checked);
  std::vector<std::string> found;
  for (const Finding& finding : checked.findings) {
    EXPECT_EQ(finding.severity, Severity::kError);
    found.push_back(finding.code);
  }
  return found;
}

TEST(Requirements, WhatIsNotAskedForCannotBeMissed) {
  EXPECT_THAT(codes({}, report()), IsEmpty());
}

TEST(Requirements, EachIsJudgedByItself) {
  EXPECT_THAT(codes({.verdict = Verdict::kSameGrid}, report()), ElementsAre("VERDICT_MISSED"));
  EXPECT_THAT(codes({.verdict = Verdict::kLevelsMoved}, report()), IsEmpty());
  EXPECT_THAT(codes({.max_moved = 0.09}, report()), ElementsAre("MOVED_TOO_MANY"));
  EXPECT_THAT(codes({.max_moved = 0.1}, report()), IsEmpty());
  EXPECT_THAT(codes({.min_sqnr_db = 20.01}, report()), ElementsAre("SQNR_TOO_LOW"));
  EXPECT_THAT(codes({.min_sqnr_db = 19.99}, report()), IsEmpty());
}

TEST(Requirements, WithoutErrorEverySqnrIsMet) {
  GridReport perfect = report();
  perfect.builds[0].totals.sums.squared_error = 0.0;
  EXPECT_THAT(codes({.min_sqnr_db = 200.0}, perfect), IsEmpty());
}

TEST(Requirements, SmoothingIsUndoneFirst) {
  GridReport smoothed = report();
  smoothed.builds[0].smoothing = GridSmoothing{.totals_after = smoothed.builds[0].totals};
  smoothed.builds[0].smoothing->totals_after.sums.moved = 0;
  EXPECT_THAT(codes({.max_moved = 0.0}, smoothed), IsEmpty());
}

TEST(Requirements, TheMessageGivesBothFigures) {
  GridReport checked = report();
  add_requirement_findings({.min_sqnr_db = 30.0}, checked);
  ASSERT_EQ(checked.findings.size(), 1U);
  EXPECT_THAT(checked.findings[0].message, HasSubstr("20.00 dB"));
  EXPECT_THAT(checked.findings[0].message, HasSubstr("30 dB"));
}

}  // namespace
}  // namespace gridscope::analysis
