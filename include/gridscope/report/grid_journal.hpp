#pragma once

// What a grid check has done so far, as lines of JSON: one that says which check it is, then one
// for each item. A line is whole or does not count, so that a journal which was cut off anywhere
// can be gone on with; a finished one is a shard's part.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/analysis/grid_check.hpp"
#include "gridscope/analysis/grid_plan.hpp"
#include "gridscope/core/result.hpp"

namespace gridscope::report {

struct GridJournalHeader {
  std::string fingerprint = {};  // GridPlan::fingerprint
  // What was asked for, so that parts can be put together without asking again.
  std::string source = {};
  std::vector<std::string> builds = {};
  analysis::GridSelection selection = {};
  analysis::Shard shard = {};

  friend bool operator==(const GridJournalHeader&, const GridJournalHeader&) = default;
};

struct GridJournal {
  GridJournalHeader header;
  analysis::GridResults results;
  std::size_t whole_bytes = 0;  // up to the end of the last whole line
};

// "gridscope.grid-check-part/1", one line each, with the line break.
[[nodiscard]] std::string journal_line(const GridJournalHeader& header);
[[nodiscard]] std::string journal_line(std::uint32_t item, const analysis::GridItemResult& result);

// A last line without a line break is left out. Errors: kInvalidArgument for the text of anything
// else; kCorrupt, with the number of the line; kUnsupported for another version of the schema.
[[nodiscard]] Result<GridJournal> parse_journal(std::string_view text);

}  // namespace gridscope::report
