#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grid_json_parts.hpp"
#include "gridscope/report/grid_check_report.hpp"

namespace gridscope::report {
namespace {

using analysis::GridBuild;
using analysis::GridCoverage;
using analysis::GridReport;
using analysis::GridSmoothing;

constexpr std::string_view kSchema = "gridscope.grid-check/1";
constexpr std::string_view kPlanSchema = "gridscope.grid-check-plan/1";
constexpr ReportKind kKind = {.name = "grid check",
                              .remedy =
                                  "write the report anew with `gridscope grid-check "
                                  "--format json`"};
constexpr std::uint64_t kMaxReportBytes = 2'000'000'000;

Json absences_json(const GridCoverage& coverage) {
  return array_json(coverage.absent_by_design, [](const auto& absence) -> Json {
    return {{"name", absence.first}, {"reason", absence.second}};
  });
}

Json coverage_json(const GridCoverage& coverage) {
  return {{"matched", coverage.matched},
          {"compared", coverage.compared},
          {"source_only", coverage.source_only},
          {"build_only", coverage.build_only},
          {"absent_by_design", absences_json(coverage)}};
}

Json smoothing_json(const std::optional<GridSmoothing>& smoothing) {
  if (!smoothing) return nullptr;
  return {{"norms", smoothing->norms},
          {"tensors", smoothing->tensors},
          {"min_factor", smoothing->min_factor},
          {"max_factor", smoothing->max_factor},
          {"totals_after", grid_totals_json(smoothing->totals_after)}};
}

Json build_json(const GridBuild& build) {
  Json json = {{"model", build.model},
               {"commit", build.commit},
               {"format", build.format},
               {"scale_dtype", build.scale_dtype},
               {"group_size", build.group_size},
               {"verdict", verdict_json(build.verdict)},
               {"totals", grid_totals_json(build.totals)}};
  json["tensors"] = array_json(build.tensors, grid_tensor_json);
  json["plain"] = {{"compared", build.plain_compared},
                   {"identical", build.plain_identical},
                   {"different", array_json(build.different, plain_tensor_json)}};
  json["coverage"] = coverage_json(build.coverage);
  json["smoothing"] = smoothing_json(build.smoothing);
  return json;
}

GridCoverage read_coverage(const Members& members) {
  return {.matched = members.count("matched"),
          .compared = members.count("compared"),
          .source_only = members.texts("source_only"),
          .build_only = members.texts("build_only"),
          .absent_by_design = members.objects("absent_by_design", [](const Members& absence) {
            return std::pair(absence.text("name"), absence.text("reason"));
          })};
}

std::optional<GridSmoothing> read_smoothing(const Members& build) {
  if (build.is_null("smoothing")) return std::nullopt;
  const Members members = build.object("smoothing");
  return GridSmoothing{.norms = members.count("norms"),
                       .tensors = members.count("tensors"),
                       .min_factor = members.real("min_factor"),
                       .max_factor = members.real("max_factor"),
                       .totals_after = read_grid_totals(members.object("totals_after"))};
}

GridBuild read_build(const Members& members) {
  const Members plain = members.object("plain");
  return {.model = members.text("model"),
          .commit = members.text("commit"),
          .format = members.text("format"),
          .scale_dtype = members.text("scale_dtype"),
          .group_size = members.count("group_size"),
          .verdict = read_verdict(members),
          .totals = read_grid_totals(members.object("totals")),
          .tensors = members.objects("tensors", read_grid_tensor),
          .different = plain.objects("different", read_plain_tensor),
          .plain_compared = plain.count("compared"),
          .plain_identical = plain.count("identical"),
          .coverage = read_coverage(members.object("coverage")),
          .smoothing = read_smoothing(members)};
}

}  // namespace

std::string grid_check_json(const GridReport& report) {
  Json root = {{"schema", kSchema},
               {"source",
                {{"model", report.source},
                 {"commit", report.source_commit},
                 {"grid", source_grid_json(report.source_grid)}}},
               {"selection", report.selection}};
  root["builds"] = array_json(report.builds, build_json);
  root["findings"] = array_json(report.findings, finding_json);
  root["reads"] = {{"tile_reads", report.tile_reads}, {"bytes", report.read_bytes}};
  return pretty(root);
}

Result<GridReport> parse_grid_check(std::string_view json) {
  GRIDSCOPE_TRY(const JsonValue root, parse_json(json, {.max_bytes = kMaxReportBytes}));
  GRIDSCOPE_CHECK(check_schema(root, kKind, kSchema));
  std::optional<Error> error;
  const Members members(root, kKind, error);
  const Members source = members.object("source");
  const Members reads = members.object("reads");
  GridReport report{.source = source.text("model"),
                    .source_commit = source.text("commit"),
                    .source_grid = read_source_grid(source.object("grid")),
                    .builds = members.objects("builds", read_build),
                    .selection = members.text("selection"),
                    .findings = members.objects("findings", read_finding),
                    .tile_reads = reads.count("tile_reads"),
                    .read_bytes = reads.count("bytes")};
  if (error) return tl::make_unexpected(*std::move(error));
  return report;
}

std::string grid_cost_json(const analysis::GridCost& cost) {
  return pretty({{"schema", kPlanSchema},
                 {"tensors", cost.tensors},
                 {"weights", cost.weights},
                 {"bytes", cost.bytes},
                 {"tile_reads", cost.tile_reads}});
}

}  // namespace gridscope::report
