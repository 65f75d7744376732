#include "gridscope/core/finding.hpp"

#include <gtest/gtest.h>

namespace gridscope {
namespace {

TEST(Severity, HasNamesAndAnOrder) {
  EXPECT_EQ(severity_name(Severity::kNote), "note");
  EXPECT_EQ(severity_name(Severity::kWarning), "warning");
  EXPECT_EQ(severity_name(Severity::kError), "error");
  EXPECT_LT(Severity::kNote, Severity::kWarning);
  EXPECT_LT(Severity::kWarning, Severity::kError);
}

TEST(Finding, NamesTheFirstTensorsAndCountsAll) {
  Finding finding{.code = "SHARD_STRAY", .message = "m", .remedy = "r"};
  for (std::size_t i = 0; i < Finding::kMaxTensorsNamed + 5; ++i) {
    finding.add_tensor("t" + std::to_string(i));
  }
  EXPECT_EQ(finding.tensor_count, Finding::kMaxTensorsNamed + 5);
  ASSERT_EQ(finding.tensors.size(), Finding::kMaxTensorsNamed);
  EXPECT_EQ(finding.tensors.front(), "t0");
  EXPECT_EQ(finding.tensors.back(), "t99");
}

TEST(WorstSeverity, IsThatOfTheWorstFinding) {
  std::vector<Finding> findings;
  EXPECT_EQ(worst_severity(findings), std::nullopt);
  findings = {{.code = "A", .severity = Severity::kNote, .message = "", .remedy = ""},
              {.code = "B", .severity = Severity::kWarning, .message = "", .remedy = ""}};
  EXPECT_EQ(worst_severity(findings), Severity::kWarning);
}

}  // namespace
}  // namespace gridscope
