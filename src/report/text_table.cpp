#include "gridscope/report/text_table.hpp"

#include <algorithm>
#include <span>

#include "gridscope/core/text.hpp"

namespace gridscope::report {
namespace {

using Align = TextTable::Align;
using Cells = std::vector<std::string>;

constexpr std::string_view kGap = "  ";
// Of one cell: a finding's message may be longer than a name.
constexpr std::size_t kMaxCellBytes = 2000;

// `cells` made safe for a terminal, one for each column.
Cells printable_cells(std::span<const std::string> cells, std::size_t columns) {
  Cells safe(columns);
  for (std::size_t i = 0; i < std::min(columns, cells.size()); ++i) {
    safe[i] = printable(cells[i], kMaxCellBytes);
  }
  return safe;
}

std::string padded(std::string_view text, std::size_t width, Align align) {
  const std::string pad(width - std::min(width, display_width(text)), ' ');
  return align == Align::kRight ? pad + std::string(text) : std::string(text) + pad;
}

// The rows of a table as they stand on a terminal, titles first, with the widths they need.
class Layout {
 public:
  explicit Layout(const TextTable& table) : table_(table), widths_(table.columns.size(), 0) {
    Cells titles;
    for (const TextTable::Column& column : table.columns) titles.push_back(column.title);
    add(titles);
    for (const Cells& row : table.rows) add(row);
    if (!table.total.empty()) add(table.total);
  }

  [[nodiscard]] std::string render() const {
    std::string out = line(lines_.front()) + rule();
    const std::size_t total = lines_.size() - (table_.total.empty() ? 0 : 1);
    for (std::size_t i = 1; i < lines_.size(); ++i) {
      if (i == total) out += rule();
      out += line(lines_[i]);
    }
    return out;
  }

 private:
  void add(std::span<const std::string> cells) {
    lines_.push_back(printable_cells(cells, widths_.size()));
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      widths_[i] = std::max(widths_[i], display_width(lines_.back()[i]));
    }
  }

  [[nodiscard]] std::string line(const Cells& cells) const {
    std::string out;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) out += kGap;
      out += padded(cells[i], widths_[i], table_.columns[i].align);
    }
    out.resize(out.find_last_not_of(' ') + 1);
    return out + '\n';
  }

  [[nodiscard]] std::string rule() const {
    std::string out;
    for (const std::size_t width : widths_) {
      if (!out.empty()) out += kGap;
      out += std::string(width, '-');
    }
    return out + '\n';
  }

  const TextTable& table_;
  std::vector<std::size_t> widths_;
  std::vector<Cells> lines_;
};

std::string markdown_row(std::span<const std::string> cells, std::size_t columns,
                         std::string_view emphasis = "") {
  std::string out = "|";
  for (std::size_t i = 0; i < columns; ++i) {
    const std::string text = i < cells.size() ? markdown_text(cells[i]) : "";
    out += ' ';
    if (!text.empty()) out.append(emphasis).append(text).append(emphasis).append(" ");
    out += '|';
  }
  return out + '\n';
}

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Underscores inside a word are plain text in GitHub's Markdown, and names are full of them.
bool is_markup(std::string_view text, std::size_t i) {
  constexpr std::string_view kMarkup = "\\`*[]<>|~&#$!";
  if (text[i] != '_') return kMarkup.find(text[i]) != std::string_view::npos;
  return i == 0 || i + 1 == text.size() || !is_word(text[i - 1]) || !is_word(text[i + 1]);
}

}  // namespace

std::string render_text(const TextTable& table) {
  return Layout(table).render();
}

std::string render_markdown(const TextTable& table) {
  const std::size_t columns = table.columns.size();
  Cells titles;
  std::string rule = "|";
  for (const TextTable::Column& column : table.columns) {
    titles.push_back(column.title);
    rule += column.align == Align::kRight ? " ---: |" : " --- |";
  }
  std::string out = markdown_row(titles, columns) + rule + '\n';
  for (const Cells& row : table.rows) out += markdown_row(row, columns);
  if (!table.total.empty()) out += markdown_row(table.total, columns, "**");
  return out;
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string markdown_text(std::string_view text) {
  const std::string safe = printable(text, kMaxCellBytes);
  std::string out;
  for (std::size_t i = 0; i < safe.size(); ++i) {
    if (is_markup(safe, i)) out += '\\';
    out += safe[i];
  }
  return out;
}

std::string markdown_code(std::string_view text) {
  const std::string safe = printable(text);
  // A span is closed by as many backticks as opened it; the longest run inside is outnumbered.
  std::size_t longest = 0;
  std::size_t run = 0;
  for (const char c : safe) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  const std::string_view pad = longest > 0 ? " " : "";
  return fence + std::string(pad) + safe + std::string(pad) + fence;
}

}  // namespace gridscope::report
