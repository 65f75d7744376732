#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gridscope/app/grid_check.hpp"
#include "gridscope/cli/fail_on.hpp"
#include "gridscope/cli/option_value.hpp"
#include "gridscope/cli/settings.hpp"
#include "gridscope/cli/verb_list.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/report/grid_check_report.hpp"

namespace gridscope::cli {
namespace {

using analysis::GridReport;
using analysis::Shard;

tl::unexpected<Error> wrong(std::string message, std::string remedy) {
  return fail(ErrorCode::kInvalidArgument, std::move(message), std::move(remedy));
}

// "12" or "0.05"; a whole number is a count.
Status read_sample(const std::string& text, analysis::GridSelection& selection) {
  if (text.empty()) return {};
  const auto count = parse_count(text);
  if (count && *count > 0) {
    selection.sample_count = count;
    return {};
  }
  const auto fraction = parse_real(text);
  const bool is_share = fraction && *fraction > 0.0 && *fraction < 1.0;
  if (!is_share) {
    return wrong(fmt::format("--sample: expected a count from 1 or a fraction between 0 and 1, "
                             "found {}",
                             quote(text)),
                 "see gridscope grid-check --help");
  }
  selection.sample_fraction = fraction;
  return {};
}

Result<std::optional<Shard>> read_shard(const std::string& text) {
  constexpr std::uint64_t kMaxShards = 1'000'000;
  if (text.empty()) return std::nullopt;
  const std::size_t slash = text.find('/');
  const auto index = parse_count(std::string_view(text).substr(0, slash));
  const auto count = slash == std::string::npos
                         ? std::nullopt
                         : parse_count(std::string_view(text).substr(slash + 1));
  if (!index || !count || *index < 1 || *index > *count || *count > kMaxShards) {
    return wrong(fmt::format("--shard: expected I/N with I from 1 to N, found {}", quote(text)),
                 "see gridscope grid-check --help");
  }
  return Shard{.index = *index, .count = *count};
}

// A part is no more than results, in a form of its own: what they are worth is decided, and
// written, when all are there.
Status check_shard(const Arguments& arguments) {
  for (const std::string_view option : {"require", "max-moved", "min-sqnr", "fail-on", "format"}) {
    const bool counts = option == "format" && arguments.flag("plan");
    if (counts || !arguments.given(option)) continue;
    return wrong(fmt::format("grid-check: --{} has no effect with --shard", option),
                 "give it to --merge, which judges all parts together");
  }
  return {};
}

analysis::Requirements read_requirements(const Arguments& arguments) {
  analysis::Requirements requirements;
  requirements.verdict = analysis::parse_verdict(arguments.text("require"));
  if (arguments.given("max-moved")) requirements.max_moved = arguments.real("max-moved");
  if (arguments.given("min-sqnr")) requirements.min_sqnr_db = arguments.real("min-sqnr");
  return requirements;
}

Result<app::GridCheckRequest> read_request(const Arguments& arguments) {
  app::GridCheckRequest request{.source = arguments.text("SOURCE"),
                                .builds = arguments.texts("BUILD"),
                                .requirements = read_requirements(arguments),
                                .jobs = arguments.number("jobs"),
                                .resume = arguments.text("resume")};
  request.selection.globs = arguments.texts("tensor");
  GRIDSCOPE_CHECK(read_sample(arguments.text("sample"), request.selection));
  GRIDSCOPE_TRY(request.shard, read_shard(arguments.text("shard")));
  if (request.shard) GRIDSCOPE_CHECK(check_shard(arguments));
  if (request.builds.empty()) {
    return wrong("grid-check: BUILD is missing", "see gridscope grid-check --help");
  }
  return request;
}

// What is decided when the parts are made cannot be asked for again when they are merged.
Status check_merge(const Arguments& arguments) {
  for (const std::string_view option : {"tensor", "sample", "plan", "shard", "resume"}) {
    if (!arguments.given(option)) continue;
    return wrong(fmt::format("grid-check: --merge and --{} exclude each other", option),
                 "give --merge and the parts alone");
  }
  return {};
}

std::string render(const GridReport& report, std::string_view format) {
  if (format == "json") return report::grid_check_json(report);
  if (format == "markdown") return report::grid_check_markdown(report);
  return report::grid_check_text(report);
}

Result<Answer> plan(const Arguments& arguments, const app::GridCheckRequest& request,
                    app::Context& context) {
  const std::string& format = arguments.text("format");
  if (format == "markdown") {
    return wrong("grid-check: a plan has no Markdown form", "give --format text or json");
  }
  GRIDSCOPE_TRY(const auto cost, app::plan_grid_check(request, context));
  return Answer{.text =
                    format == "json" ? report::grid_cost_json(cost) : report::grid_cost_text(cost)};
}

Result<GridReport> merge(const Arguments& arguments, app::Context& context) {
  GRIDSCOPE_CHECK(check_merge(arguments));
  std::vector<std::filesystem::path> parts = {arguments.text("SOURCE")};
  for (const std::string& part : arguments.texts("BUILD")) parts.emplace_back(part);
  return app::merge_grid_parts(parts, read_requirements(arguments), context);
}

Answer answer(const Arguments& arguments, const GridReport& report) {
  return judged(render(report, arguments.text("format")), report.findings,
                arguments.text("fail-on"));
}

}  // namespace

Result<Answer> run_grid_check(const Arguments& arguments, const Surroundings& around) {
  GRIDSCOPE_TRY(const auto context,
                app::Context::make(make_settings(arguments), around.observer, around.stop));
  if (arguments.flag("merge")) {
    GRIDSCOPE_TRY(const GridReport report, merge(arguments, *context));
    return answer(arguments, report);
  }
  GRIDSCOPE_TRY(const auto request, read_request(arguments));
  if (arguments.flag("plan")) return plan(arguments, request, *context);
  if (request.shard) {
    GRIDSCOPE_TRY(std::string part, app::grid_check_part(request, *context));
    return Answer{.text = std::move(part)};
  }
  GRIDSCOPE_TRY(const GridReport report, app::grid_check(request, *context));
  return answer(arguments, report);
}

}  // namespace gridscope::cli
