#include "gridscope/store/remote_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "gridscope/core/text.hpp"
#include "gridscope/http/fields.hpp"

namespace gridscope::store {
namespace {

// Mirrors answer some requests with a redirect to these.
constexpr std::array<std::string_view, 2> kHubHosts = {"huggingface.co", "hf.co"};

constexpr std::size_t kMaxWarnings = 100;

std::string without_slash(std::string text) {
  while (text.ends_with('/')) text.pop_back();
  return text;
}

}  // namespace

Result<std::shared_ptr<RemoteSession>> RemoteSession::make(Kind kind, std::string_view home,
                                                           const StoreContext& context) {
  if (context.hub.offline) {
    return fail(ErrorCode::kUnavailable, "the network is not to be used: HF_HUB_OFFLINE is set",
                "unset HF_HUB_OFFLINE (and TRANSFORMERS_OFFLINE)");
  }
  if (context.client == nullptr) return fail(ErrorCode::kUnavailable, "there is no HTTP client");
  GRIDSCOPE_TRY(http::Url url, http::parse_url(home));
  return std::shared_ptr<RemoteSession>(new RemoteSession(kind, std::move(url), context));
}

RemoteSession::RemoteSession(Kind kind, http::Url home, const StoreContext& context)
    : kind_(kind),
      home_(std::move(home)),
      endpoint_(without_slash(home_.origin() + home_.path)),
      token_(kind == Kind::kHub ? context.hub.token : ""),
      client_(*context.client),
      observer_(*context.observer),
      connections_(std::max<std::size_t>(context.connections, 1)) {}

bool RemoteSession::is_own(const http::Url& url) const {
  if (url.origin() == home_.origin()) return true;
  return is_hub() && url.scheme == "https" &&
         std::ranges::find(kHubHosts, url.host) != kHubHosts.end();
}

bool RemoteSession::sends_token_to(const http::Url& url) const {
  return !token_.empty() && url.origin() == home_.origin();
}

std::vector<http::Header> RemoteSession::headers_for(const http::Url& url) const {
  if (!sends_token_to(url)) return {};
  return {{.name = "Authorization", .value = "Bearer " + token_}};
}

Result<http::Url> RemoteSession::redirect_target(const http::Url& from,
                                                 const http::ResponseHead& head) const {
  const std::string* location = head.headers.find("Location");
  if (location == nullptr) {
    return fail(ErrorCode::kCorrupt, fmt::format("{} answered with redirect {} without a Location",
                                                 from.display(), head.status));
  }
  auto target = http::resolve_url(from, *location);
  if (!target) {
    return fail(ErrorCode::kCorrupt, fmt::format("{} redirects to something that is no URL: {}",
                                                 from.display(), target.error().message));
  }
  if (from.scheme == "https" && target->scheme != "https") {
    return fail(ErrorCode::kPermission,
                fmt::format("{} redirects to plain http on {}", from.display(), target->host),
                "this is refused, since anybody on the way could change the bytes");
  }
  return target;
}

void RemoteSession::note_warnings(const http::ResponseHead& head) {
  for (const http::Header& header : head.headers.all()) {
    if (!http::equals_ignoring_case(header.name, "X-HF-Warning")) continue;
    const std::string_view text = header.value;
    const std::size_t topic_end = text.find(';');
    const std::string_view message =
        topic_end == std::string_view::npos ? text : http::trim_blanks(text.substr(topic_end + 1));
    warn_once("HUB_WARNING", printable(message, 400), "");
  }
}

void RemoteSession::warn_once(std::string_view code, std::string_view message,
                              std::string_view remedy) {
  {
    const std::scoped_lock lock(mutex_);
    if (warned_.size() >= kMaxWarnings) return;
    if (!warned_.insert(fmt::format("{} {}", code, message)).second) return;
  }
  observer_.on_event(Warning{.code = code, .message = message, .remedy = remedy});
}

Error not_a_hub(const RemoteSession& session, const http::Url& url, std::string_view what) {
  return {.code = ErrorCode::kUnsupported,
          .message = fmt::format("{} {}: this is no Hugging Face Hub", url.display(), what),
          .remedy = fmt::format("check HF_ENDPOINT (now {}) and any proxy or login page on the way",
                                printable(session.endpoint()))};
}

}  // namespace gridscope::store
