#include "published/figure_table.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace gridscope::test {
namespace {

using Row = std::vector<std::string>;

std::string trimmed(std::string text) {
  std::erase(text, '*');  // bold
  const auto first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> fields;
  std::istringstream in(text);
  for (std::string field; std::getline(in, field, separator);) fields.push_back(trimmed(field));
  return fields;
}

std::uint64_t number(std::string text) {
  std::erase(text, ',');
  return std::stoull(text);
}

struct Columns {
  std::size_t checkpoint, files, part, tensors, bytes, dtypes;
};

std::optional<Columns> columns_of(const Row& row) {
  const auto find = [&](std::string_view name) {
    return static_cast<std::size_t>(std::find(row.begin(), row.end(), name) - row.begin());
  };
  const Columns found{.checkpoint = find("checkpoint"),
                      .files = find("files"),
                      .part = find("part"),
                      .tensors = find("tensors"),
                      .bytes = find("bytes"),
                      .dtypes = find("dtypes")};
  const bool all = std::max({found.checkpoint, found.files, found.part, found.tensors, found.bytes,
                             found.dtypes}) < row.size();
  return all ? std::optional(found) : std::nullopt;
}

void add_row(const Row& row, const Columns& columns, CheckpointFigures& figures) {
  const std::uint64_t tensors = number(row[columns.tensors]);
  const std::uint64_t bytes = number(row[columns.bytes]);
  if (const std::string& files = row[columns.files]; !files.empty()) {
    figures.files = number(files);
    figures.tensors = tensors;
    figures.file_bytes = bytes;
    return;
  }
  const auto dtypes = split(row[columns.dtypes], ',');
  figures.parts[row[columns.part]] = {tensors, bytes, {dtypes.begin(), dtypes.end()}};
}

}  // namespace

std::map<std::string, CheckpointFigures> read_figures(const std::filesystem::path& markdown) {
  std::map<std::string, CheckpointFigures> all;
  std::optional<Columns> columns;
  std::ifstream in(markdown);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with('|')) {
      columns.reset();
      continue;
    }
    Row row = split(line.substr(1), '|');
    if (!columns) {
      columns = columns_of(row);
    } else if (!line.starts_with("| ---")) {
      row.resize(std::max(row.size(), columns->dtypes + 1));
      add_row(row, *columns, all[row[columns->checkpoint]]);
    }
  }
  return all;
}

}  // namespace gridscope::test
