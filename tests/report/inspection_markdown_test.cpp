#include <gmock/gmock.h>

#include <algorithm>

#include "gridscope/report/inspection_report.hpp"
#include "report/sample_inspections.hpp"

namespace gridscope::report {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(InspectionMarkdown, HasAHeadingATableAndFindings) {
  EXPECT_THAT(inspection_markdown(test::e2b_inspection()),
              AllOf(StartsWith("# Inspection of google/gemma-4-E2B-it-qat-w4a16-ct @ main (commit "
                               "1234567)\n\nStored as gemma4, safetensors, "),
                    HasSubstr("\n| per-layer embedding | 4.698 | 4.375 | 56.5% | 1 | "
                              "2,348,810,240 | 16.00 | BF16 |\n"),
                    HasSubstr("\n## Findings: 1 warning\n\n- **warning** `TIED_HEAD_STORED`: "),
                    HasSubstr("\n  - tensors: `lm_head.weight`\n"),
                    EndsWith("\nRead: 3 requests, 393,216 bytes (384.0 KiB), 0.125 seconds, 1 "
                             "cache hit.\n")));
}

TEST(InspectionMarkdown, ListsTensorsInATableOfTheirOwn) {
  EXPECT_THAT(inspection_markdown(test::small_inspection()),
              AllOf(HasSubstr("\n## Tensors\n\n| tensor | dtype | "),
                    HasSubstr("`gone.0`, `gone.1`, `gone.2` and 247 more\n")));
  EXPECT_THAT(inspection_markdown(test::e2b_inspection()), Not(HasSubstr("## Tensors")));
}

TEST(InspectionMarkdown, KeepsForeignStringsOutOfTheMarkup) {
  const std::string clean = inspection_markdown(test::small_inspection());
  const std::string text = inspection_markdown(test::hostile_inspection());
  EXPECT_EQ(std::ranges::count(text, '\n'), std::ranges::count(clean, '\n'));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\n# h")),
                          HasSubstr("\\<b\\>\\|\\`\\*\\_x\\_\\*\\`\\[l\\](u)")));
}

}  // namespace
}  // namespace gridscope::report
