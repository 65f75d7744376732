#pragma once

// What all requests to one repository share: which host may see the token, which redirects are
// followed, and which warnings have been given already.

#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/core/result.hpp"
#include "gridscope/http/client.hpp"
#include "gridscope/http/url.hpp"
#include "gridscope/store/context.hpp"

namespace gridscope::store {

inline constexpr int kMaxRedirects = 8;

// Thread-safe. The context's client and observer must outlive it.
class RemoteSession {
 public:
  enum class Kind : std::uint8_t { kHub, kWeb };

  // `home` is the Hub's endpoint or a URL of the web server. The context's token is used for a Hub
  // only. Errors: kInvalidArgument for a home that is no URL, kUnavailable when offline or without
  // a client.
  [[nodiscard]] static Result<std::shared_ptr<RemoteSession>> make(Kind kind, std::string_view home,
                                                                   const StoreContext& context);

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] bool is_hub() const { return kind_ == Kind::kHub; }
  [[nodiscard]] http::Client& client() const { return client_; }
  [[nodiscard]] std::size_t connections() const { return connections_; }
  // The Hub's endpoint, without a trailing slash.
  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }

  // Whether `url` is one of this place's own: the home's origin or, for a Hub, the Hub itself, to
  // which mirrors send back. Only answers from there say what a file is.
  [[nodiscard]] bool is_own(const http::Url& url) const;
  // The Authorization header when `url` has the home's origin and there is a token, else nothing.
  // Every request takes its headers from here, so no other host ever sees the token.
  [[nodiscard]] std::vector<http::Header> headers_for(const http::Url& url) const;
  [[nodiscard]] bool sends_token_to(const http::Url& url) const;

  // Where the redirect `head`, answered by `from`, leads. Errors: kCorrupt without a usable
  // Location, kPermission when it leads from https to http.
  [[nodiscard]] Result<http::Url> redirect_target(const http::Url& from,
                                                  const http::ResponseHead& head) const;

  // Passes the Hub's own warnings (X-HF-Warning) on, each once.
  void note_warnings(const http::ResponseHead& head);
  // One Warning event for each message of a code.
  void warn_once(std::string_view code, std::string_view message, std::string_view remedy);

 private:
  RemoteSession(Kind kind, http::Url home, const StoreContext& context);

  const Kind kind_;
  const http::Url home_;
  const std::string endpoint_;
  const std::string token_;
  http::Client& client_;
  Observer& observer_;
  const std::size_t connections_;
  std::mutex mutex_;
  std::set<std::string> warned_;
};

// "the answer came from no Hub" for an answer of `url` that lacks `what`.
[[nodiscard]] Error not_a_hub(const RemoteSession& session, const http::Url& url,
                              std::string_view what);

}  // namespace gridscope::store
