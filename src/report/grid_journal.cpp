#include "gridscope/report/grid_journal.hpp"

#include <fmt/format.h>

#include <utility>

#include "grid_json_parts.hpp"
#include "gridscope/core/text.hpp"

namespace gridscope::report {
namespace {

constexpr std::string_view kSchema = "gridscope.grid-check-part/1";
constexpr std::string_view kAnySchema = "gridscope.grid-check-part/";  // of any version
constexpr std::uint64_t kMaxShards = 1'000'000;  // room is made for as many as are claimed
constexpr ReportKind kKind = {.name = "part of a grid check",
                              .remedy =
                                  "run the shard again, or go on with --resume where a run "
                                  "was cut off"};

// Another file, as soon as its first line does not say what it is.
Status check_is_journal(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  if (line.find(kAnySchema) != std::string_view::npos) return {};
  constexpr std::size_t kShown = 60;
  const std::string found =
      text.empty() ? "an empty file" : fmt::format("\"{}\"", printable(line, kShown));
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("is no journal of a grid check: expected a first line of JSON with the "
                          "schema {}, found {}",
                          quote(kSchema), found),
              "give a file that grid-check --shard or --resume has written; --resume also takes a "
              "new one");
}

GridJournalHeader read_header(const Members& members) {
  GridJournalHeader header{.fingerprint = members.text("fingerprint"),
                           .source = members.text("source"),
                           .builds = members.texts("builds")};
  header.selection.globs = members.texts("tensor");
  if (!members.is_null("sample_count"))
    header.selection.sample_count = members.count("sample_count");
  header.selection.sample_fraction = members.maybe_real("sample_fraction");
  const Members shard = members.object("shard");
  header.shard = {.index = shard.count("index"), .count = shard.count("count")};
  if (header.shard.index < 1 || header.shard.index > header.shard.count ||
      header.shard.count > kMaxShards) {
    members.refuse("shard", "a shard from 1 to their count, which is at most a million");
  }
  return header;
}

Status read_result(const JsonValue& root, analysis::GridResults& results) {
  std::optional<Error> error;
  const Members members(root, kKind, error);
  const std::uint64_t item = members.count("item");
  if (!std::in_range<std::uint32_t>(item)) members.refuse("item", "the number of an item");
  analysis::GridItemResult result =
      members.has("plain") ? analysis::GridItemResult(read_plain_tensor(members.object("plain")))
                           : analysis::GridItemResult(read_grid_tensor(members.object("tensor")));
  if (error) return tl::make_unexpected(*std::move(error));
  results.insert_or_assign(static_cast<std::uint32_t>(item), std::move(result));
  return {};
}

Status read_line(std::string_view line, std::size_t number, GridJournal& journal) {
  GRIDSCOPE_TRY(const JsonValue root, parse_json(line));
  if (number > 1) return read_result(root, journal.results);
  GRIDSCOPE_CHECK(check_schema(root, kKind, kSchema));
  std::optional<Error> error;
  journal.header = read_header(Members(root, kKind, error));
  if (error) return tl::make_unexpected(*std::move(error));
  return {};
}

}  // namespace

std::string journal_line(const GridJournalHeader& header) {
  const Json json = {{"schema", kSchema},
                     {"fingerprint", header.fingerprint},
                     {"source", header.source},
                     {"builds", header.builds},
                     {"tensor", header.selection.globs},
                     {"sample_count", optional_json(header.selection.sample_count)},
                     {"sample_fraction", optional_json(header.selection.sample_fraction)},
                     {"shard", {{"index", header.shard.index}, {"count", header.shard.count}}}};
  return compact(json) + '\n';
}

std::string journal_line(std::uint32_t item, const analysis::GridItemResult& result) {
  Json json = {{"item", item}};
  if (const auto* tensor = std::get_if<analysis::GridTensor>(&result)) {
    json["tensor"] = grid_tensor_json(*tensor);
  } else {
    json["plain"] = plain_tensor_json(std::get<analysis::PlainTensor>(result));
  }
  return compact(json) + '\n';
}

Result<GridJournal> parse_journal(std::string_view text) {
  GRIDSCOPE_CHECK(check_is_journal(text));
  GridJournal journal;
  std::size_t number = 0;
  while (journal.whole_bytes < text.size()) {
    const std::size_t end = text.find('\n', journal.whole_bytes);
    if (end == std::string_view::npos) break;
    const std::string_view line = text.substr(journal.whole_bytes, end - journal.whole_bytes);
    ++number;
    if (auto status = read_line(line, number, journal); !status) {
      return tl::make_unexpected(
          with_context(std::move(status).error(), fmt::format("line {}", number)));
    }
    journal.whole_bytes = end + 1;
  }
  if (number == 0) {
    return fail(ErrorCode::kCorrupt, "part of a grid check: it has no whole line",
                std::string(kKind.remedy));
  }
  return journal;
}

}  // namespace gridscope::report
