#include "gridscope/report/grid_check_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "gridscope/core/text.hpp"

namespace gridscope::report {
namespace {

using analysis::GridBuild;
using analysis::GridReport;
using analysis::GridTensor;
using analysis::GridTotals;
using Align = TextTable::Align;

constexpr std::size_t kNamed = 5;

// Two decimals, but never "0.00%" of something or "100.00%" of less than all.
std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  const double percentage = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  if (part > 0 && percentage < 0.005) return "<0.01%";
  if (part < whole && percentage >= 99.995) return ">99.99%";
  return fmt::format("{:.2f}%", percentage);
}

// "149,003 (41.34%)".
std::string with_share(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("{} ({})", with_thousands(part), percent(part, whole));
}

// Three significant digits, as the errors of weights are usually given.
std::string error_text(double error) {
  return fmt::format("{:.3g}", error);
}

std::string sqnr_text(const GridTotals& totals) {
  if (const auto sqnr = totals.sqnr_db()) return fmt::format("{:.2f}", *sqnr);
  return totals.sums.squared_error == 0.0 ? "inf" : "-";
}

std::vector<TextTable::Column> figure_columns() {
  return {{"weights", Align::kRight},
          {"groups", Align::kRight},
          {"groups identical", Align::kRight},
          {"values identical", Align::kRight},
          {"moved", Align::kRight},
          {"max error", Align::kRight},
          {"mean error", Align::kRight},
          {"SQNR dB", Align::kRight}};
}

std::vector<std::string> figure_cells(const GridTotals& totals) {
  const quant::ErrorSums& sums = totals.sums;
  return {with_thousands(sums.weights),
          with_thousands(sums.groups),
          with_share(sums.groups_identical, sums.groups),
          percent(sums.values_identical, sums.weights),
          with_share(sums.moved, sums.weights),
          error_text(std::max(sums.worst.error, 0.0)),
          error_text(totals.mean_abs_error()),
          sqnr_text(totals)};
}

std::vector<std::string> row_of(std::vector<std::string> words, const GridTotals& totals) {
  for (std::string& cell : figure_cells(totals)) words.push_back(std::move(cell));
  return words;
}

double sqnr_order(const GridTotals& totals) {
  return totals.sqnr_db().value_or(std::numeric_limits<double>::infinity());
}

std::string some_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kNamed); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kNamed) text += fmt::format(" and {} more", names.size() - kNamed);
  return text;
}

void add_list(std::string_view what, const std::vector<std::string>& names,
              std::vector<std::string>& notes) {
  if (names.empty()) return;
  notes.push_back(fmt::format("{}: {} ({})", what, with_thousands(names.size()), some_of(names)));
}

void add_level_moves(const GridTotals& totals, std::vector<std::string>& notes) {
  if (totals.lattice_weights == 0) return;
  std::uint64_t moved = totals.level_moves_beyond;
  std::string moves;
  for (const auto& [move, count] : totals.level_moves) {
    moved += count;
    moves += fmt::format("{}{:+d}: {}", moves.empty() ? "" : ", ", move, with_thousands(count));
  }
  notes.push_back(fmt::format("on the source's grid: {} of {} weights on another level{}",
                              with_thousands(moved), with_thousands(totals.lattice_weights),
                              moves.empty() ? "" : " (" + moves + ")"));
}

void add_absences(const GridBuild& build, std::vector<std::string>& notes) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const auto& [name, reason] : build.coverage.absent_by_design) {
    by_reason[reason].push_back(name);
  }
  for (const auto& [reason, names] : by_reason) {
    add_list("absent by design, " + reason, names, notes);
  }
}

void add_smoothing(const GridBuild& build, std::vector<std::string>& notes) {
  if (!build.smoothing) return;
  const std::string evidence =
      build.smoothing->norms == 0
          ? "seen in the columns alone"
          : fmt::format("explained by {}", count_of(build.smoothing->norms, "norm"));
  notes.push_back(fmt::format("smoothed: {} by factors of {:.3g} to {:.3g}, {}",
                              count_of(build.smoothing->tensors, "tensor"),
                              build.smoothing->min_factor, build.smoothing->max_factor, evidence));
}

}  // namespace

std::string source_grid_summary(const analysis::SourceGrid& grid) {
  const std::uint64_t size = grid.group_size();
  const std::string groups = size == 0
                                 ? count_of(grid.groups, "group") + ", no common size"
                                 : fmt::format("{} of {}", count_of(grid.groups, "group"), size);
  return fmt::format(
      "{}: {} on a 4-bit grid, {} ambiguous, {} dead, {} off the grid, {} not finite", groups,
      with_share(grid.on_grid, grid.groups), with_thousands(grid.ambiguous),
      with_thousands(grid.dead), with_thousands(grid.off_grid), with_thousands(grid.non_finite));
}

TextTable build_table(const GridReport& report) {
  TextTable table{.columns = {{"build"}, {"verdict"}}, .rows = {}};
  for (TextTable::Column& column : figure_columns()) table.columns.push_back(std::move(column));
  for (const GridBuild& build : report.builds) {
    const std::string verdict(analysis::verdict_key(build.verdict));
    table.rows.push_back(row_of({build.model, verdict}, build.totals));
    if (!build.smoothing) continue;
    table.rows.push_back(row_of({"  smoothing undone", ""}, build.smoothing->totals_after));
  }
  return table;
}

TextTable worst_table(const GridBuild& build) {
  std::vector<const GridTensor*> worst;
  for (const GridTensor& tensor : build.tensors) {
    if (tensor.verdict != analysis::Verdict::kExact) worst.push_back(&tensor);
  }
  std::ranges::sort(worst, {}, [](const GridTensor* tensor) {
    return std::tuple(-static_cast<int>(tensor->verdict), -tensor->totals.moved_share(),
                      sqnr_order(tensor->totals), std::string_view(tensor->name));
  });
  if (worst.size() > kWorstTensors) worst.resize(kWorstTensors);
  TextTable table{.columns = {{"worst tensors"}, {"verdict"}}, .rows = {}};
  for (TextTable::Column& column : figure_columns()) table.columns.push_back(std::move(column));
  table.columns.push_back({"worst at"});
  for (const GridTensor* tensor : worst) {
    const quant::WorstError& at = tensor->totals.sums.worst;
    const std::string verdict(analysis::verdict_key(tensor->verdict));
    auto cells = row_of({tensor->name, verdict}, tensor->totals);
    cells.push_back(at.error > 0.0 ? fmt::format("[{}, {}]", at.row, at.column) : tensor->fault);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::vector<std::string> build_notes(const GridBuild& build) {
  std::vector<std::string> notes;
  if (!build.format.empty()) notes.push_back("stored as " + build.format);
  add_level_moves(build.totals, notes);
  add_smoothing(build, notes);
  notes.push_back(
      fmt::format("compared: {} of {} matched tensors; plain tensors identical: {} of {}",
                  with_thousands(build.coverage.compared), with_thousands(build.coverage.matched),
                  with_thousands(build.plain_identical), with_thousands(build.plain_compared)));
  std::vector<std::string> different;
  different.reserve(build.different.size());
  for (const auto& tensor : build.different) different.push_back(tensor.name);
  add_list("plain tensors that differ", different, notes);
  add_list("only in the source", build.coverage.source_only, notes);
  add_list("only in the build", build.coverage.build_only, notes);
  add_absences(build, notes);
  return notes;
}

std::string grid_reads_summary(const GridReport& report) {
  return fmt::format("{} ({}) of weights in {}", count_of(report.read_bytes, "byte"),
                     format_bytes(report.read_bytes), count_of(report.tile_reads, "tile read"));
}

}  // namespace gridscope::report
