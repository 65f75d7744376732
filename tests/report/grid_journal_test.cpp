#include "gridscope/report/grid_journal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/sample_grid_reports.hpp"
#include "support/matchers.hpp"

namespace gridscope::report {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

GridJournalHeader header() {
  GridJournalHeader made{.fingerprint = "00ff", .source = "org/source", .builds = {"a", "b"}};
  made.selection.globs = {"*q_proj*"};
  made.selection.sample_count = 12;
  made.shard = {.index = 2, .count = 3};
  return made;
}

std::string journal() {
  const auto report = test::full_grid_report();
  return journal_line(header()) + journal_line(0, report.builds[1].tensors[0]) +
         journal_line(7, report.builds[1].different[0]);
}

TEST(GridJournal, ReadsBackWhatItWrote) {
  const auto report = test::full_grid_report();
  const auto read = parse_journal(journal());
  ASSERT_THAT(read, test::IsOk());
  EXPECT_EQ(read->header, header());
  ASSERT_THAT(read->results, SizeIs(2));
  EXPECT_EQ(std::get<analysis::GridTensor>(read->results.at(0)), report.builds[1].tensors[0]);
  EXPECT_EQ(std::get<analysis::PlainTensor>(read->results.at(7)), report.builds[1].different[0]);
  EXPECT_EQ(read->whole_bytes, journal().size());
}

TEST(GridJournal, KeepsAFractionAsItIs) {
  GridJournalHeader sampled = header();
  sampled.selection.sample_count.reset();
  sampled.selection.sample_fraction = 0.1;
  const auto read = parse_journal(journal_line(sampled));
  ASSERT_THAT(read, test::IsOk());
  EXPECT_EQ(read->header, sampled);
}

TEST(GridJournal, CanBeCutAnywhereBehindItsFirstLine) {
  const std::string whole = journal();
  const std::size_t first = whole.find('\n') + 1;
  for (std::size_t size = first; size <= whole.size(); ++size) {
    const auto read = parse_journal(std::string_view(whole).substr(0, size));
    ASSERT_THAT(read, test::IsOk()) << size;
    EXPECT_LE(read->whole_bytes, size);
    EXPECT_EQ(whole[read->whole_bytes - 1], '\n');
  }
  EXPECT_THAT(parse_journal(std::string_view(whole).substr(0, first - 1)),
              test::Fails(ErrorCode::kCorrupt, _));
}

TEST(GridJournal, NamesTheLineThatIsWrong) {
  const auto read = parse_journal(journal_line(header()) + "{\"item\":1}\n");
  EXPECT_THAT(read, test::Fails(ErrorCode::kCorrupt, HasSubstr("line 2")));
  EXPECT_THAT(parse_journal("{\"schema\":\"gridscope.grid-check-part/1\",}\n"),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("line 1")));
  EXPECT_THAT(parse_journal("{\"schema\":\"gridscope.grid-check-part/2\"}\n"),
              test::Fails(ErrorCode::kUnsupported, HasSubstr("gridscope.grid-check-part/1")));
}

TEST(GridJournal, TellsOtherFilesFromBrokenOnes) {
  for (const char* const other :
       {"hello\n", "hello", "{\n\"schema\": \"gridscope.grid-check/1\"}",
        "{\"schema\":\"gridscope.cache/1\"}\n", "\nline two: gridscope.grid-check-part/1\n"}) {
    EXPECT_THAT(parse_journal(other),
                test::Fails(ErrorCode::kInvalidArgument,
                            AllOf(HasSubstr("no journal of a grid check: expected a first line"),
                                  HasSubstr("\"gridscope.grid-check-part/1\", found \""),
                                  HasSubstr("--shard or --resume"))))
        << other;
  }
  EXPECT_THAT(parse_journal(""),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("found an empty file")));
}

TEST(GridJournal, RefusesAShardThatCannotBe) {
  for (const analysis::Shard shard :
       {analysis::Shard{.index = 4, .count = 3}, analysis::Shard{.index = 0, .count = 3},
        analysis::Shard{.index = 1, .count = 1'000'000'000'000}}) {
    GridJournalHeader wrong = header();
    wrong.shard = shard;
    EXPECT_THAT(parse_journal(journal_line(wrong)), test::Fails(ErrorCode::kCorrupt, _));
  }
}

}  // namespace
}  // namespace gridscope::report
