#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gridscope/report/grid_check_report.hpp"
#include "report/sample_grid_reports.hpp"

namespace gridscope::report {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(GridCheckText, TheLineOfABuildCarriesThePublishedFigures) {
  const std::string text = grid_check_text(test::published_grid_report());
  EXPECT_THAT(text, HasSubstr("360,448 groups of 32: 360,448 (100.00%) on a 4-bit grid"));
  for (const char* figure :
       {"11,534,336", "149,003 (41.34%)", "89.51%", "0 (0.00%)", "0.000977", "1.18e-05", "40.00",
        "23 (0.01%)", "12.27%", "3,495,050 (30.30%)", "0.186"}) {
    EXPECT_THAT(text, HasSubstr(figure));
  }
}

TEST(GridCheckText, ShowsEveryPart) {
  const std::string text = grid_check_text(test::full_grid_report());
  EXPECT_THAT(text, HasSubstr("only part of it was compared: a sample of 2 weights"));
  EXPECT_THAT(text, ContainsRegex("org/build-ct +same_grid"));
  EXPECT_THAT(text, HasSubstr("smoothing undone"));
  EXPECT_THAT(text, HasSubstr("[17, 1]"));
  EXPECT_THAT(text, HasSubstr("only in the source: 1 (layers.9.extra)"));
  EXPECT_THAT(text, HasSubstr("absent by design, tied to the embedding: 1 (lm_head)"));
  EXPECT_THAT(text, HasSubstr("error WEIGHT_CORRUPT"));
  EXPECT_THAT(text, HasSubstr("Read: 3,456 bytes (3.4 KiB) of weights in 12 tile reads\n"));
}

TEST(GridCheckText, ForeignNamesCannotMoveTheCursor) {
  analysis::GridReport report = test::full_grid_report();
  report.source = "a\x1b[2Jb";
  report.builds[0].model = "c\nd";
  report.builds[0].tensors[0].name = "e\rf";
  const std::string text = grid_check_text(report);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("c\nd")));
  EXPECT_THAT(text, Not(HasSubstr("\r")));
}

TEST(GridCheckText, ThePlanIsOneLine) {
  EXPECT_EQ(grid_cost_text({.tensors = 1, .weights = 2048, .bytes = 5120, .tile_reads = 2}),
            "1 pair of tensors, 2,048 weights; 5,120 bytes (5.0 KiB) in 2 tile reads\n");
}

}  // namespace
}  // namespace gridscope::report
