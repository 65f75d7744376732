#include "grid_journal_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/checkpoints.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::app {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

analysis::GridItemResult result(const std::string& name) {
  return analysis::PlainTensor{.name = name, .source_name = name, .values = 3};
}

class JournalFile : public ::testing::Test {
 protected:
  [[nodiscard]] std::string text() const { return test::to_text(test::read_file(path_)); }
  void write(const std::string& text) const { test::write_file(path_, std::string_view(text)); }
  [[nodiscard]] Result<GridJournalFile> open() const {
    return GridJournalFile::open(path_, header_);
  }

  test::TempDir directory_;
  const std::filesystem::path path_ = directory_ / "journal";
  const report::GridJournalHeader header_ = {.fingerprint = "12ab", .source = "s", .builds = {"b"}};
};

TEST_F(JournalFile, BeginsWithWhatItIsAbout) {
  const auto journal = open();
  ASSERT_THAT(journal, test::IsOk());
  EXPECT_THAT(journal->results(), IsEmpty());
  EXPECT_EQ(text(), journal_line(header_));
}

TEST_F(JournalFile, KeepsEachResultAtOnce) {
  {
    auto journal = open();
    ASSERT_THAT(journal, test::IsOk());
    ASSERT_THAT(journal->append(4, result("a")), test::IsOk());
    EXPECT_THAT(text(), HasSubstr("\"item\":4"));
    ASSERT_THAT(journal->append(2, result("b")), test::IsOk());
  }
  const auto again = open();
  ASSERT_THAT(again, test::IsOk());
  ASSERT_THAT(again->results(), SizeIs(2));
  EXPECT_EQ(again->results().at(2), result("b"));
}

TEST_F(JournalFile, WhatWasCutOffIsWrittenAnew) {
  const std::string half = journal_line(header_) + report::journal_line(1, result("a")) + "{\"item";
  write(half);
  {
    auto journal = open();
    ASSERT_THAT(journal, test::IsOk());
    EXPECT_THAT(journal->results(), SizeIs(1));
    ASSERT_THAT(journal->append(2, result("b")), test::IsOk());
  }
  EXPECT_EQ(text(), journal_line(header_) + report::journal_line(1, result("a")) +
                        report::journal_line(2, result("b")));
  write(journal_line(header_).substr(0, 10));
  EXPECT_THAT(open(), test::IsOk());
  EXPECT_EQ(text(), journal_line(header_));
}

TEST_F(JournalFile, TwoRunsCannotWriteToOne) {
  const auto first = open();
  ASSERT_THAT(first, test::IsOk());
  EXPECT_THAT(open(), test::Fails(ErrorCode::kUnavailable, HasSubstr("another run")));
}

TEST_F(JournalFile, OtherFilesAreLeftAsTheyAre) {
  for (const std::string& other : {std::string("notes"), std::string("notes\nmore\n"),
                                   report::journal_line({.fingerprint = "ff"})}) {
    write(other);
    EXPECT_THAT(open(), ::testing::Not(test::IsOk()));
    EXPECT_EQ(text(), other);
  }
  EXPECT_THAT(GridJournalFile::open(directory_.path(), header_), ::testing::Not(test::IsOk()));
  EXPECT_THAT(GridJournalFile::open(directory_ / "no" / "such", header_),
              test::Fails(ErrorCode::kNotFound, HasSubstr("such")));
}

}  // namespace
}  // namespace gridscope::app
