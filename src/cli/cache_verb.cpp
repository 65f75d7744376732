#include <fmt/format.h>

#include <string>
#include <string_view>

#include "gridscope/app/cache.hpp"
#include "gridscope/cli/settings.hpp"
#include "gridscope/cli/verb_list.hpp"
#include "gridscope/core/text.hpp"

namespace gridscope::cli {
namespace {

constexpr std::size_t kPathBytes = 16'384;  // the longest path, every byte of it escaped

// printable() has dealt with control bytes and invalid UTF-8; what JSON minds is left.
std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : printable(text, kPathBytes)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string as_json(const app::CacheInfo& info, std::string_view action) {
  return fmt::format(
      "{{\n"
      "  \"schema\": \"gridscope.cache/1\",\n"
      "  \"action\": \"{}\",\n"
      "  \"directory\": {},\n"
      "  \"entries\": {},\n"
      "  \"bytes\": {},\n"
      "  \"max_bytes\": {}\n"
      "}}\n",
      action, json_string(info.directory.string()), info.usage.entries, info.usage.bytes,
      info.max_bytes);
}

std::string entries_text(std::uint64_t entries) {
  return entries == 1 ? "1 entry" : fmt::format("{} entries", with_thousands(entries));
}

std::string as_text(const app::CacheInfo& info, std::string_view action) {
  const std::string directory = printable(info.directory.string(), kPathBytes);
  const std::string entries = entries_text(info.usage.entries);
  const std::string size = format_bytes(info.usage.bytes);
  if (action == "clear") return fmt::format("removed {}, {}, from {}\n", entries, size, directory);
  return fmt::format("{}: {}, {} of at most {}\n", directory, entries, size,
                     format_bytes(info.max_bytes));
}

// The size is what the cache may grow to, and clearing leaves nothing to be held against it.
Status refuse_ineffective(const Arguments& arguments) {
  if (arguments.text("ACTION") != "clear" || !arguments.given("cache-size")) return {};
  return fail(ErrorCode::kInvalidArgument, "--cache-size has no effect on this action",
              "see gridscope cache --help");
}

}  // namespace

Result<Answer> run_cache(const Arguments& arguments, const Surroundings& around) {
  GRIDSCOPE_CHECK(refuse_ineffective(arguments));
  GRIDSCOPE_TRY(const auto context,
                app::Context::make(make_settings(arguments), around.observer, around.stop));
  const std::string& action = arguments.text("ACTION");
  GRIDSCOPE_TRY(const app::CacheInfo info,
                action == "clear" ? app::clear_cache(*context) : app::cache_info(*context));
  return Answer{.text = arguments.text("format") == "json" ? as_json(info, action)
                                                           : as_text(info, action)};
}

}  // namespace gridscope::cli
