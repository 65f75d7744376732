#include <optional>
#include <string>

#include "gridscope/app/inspect.hpp"
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

// Whether the worst finding reaches the severity that --fail-on names.
bool fails(const analysis::Inspection& inspection, std::string_view fail_on) {
  const std::optional<Severity> worst = analysis::worst_severity(inspection);
  if (!worst || fail_on == "never") return false;
  return *worst >= (fail_on == "warning" ? Severity::kWarning : Severity::kError);
}

}  // namespace

Result<Answer> run_inspect(const Arguments& arguments, const Surroundings& around) {
  GRIDSCOPE_TRY(const auto context,
                app::Context::make(make_settings(arguments), around.observer, around.stop));
  GRIDSCOPE_TRY(const auto inspection, app::inspect(make_request(arguments), *context));
  return Answer{.text = render(inspection, arguments.text("format")),
                .exit_code = fails(inspection, arguments.text("fail-on")) ? 1 : 0};
}

}  // namespace gridscope::cli
