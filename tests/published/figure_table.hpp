#pragma once

// The figures that a checkpoint must give, read from the Markdown table that documents it.

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>

namespace gridscope::test {

struct PartFigures {
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
  std::set<std::string> dtypes;

  friend bool operator==(const PartFigures&, const PartFigures&) = default;
};

struct CheckpointFigures {
  std::map<std::string, PartFigures> parts = {};  // by title: "vision tower"
  std::uint64_t files = 0;
  std::uint64_t tensors = 0;
  std::uint64_t file_bytes = 0;

  friend bool operator==(const CheckpointFigures&, const CheckpointFigures&) = default;
};

// By name of checkpoint. Reads every table of `markdown` with columns checkpoint, files, part,
// tensors, bytes and dtypes; the row of a checkpoint that names a number of files is its total.
[[nodiscard]] std::map<std::string, CheckpointFigures> read_figures(
    const std::filesystem::path& markdown);

}  // namespace gridscope::test
