#include "gridscope/store/hub_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "gridscope/core/json.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/http/client.hpp"
#include "gridscope/http/fields.hpp"
#include "gridscope/http/retry.hpp"

namespace gridscope::store {
namespace {

constexpr std::size_t kMaxShownBytes = 300;
// Query values shorter than this are words like "1" or "GET", not secrets.
constexpr std::size_t kShortestSecret = 8;

std::string field(const http::ResponseHead& head, std::string_view name) {
  const std::string* value = head.headers.find(name);
  return value == nullptr ? std::string() : *value;
}

// The texts of {"error": "..."} or a list of them, {"error_description": ...},
// {"errors": [{"message": ...}]}.
std::string message_in_json(const JsonValue& body) {
  for (const std::string_view key : {"error_description", "error", "errors"}) {
    const JsonValue* value = body.find(key);
    if (value == nullptr) continue;
    if (value->string() != nullptr) return *value->string();
    if (value->array() == nullptr) continue;
    std::string joined;
    for (const JsonValue& item : *value->array()) {
      const JsonValue* message = item.string() != nullptr ? &item : item.find("message");
      if (message == nullptr || message->string() == nullptr) continue;
      joined += (joined.empty() ? "" : "; ") + *message->string();
    }
    return joined;
  }
  return {};
}

// The first line of a text body; of XML only what stands in <Message> or <Code>, since the rest
// repeats the request; of HTML nothing.
std::string message_in_text(std::string_view body) {
  body = http::trim_blanks(body);
  const std::string_view line = body.substr(0, body.find('\n'));
  if (!body.starts_with('<')) return std::string(http::trim_blanks(line));
  for (const std::string_view tag : {"Message", "Code"}) {
    const std::string open = fmt::format("<{}>", tag);
    const std::size_t begin = body.find(open);
    const std::size_t end = body.find(fmt::format("</{}>", tag));
    if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) continue;
    return std::string(body.substr(begin + open.size(), end - begin - open.size()));
  }
  return {};
}

std::string server_message(const FailedAnswer& answer) {
  if (std::string header = field(answer.head, "X-Error-Message"); !header.empty()) return header;
  if (answer.body.starts_with('{')) {
    if (const auto json = parse_json(answer.body)) return message_in_json(*json);
  }
  return message_in_text(answer.body);
}

bool repeats_query(std::string_view text, std::string_view query) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const std::string_view value = pair.substr(std::min(pair.find('=') + 1, pair.size()));
    if (value.size() < kShortestSecret) continue;
    const auto decoded = http::percent_decode(value);
    if (text.find(value) != std::string_view::npos) return true;
    if (decoded && text.find(*decoded) != std::string_view::npos) return true;
  }
  return false;
}

// ": the server's words (request ID)", as far as there are any.
std::string told_by_server(const FailedAnswer& answer) {
  std::string out;
  const std::string message = server_message(answer);
  if (!message.empty() && !repeats_query(message, answer.url.query)) {
    out += ": " + printable(message, kMaxShownBytes);
  }
  for (const std::string_view name : {"X-Request-Id", "X-Amzn-Trace-Id", "X-Amz-Cf-Id"}) {
    const std::string id = field(answer.head, name);
    if (id.empty()) continue;
    return out + fmt::format(" (request {})", printable(id, kMaxShownBytes));
  }
  return out;
}

// What the rules look at.
struct Facts {
  int status;
  std::string code;
  std::string message;
  bool token_sent;
};

// One line of the table: when it applies, and what it means. {0} is the endpoint, {1} the
// repository's id.
struct Rule {
  bool (*applies)(const Facts&);
  ErrorCode code;
  std::string_view meaning;
  std::string_view remedy;
};

constexpr std::string_view kInvalidCredentials = "Invalid credentials in Authorization header";
constexpr std::string_view kDisabled = "Access to this resource is disabled.";

constexpr std::array kRules = {
    Rule{[](const Facts& f) { return f.code == "RevisionNotFound"; }, ErrorCode::kNotFound,
         "{1} has no such revision", "the branches and tags are listed at {0}/{1}/tree/main"},
    Rule{[](const Facts& f) { return f.code == "EntryNotFound"; }, ErrorCode::kNotFound,
         "{1} has no such file at that revision", "the files are listed at {0}/{1}/tree/main"},
    Rule{[](const Facts& f) { return f.code == "GatedRepo" && f.status == 401; },
         ErrorCode::kPermission, "{1} is gated and no valid token was sent",
         "accept the conditions at {0}/{1}, then set HF_TOKEN"},
    Rule{[](const Facts& f) { return f.code == "GatedRepo"; }, ErrorCode::kPermission,
         "{1} is gated and the token's owner is not on its access list",
         "ask for access at {0}/{1}"},
    Rule{[](const Facts& f) { return f.message == kDisabled; }, ErrorCode::kPermission,
         "{1} has been disabled", "its page says why: {0}/{1}"},
    Rule{[](const Facts& f) {
           return f.status == 401 && f.message.starts_with(kInvalidCredentials);
         },
         ErrorCode::kPermission,
         "the token is wrong or has expired, which closes public models too",
         "set HF_TOKEN to a valid token, or unset it (a saved one lies in HF_HOME/token)"},
    Rule{[](const Facts& f) { return f.code == "RepoNotFound" || f.status == 401; },
         ErrorCode::kNotFound, "there is no model {1}, or it is private",
         "check the name; for a private model set HF_TOKEN to the token of a member"},
    Rule{[](const Facts& f) { return f.status == 404 || f.status == 410; }, ErrorCode::kNotFound,
         "{1} was not found", "check the name and the revision"},
    Rule{[](const Facts& f) { return f.status == 403; }, ErrorCode::kPermission,
         "access to {1} is refused", "give the token of HF_TOKEN read access to this repository"},
    Rule{[](const Facts& f) { return f.status == 429 && !f.token_sent; }, ErrorCode::kUnavailable,
         "the Hub's rate limit for this address is used up",
         "set HF_TOKEN, which has a limit of its own, or wait five minutes"},
    Rule{[](const Facts& f) { return f.status == 429; }, ErrorCode::kUnavailable,
         "the Hub's rate limit is used up", "wait five minutes"},
    Rule{[](const Facts& f) { return http::is_transient_status(f.status); },
         ErrorCode::kUnavailable, "the Hub is not able to answer just now", "try again later"},
    Rule{[](const Facts& f) { return f.status == 451; }, ErrorCode::kPermission,
         "{1} is blocked for legal reasons", "its page says why: {0}/{1}"},
};

}  // namespace

Error hub_error(const FailedAnswer& answer, const HubQuestion& question) {
  const Facts facts{.status = answer.head.status,
                    .code = field(answer.head, "X-Error-Code"),
                    .message = server_message(answer),
                    .token_sent = question.token_sent};
  const auto rule =
      std::ranges::find_if(kRules, [&](const Rule& candidate) { return candidate.applies(facts); });
  const std::string id = printable(question.repo_id);
  const std::string where =
      fmt::format("{} answered {}{}", answer.url.display(), facts.status, told_by_server(answer));
  if (rule == kRules.end()) return {.code = ErrorCode::kUnsupported, .message = where};
  const auto fill = [&](std::string_view text) {
    return fmt::format(fmt::runtime(text), printable(question.endpoint), id);
  };
  return {.code = rule->code,
          .message = fmt::format("{}: {}", fill(rule->meaning), where),
          .remedy = fill(rule->remedy)};
}

Error content_error(const FailedAnswer& answer) {
  const int status = answer.head.status;
  Error error{.code = ErrorCode::kUnsupported,
              .message = fmt::format("{} answered {}{}", answer.url.display(), status,
                                     told_by_server(answer))};
  if (status == 401 || status == 403 || status == 451) {
    error.code = ErrorCode::kPermission;
    error.remedy = "check that the address may be read from here";
  } else if (status == 404 || status == 410) {
    error.code = ErrorCode::kNotFound;
    error.remedy = "check the address";
  } else if (http::is_transient_status(status)) {
    error.code = ErrorCode::kUnavailable;
    error.remedy = "try again later";
  }
  return error;
}

Error with_allow_list(Error error) {
  error.remedy =
      "a firewall or proxy may block the hosts that serve the files; let through huggingface.co, "
      "us.aws.cdn.hf.co, us.gcp.cdn.hf.co, cas-bridge.xethub.hf.co, cas-server.xethub.hf.co, "
      "cas-server.xethub-eu.hf.co, transfer.xethub.hf.co, transfer.xethub-eu.hf.co, "
      "cdn-lfs-us-1.hf.co and cdn-lfs-eu-1.hf.co";
  return error;
}

}  // namespace gridscope::store
