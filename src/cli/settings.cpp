#include "gridscope/cli/settings.hpp"

#include <array>
#include <utility>

namespace gridscope::cli {
namespace {

using Limit = std::pair<std::string_view, std::uint64_t format::Limits::*>;

constexpr auto kLimits = std::to_array<Limit>({
    {"max-header-bytes", &format::Limits::header_bytes},
    {"max-index-bytes", &format::Limits::index_bytes},
    {"max-shards", &format::Limits::shards},
    {"max-tensors", &format::Limits::tensors},
    {"max-name-bytes", &format::Limits::name_bytes},
    {"max-json-depth", &format::Limits::json_depth},
    {"max-rank", &format::Limits::rank},
});

}  // namespace

app::Settings make_settings(const Arguments& arguments) {
  app::Settings settings;
  settings.connections = arguments.number("connections");
  if (arguments.given("timeout")) settings.timeout = arguments.duration("timeout");
  settings.proxy = arguments.text("proxy");
  if (arguments.flag("no-cache")) settings.cache = app::Settings::Cache::kBypass;
  if (arguments.given("cache-dir")) settings.cache_directory = arguments.text("cache-dir");
  settings.cache_bytes = arguments.number("cache-size");
  for (const auto& [name, limit] : kLimits) settings.limits.*limit = arguments.number(name);
  return settings;
}

}  // namespace gridscope::cli
