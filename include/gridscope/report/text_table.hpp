#pragma once

// A table for a terminal and for Markdown. Cells may hold foreign strings: each form escapes them
// in its own way, so that no cell can break a line, a column or the page.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gridscope::report {

struct TextTable {
  enum class Align : std::uint8_t { kLeft, kRight };  // words, figures

  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  std::vector<Column> columns;
  // Missing cells are empty; cells beyond the last column are left out.
  std::vector<std::vector<std::string>> rows;
  // A last row that sums up, set off from the others; none when empty.
  std::vector<std::string> total = {};
};

// Columns padded with spaces to the width of their widest cell, two spaces apart; no space at the
// end of a line. Every line ends with a line break.
[[nodiscard]] std::string render_text(const TextTable& table);

// A table of GitHub's Markdown; the total is in bold.
[[nodiscard]] std::string render_markdown(const TextTable& table);

// Code points of well-formed UTF-8. Wide and combining characters count as one column each: model
// and tensor names are ASCII but for rare exceptions, and a table that is one column off stays
// readable.
[[nodiscard]] std::size_t display_width(std::string_view text);

// printable(text) with everything that Markdown would read as markup escaped.
[[nodiscard]] std::string markdown_text(std::string_view text);

// `text` as a code span: `model.embed_tokens.weight`. Backticks inside are dealt with.
[[nodiscard]] std::string markdown_code(std::string_view text);

}  // namespace gridscope::report
