#include "gridscope/app/grid_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "grid_journal_file.hpp"
#include "gridscope/analysis/grid_check.hpp"
#include "gridscope/core/parallel.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/model/weights.hpp"
#include "gridscope/report/grid_journal.hpp"
#include "gridscope/store/reference.hpp"
#include "open_model.hpp"

namespace gridscope::app {
namespace {

using analysis::GridItemResult;
using analysis::GridPlan;
using analysis::GridResults;
using analysis::Shard;
using report::GridJournal;
using report::GridJournalHeader;

using Models = std::map<std::string, std::unique_ptr<OpenModel>>;  // by reference

// What a check works on; the models outlive the plan.
struct Prepared {
  Models models;
  GridPlan plan;
};

// Models that are opened at once: each is a few round trips, one after the other.
constexpr std::size_t kOpenedAtOnce = 8;

Error about(const std::string& reference, Error error) {
  const std::string name = quote(reference);  // some errors begin with it
  return error.message.starts_with(name) ? error : with_context(std::move(error), name);
}

// One of the models that are named, and where it goes.
struct ToOpen {
  store::ModelReference reference;
  Models::value_type* model;
};

Status open(const std::vector<ToOpen>& models, Context& context) {
  const auto open_one = [&](std::size_t i) -> Status {
    auto& [name, model] = *models[i].model;
    auto opened = open_model(models[i].reference, context, context.observer());
    if (!opened) return tl::make_unexpected(about(name, std::move(opened).error()));
    model = std::make_unique<OpenModel>(*std::move(opened));
    return {};
  };
  return parallel_chunks(models.size(), kOpenedAtOnce, open_one, context.stop());
}

// Those on disk first: what is wrong with one of them is said before a host that does not answer is
// waited for. One that is named twice is opened once: what was read must not depend on who came
// first.
Result<Models> open_all(const std::vector<std::string>& references, Context& context) {
  Models models;
  std::vector<ToOpen> on_disk;
  std::vector<ToOpen> elsewhere;
  for (const std::string& reference : references) {
    const auto [place, is_new] = models.try_emplace(reference);
    if (!is_new) continue;
    auto resolved = resolve_model(reference, {}, context);
    if (!resolved) return tl::make_unexpected(about(reference, std::move(resolved).error()));
    const bool is_on_disk = resolved->kind == store::ReferenceKind::kDisk;
    (is_on_disk ? on_disk : elsewhere).push_back({*std::move(resolved), &*place});
  }
  GRIDSCOPE_CHECK(open(on_disk, context));
  GRIDSCOPE_CHECK(open(elsewhere, context));
  return models;
}

analysis::GridSide side_of(const std::string& reference, const OpenModel& model) {
  return {.checkpoint = &model.checkpoint,
          .reference = reference,
          .weights = model::list_weights(model.checkpoint)};
}

Result<std::unique_ptr<Prepared>> prepare(const GridCheckRequest& request, Context& context) {
  std::vector<std::string> references = {request.source};
  references.insert(references.end(), request.builds.begin(), request.builds.end());
  auto prepared = std::make_unique<Prepared>();
  GRIDSCOPE_TRY(prepared->models, open_all(references, context));
  std::vector<analysis::GridSide> sides;
  sides.reserve(references.size());
  for (const std::string& reference : references) {
    sides.push_back(side_of(reference, *prepared->models.at(reference)));
  }
  analysis::GridSide source = std::move(sides.front());
  sides.erase(sides.begin());
  GRIDSCOPE_TRY(prepared->plan,
                analysis::plan_grid_check(std::move(source), std::move(sides), request.selection));
  return prepared;
}

GridJournalHeader header_of(const GridCheckRequest& request, const GridPlan& plan) {
  return {.fingerprint = plan.fingerprint,
          .source = request.source,
          .builds = request.builds,
          .selection = request.selection,
          .shard = request.shard.value_or(Shard{})};
}

// Runs what is not done yet, and returns the results of all of the shard's items.
Result<GridResults> run(const GridCheckRequest& request, const GridPlan& plan, Context& context) {
  std::optional<GridJournalFile> journal;
  GridResults results;
  if (!request.resume.empty()) {
    GRIDSCOPE_TRY(journal, GridJournalFile::open(request.resume, header_of(request, plan)));
    results = journal->results();
  }
  std::vector<std::uint32_t> items = analysis::items_of(plan, request.shard.value_or(Shard{}));
  std::erase_if(items, [&](std::uint32_t item) { return results.contains(item); });
  const auto keep = [&](std::uint32_t item, const GridItemResult& result) -> Status {
    if (journal) GRIDSCOPE_CHECK(journal->append(item, result));
    results.insert_or_assign(item, result);
    return {};
  };
  auto status = analysis::run_grid_items(
      plan, items, {.jobs = request.jobs, .stop = context.stop()}, context.observer(), keep);
  if (!status) {
    Error error = std::move(status).error();
    if (journal) {
      error.remedy += fmt::format("{}what is done is kept: run again with --resume {}",
                                  error.remedy.empty() ? "" : "; ", quote(request.resume.native()));
    }
    return tl::make_unexpected(std::move(error));
  }
  return results;
}

Result<analysis::GridReport> conclude(const GridCheckRequest& request, const GridPlan& plan,
                                      const GridResults& results) {
  GRIDSCOPE_TRY(auto report, analysis::assemble_grid_report(plan, results));
  analysis::add_requirement_findings(request.requirements, report);
  return report;
}

// ---- merging ------------------------------------------------------------------------------------

Result<GridJournal> read_part(const std::filesystem::path& path) {
  GRIDSCOPE_TRY(const std::string text, read_journal_text(path));
  auto journal = report::parse_journal(text);
  if (!journal) {
    return tl::make_unexpected(with_context(std::move(journal).error(), quote(path.native())));
  }
  return journal;
}

// Whether both are parts of one check.
bool belong_together(GridJournalHeader a, const GridJournalHeader& b) {
  if (a.shard.count != b.shard.count) return false;
  a.shard = b.shard;
  return a == b;
}

Status check_parts(const std::vector<std::filesystem::path>& paths,
                   const std::vector<GridJournal>& parts) {
  std::vector<const std::filesystem::path*> seen(parts.front().header.shard.count, nullptr);
  if (parts.size() > seen.size()) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{} parts of a check of {}", parts.size(), seen.size()),
                "give each part once");
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!belong_together(parts[i].header, parts.front().header)) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} and {} are parts of different checks",
                              quote(paths.front().native()), quote(paths[i].native())),
                  "give the parts of one grid check, made with the same arguments but --shard");
    }
    const std::filesystem::path*& place = seen[parts[i].header.shard.index - 1];
    if (place != nullptr) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} and {} are the same part", quote(place->native()),
                              quote(paths[i].native())),
                  "give each part once");
    }
    place = &paths[i];
  }
  const auto missing = std::ranges::find(seen, nullptr);
  if (missing == seen.end()) return {};
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("part {} of {} is missing", missing - seen.begin() + 1, seen.size()),
              "run grid-check with that --shard");
}

// A part that was cut off has its shard's items only in part.
Status check_whole(const GridPlan& plan, const std::filesystem::path& path,
                   const GridJournal& part) {
  const Shard shard = part.header.shard;
  std::vector<std::uint32_t> missing = analysis::items_of(plan, shard);
  const std::size_t all = missing.size();
  std::erase_if(missing, [&](std::uint32_t item) { return part.results.contains(item); });
  if (missing.empty()) return {};
  const model::WeightPair& first = analysis::pair_of(plan, plan.items[missing.front()]);
  return fail(
      ErrorCode::kInvalidArgument,
      fmt::format("{} is not whole: it lacks the results of {} of {}, {} first",
                  quote(path.native()), missing.size(), count_of(all, "weight"), quote(first.name)),
      fmt::format("finish it: run grid-check with --shard {}/{} --resume {}", shard.index,
                  shard.count, quote(path.native())));
}

}  // namespace

Result<analysis::GridCost> plan_grid_check(const GridCheckRequest& request, Context& context) {
  GRIDSCOPE_TRY(const auto prepared, prepare(request, context));
  const auto items = analysis::items_of(prepared->plan, request.shard.value_or(Shard{}));
  return analysis::cost_of(prepared->plan, items);
}

Result<analysis::GridReport> grid_check(const GridCheckRequest& request, Context& context) {
  GRIDSCOPE_TRY(const auto prepared, prepare(request, context));
  GRIDSCOPE_TRY(const auto results, run(request, prepared->plan, context));
  return conclude(request, prepared->plan, results);
}

Result<std::string> grid_check_part(const GridCheckRequest& request, Context& context) {
  GRIDSCOPE_TRY(const auto prepared, prepare(request, context));
  GRIDSCOPE_TRY(const auto results, run(request, prepared->plan, context));
  std::string text = journal_line(header_of(request, prepared->plan));
  for (const auto& [item, result] : results) text += report::journal_line(item, result);
  return text;
}

Result<analysis::GridReport> merge_grid_parts(const std::vector<std::filesystem::path>& paths,
                                              const analysis::Requirements& requirements,
                                              Context& context) {
  std::vector<GridJournal> parts;
  for (const std::filesystem::path& path : paths) {
    GRIDSCOPE_TRY(auto part, read_part(path));
    parts.push_back(std::move(part));
  }
  if (parts.empty()) {
    return fail(ErrorCode::kInvalidArgument, "there are no parts to merge", "name their files");
  }
  GRIDSCOPE_CHECK(check_parts(paths, parts));
  const GridJournalHeader& header = parts.front().header;
  const GridCheckRequest request{.source = header.source,
                                 .builds = header.builds,
                                 .selection = header.selection,
                                 .requirements = requirements};
  GRIDSCOPE_TRY(const auto prepared, prepare(request, context));
  if (prepared->plan.fingerprint != header.fingerprint) {
    return fail(ErrorCode::kChanged, "source or build have changed since the parts were made",
                "run all shards again");
  }
  GridResults results;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    GRIDSCOPE_CHECK(check_whole(prepared->plan, paths[i], parts[i]));
    results.merge(parts[i].results);
  }
  return conclude(request, prepared->plan, results);
}

}  // namespace gridscope::app
