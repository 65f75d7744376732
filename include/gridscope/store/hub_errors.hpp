#pragma once

// From a response that is no success to an Error: what it means and what to do about it.

#include <string>
#include <string_view>

#include "gridscope/core/result.hpp"
#include "gridscope/http/transport.hpp"
#include "gridscope/http/url.hpp"

namespace gridscope::store {

struct FailedAnswer {
  const http::ResponseHead& head;
  std::string_view body;  // its beginning
  const http::Url& url;   // that gave the answer
};

// Whom was asked for what, as far as the remedy depends on it.
struct HubQuestion {
  std::string_view endpoint;
  std::string_view repo_id;
  bool token_sent = false;
};

// The Hub's answer, judged by X-Error-Code, then X-Error-Message, then the status, in the order of
// the reference client. The message carries the server's own words (never a page of HTML) and the
// request id.
[[nodiscard]] Error hub_error(const FailedAnswer& answer, const HubQuestion& question);

// The answer of a host that only serves content: a CDN or a plain web server. Its first line is
// shown unless it repeats something from the URL's query, which is a secret.
[[nodiscard]] Error content_error(const FailedAnswer& answer);

// `error`, met while talking to the content host of a Hub, with the hosts that a firewall must let
// through as its remedy.
[[nodiscard]] Error with_allow_list(Error error);

}  // namespace gridscope::store
