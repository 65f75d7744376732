#include "gridscope/report/text_table.hpp"

#include <gmock/gmock.h>

#include "report/sample_inspections.hpp"

namespace gridscope::report {
namespace {

using Align = TextTable::Align;
using ::testing::HasSubstr;
using ::testing::Not;

TextTable sample() {
  return {.columns = {{"part"}, {"GB", Align::kRight}, {"stored as"}},
          .rows = {{"embedding", "10.5", "BF16"}, {"body", "1.0"}},
          .total = {"total", "11.5"}};
}

TEST(RenderText, AlignsColumnsAndSetsTheTotalOff) {
  EXPECT_EQ(render_text(sample()),
            "part         GB  stored as\n"
            "---------  ----  ---------\n"
            "embedding  10.5  BF16\n"
            "body        1.0\n"
            "---------  ----  ---------\n"
            "total      11.5\n");
}

TEST(RenderText, OfATableWithoutRowsIsItsTitles) {
  EXPECT_EQ(render_text({.columns = {{"a"}, {"b"}}, .rows = {}}), "a  b\n-  -\n");
}

TEST(RenderText, LeavesOutCellsBeyondTheLastColumn) {
  EXPECT_EQ(render_text({.columns = {{"a"}}, .rows = {{"x", "y"}}}), "a\n-\nx\n");
}

TEST(RenderText, CountsCodePointsNotBytes) {
  EXPECT_EQ(render_text({.columns = {{"größe"}, {"n", Align::kRight}}, .rows = {{"äöü", "1"}}}),
            "größe  n\n-----  -\näöü    1\n");
}

TEST(RenderText, MakesForeignCellsSafe) {
  const std::string text =
      render_text({.columns = {{"a"}, {"b"}}, .rows = {{test::kHostile, "end"}}});
  EXPECT_EQ(std::ranges::count(text, '\n'), 3);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("\\x1B[2J"));
  EXPECT_THAT(text, HasSubstr("  end\n"));
}

TEST(RenderMarkdown, AlignsByRuleAndSetsTheTotalBold) {
  EXPECT_EQ(render_markdown(sample()),
            "| part | GB | stored as |\n"
            "| --- | ---: | --- |\n"
            "| embedding | 10.5 | BF16 |\n"
            "| body | 1.0 | |\n"
            "| **total** | **11.5** | |\n");
}

TEST(RenderMarkdown, KeepsForeignCellsInTheirColumn) {
  const std::string text = render_markdown({.columns = {{"a"}}, .rows = {{"x|y\n|z"}}});
  EXPECT_EQ(text, "| a |\n| --- |\n| x\\|y\\\\x0A\\|z |\n");
}

TEST(DisplayWidth, CountsCodePoints) {
  EXPECT_EQ(display_width(""), 0U);
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("äb→"), 3U);
}

TEST(MarkdownText, EscapesWhatWouldBeMarkup) {
  EXPECT_EQ(markdown_text("a*b [c](d) <e> `f` |g| #h !i ~j &amp; \\k"),
            "a\\*b \\[c\\](d) \\<e\\> \\`f\\` \\|g\\| \\#h \\!i \\~j \\&amp; \\\\k");
}

TEST(MarkdownText, LeavesUnderscoresInsideWordsAlone) {
  EXPECT_EQ(markdown_text("embed_tokens"), "embed_tokens");
  EXPECT_EQ(markdown_text("_x_ a__b c_"), "\\_x\\_ a\\_\\_b c\\_");
}

TEST(MarkdownCode, OutnumbersTheBackticksInside) {
  EXPECT_EQ(markdown_code("a.weight"), "`a.weight`");
  EXPECT_EQ(markdown_code("a`b``c"), "``` a`b``c ```");
  EXPECT_EQ(markdown_code("a\nb"), "`a\\x0Ab`");
}

}  // namespace
}  // namespace gridscope::report
