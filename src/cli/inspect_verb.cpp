#include <optional>
#include <string>

#include "gridscope/app/inspect.hpp"
#include "gridscope/cli/fail_on.hpp"
#include "gridscope/cli/settings.hpp"
#include "gridscope/cli/verb_list.hpp"
#include "gridscope/report/inspection_report.hpp"

namespace gridscope::cli {
namespace {

app::InspectRequest make_request(const Arguments& arguments) {
  using Tensors = analysis::InspectOptions::Tensors;
  return {
      .model = arguments.text("MODEL"),
      .revision = arguments.text("revision"),
      .options = {
          .by = analysis::parse_group_by(arguments.text("by")).value_or(analysis::GroupBy::kPart),
          .tensors = arguments.flag("tensors") ? Tensors::kList : Tensors::kLeaveOut}};
}

std::string render(const analysis::Inspection& inspection, std::string_view format) {
  if (format == "json") return report::inspection_json(inspection);
  if (format == "markdown") return report::inspection_markdown(inspection);
  return report::inspection_text(inspection);
}

}  // namespace

Result<Answer> run_inspect(const Arguments& arguments, const Surroundings& around) {
  GRIDSCOPE_TRY(const auto context,
                app::Context::make(make_settings(arguments), around.observer, around.stop));
  GRIDSCOPE_TRY(const auto inspection, app::inspect(make_request(arguments), *context));
  return judged(render(inspection, arguments.text("format")), inspection.findings,
                arguments.text("fail-on"));
}

}  // namespace gridscope::cli
