// The rules are those of huggingface_hub (constants.py, utils/_auth.py), so that what works with
// the Python tools works here. One deviation: a variable set to "" counts as not set, because hosts
// that start programs from a configuration often expand an undefined variable to nothing.

#include "gridscope/store/hub_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>

#include "gridscope/core/text.hpp"
#include "gridscope/http/fields.hpp"
#include "gridscope/http/url.hpp"

namespace gridscope::store {
namespace {

constexpr std::size_t kMaxTokenBytes = std::size_t{16} * 1024;
constexpr std::int64_t kMaxTimeoutSeconds = 86'400;

using std::filesystem::path;

// The first of `names` that is set to something.
std::optional<std::string> first_set(const Environment& environment,
                                     std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (auto value = environment(name); value && !value->empty()) return value;
  }
  return std::nullopt;
}

bool is_true(const std::optional<std::string>& value) {
  if (!value) return false;
  std::string upper = *value;
  std::ranges::transform(upper, upper.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  constexpr std::array<std::string_view, 4> kTrue = {"1", "ON", "YES", "TRUE"};
  return std::ranges::find(kTrue, upper) != kTrue.end();
}

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The variable name at the start of `text`, which follows a '$', and how much of `text` it takes:
// NAME or {NAME}.
struct VariableName {
  std::string_view name;
  std::size_t length = 0;
};

VariableName variable_name(std::string_view text) {
  if (text.starts_with('{')) {
    const std::size_t end = text.find('}');
    if (end == std::string_view::npos) return {};
    return {.name = text.substr(1, end - 1), .length = end + 1};
  }
  const auto end = std::ranges::find_if_not(text, is_name_char);
  const auto length = static_cast<std::size_t>(end - text.begin());
  return {.name = text.substr(0, length), .length = length};
}

// $NAME and ${NAME} replaced by their values; those of variables that are not set stay as written.
std::string expand_variables(const Environment& environment, std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t dollar = text.find('$');
    out += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar + 1);
    const VariableName variable = variable_name(text);
    const auto value = variable.name.empty() ? std::nullopt : environment(variable.name);
    out += value ? *value : fmt::format("${}", text.substr(0, variable.length));
    text.remove_prefix(variable.length);
  }
  return out;
}

path expand_path(const Environment& environment, std::string_view text) {
  std::string expanded = expand_variables(environment, text);
  const bool from_home = expanded == "~" || expanded.starts_with("~/");
  const auto home = first_set(environment, {"HOME"});
  if (!from_home || !home) return expanded;
  return {*home + expanded.substr(1)};
}

// Empty when nothing says where home is.
path hub_home(const Environment& environment) {
  if (const auto home = first_set(environment, {"HF_HOME"})) {
    return expand_path(environment, *home);
  }
  if (const auto cache = first_set(environment, {"XDG_CACHE_HOME"})) {
    return expand_path(environment, *cache) / "huggingface";
  }
  if (const auto home = first_set(environment, {"HOME"})) {
    return path(*home) / ".cache" / "huggingface";
  }
  return {};
}

path hub_cache(const Environment& environment, const path& home) {
  if (const auto cache = first_set(environment, {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})) {
    return expand_path(environment, *cache);
  }
  return home.empty() ? path() : home / "hub";
}

// Line ends are removed wherever they stand, blanks at both ends.
std::string clean_token(std::string token) {
  std::erase_if(token, [](char c) { return c == '\r' || c == '\n'; });
  return std::string(http::trim_blanks(token));
}

// A token file that is missing or cannot be read is no token, as for the Python tools.
std::string read_token_file(const path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string token(kMaxTokenBytes + 1, '\0');
  in.read(token.data(), static_cast<std::streamsize>(token.size()));
  token.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return token;
}

Status check_token(std::string_view token, std::string_view where) {
  const std::string remedy =
      fmt::format("put a token from the Hub's settings page into {}, or unset it", where);
  if (token.starts_with("${")) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{} holds a placeholder that was never filled in", where), remedy);
  }
  if (token.size() > kMaxTokenBytes) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{} holds more than {} bytes, which is no token", where,
                            with_thousands(kMaxTokenBytes)),
                remedy);
  }
  if (!std::ranges::all_of(token, [](char c) { return c > 0x20 && c < 0x7F; })) {
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{} holds a blank or a byte outside printable ASCII, which no token has",
                    where),
        remedy);
  }
  return {};
}

Result<std::string> find_token(const Environment& environment, const path& home) {
  if (is_true(environment("HF_HUB_DISABLE_IMPLICIT_TOKEN"))) return std::string();
  for (const std::string_view name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    std::string token = clean_token(environment(name).value_or(""));
    if (token.empty()) continue;
    GRIDSCOPE_CHECK(check_token(token, name));
    return token;
  }
  const auto named = first_set(environment, {"HF_TOKEN_PATH"});
  if (!named && home.empty()) return std::string();
  std::string token =
      clean_token(read_token_file(named ? expand_path(environment, *named) : home / "token"));
  GRIDSCOPE_CHECK(check_token(token, named ? "the file HF_TOKEN_PATH" : "the file HF_HOME/token"));
  return token;
}

Result<std::string> find_endpoint(const Environment& environment, std::string standard) {
  auto endpoint = first_set(environment, {"HF_ENDPOINT"}).value_or(std::move(standard));
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const auto url = http::parse_url(endpoint);
  if (!url || !url->query.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("HF_ENDPOINT is no usable URL: {}",
                            url ? "it has a query" : url.error().message),
                "set it to the Hub's base URL, as in https://huggingface.co, or unset it");
  }
  return endpoint;
}

Result<std::chrono::milliseconds> find_timeout(const Environment& environment,
                                               std::string_view name,
                                               std::chrono::milliseconds standard) {
  const auto text = first_set(environment, {name});
  if (!text) return standard;
  std::int64_t seconds = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, seconds);
  if (error != std::errc() || stop != end || seconds < 1 || seconds > kMaxTimeoutSeconds) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{} is {}, not a number of seconds from 1 to {}", name, quote(*text),
                            with_thousands(kMaxTimeoutSeconds)),
                "set it to whole seconds or unset it");
  }
  return std::chrono::seconds(seconds);
}

}  // namespace

Environment process_environment() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

Result<HubSettings> read_hub_settings(const Environment& environment) {
  HubSettings settings;
  const path home = hub_home(environment);
  settings.cache = hub_cache(environment, home);
  settings.offline = is_true(first_set(environment, {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}));
  GRIDSCOPE_TRY(settings.endpoint, find_endpoint(environment, settings.endpoint));
  GRIDSCOPE_TRY(settings.token, find_token(environment, home));
  GRIDSCOPE_TRY(settings.metadata_timeout,
                find_timeout(environment, "HF_HUB_ETAG_TIMEOUT", settings.metadata_timeout));
  GRIDSCOPE_TRY(settings.transfer_timeout,
                find_timeout(environment, "HF_HUB_DOWNLOAD_TIMEOUT", settings.transfer_timeout));
  return settings;
}

}  // namespace gridscope::store
