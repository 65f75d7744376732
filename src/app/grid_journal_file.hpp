#pragma once

// A journal on disk: what a grid check has done, kept so that nothing finished is done twice.

#include <filesystem>
#include <string>

#include "gridscope/analysis/grid_check.hpp"
#include "gridscope/core/result.hpp"
#include "gridscope/io/descriptor.hpp"
#include "gridscope/report/grid_journal.hpp"

namespace gridscope::app {

class GridJournalFile {
 public:
  // Opens the journal of exactly this check, or begins it. A line that was cut off is removed.
  // Errors: kInvalidArgument when the file is the journal of another check or no journal at all;
  // kUnavailable when another process writes to it; those of the file.
  [[nodiscard]] static Result<GridJournalFile> open(const std::filesystem::path& path,
                                                    const report::GridJournalHeader& header);

  // What was there when it was opened.
  [[nodiscard]] const analysis::GridResults& results() const { return results_; }
  // One line, whole; survives the process from then on.
  [[nodiscard]] Status append(std::uint32_t item, const analysis::GridItemResult& result);

 private:
  GridJournalFile(std::filesystem::path path, io::Descriptor file, analysis::GridResults results);

  std::filesystem::path path_;
  io::Descriptor file_;
  analysis::GridResults results_;
};

// The whole text of a journal. Errors: those of the file; kLimit beyond 2 GB.
[[nodiscard]] Result<std::string> read_journal_text(const std::filesystem::path& path);

}  // namespace gridscope::app
