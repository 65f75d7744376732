#include "gridscope/cli/settings.hpp"

namespace gridscope::cli {

app::Settings make_settings(const Arguments& arguments) {
  app::Settings settings;
  settings.connections = arguments.number("connections");
  if (arguments.given("timeout")) settings.timeout = arguments.duration("timeout");
  settings.proxy = arguments.text("proxy");
  if (arguments.flag("no-cache")) settings.cache = app::Settings::Cache::kBypass;
  if (arguments.given("cache-dir")) settings.cache_directory = arguments.text("cache-dir");
  settings.cache_bytes = arguments.number("cache-size");
  // Errors call a limit by the name of its option.
  for (const auto& [name, limit] : format::kNamedLimits) {
    settings.limits.*limit = arguments.number(name);
  }
  return settings;
}

}  // namespace gridscope::cli
