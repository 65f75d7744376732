#include "gridscope/report/closing.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "report/sample_inspections.hpp"

namespace gridscope::report {
namespace {

TEST(Closing, FindingsAreCountedBySeverity) {
  EXPECT_EQ(findings_summary({}), "No findings");
  EXPECT_EQ(findings_summary(test::small_inspection().findings),
            "Findings: 1 error, 1 warning, 1 note");
  const std::vector<Finding> two(2, test::e2b_inspection().findings.front());
  EXPECT_EQ(findings_summary(two), "Findings: 2 warnings");
}

TEST(Closing, ReadsGiveEveryFigure) {
  const analysis::Inspection small = test::small_inspection();
  EXPECT_EQ(reads_summary(small.reads, small.read_seconds),
            "3 requests, 393,216 bytes (384.0 KiB), 0.125 seconds, 1 cache hit");
}

}  // namespace
}  // namespace gridscope::report
