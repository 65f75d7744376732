#pragma once

// URLs, through libcurl's URL parser, in the few ways that are needed here.

#include <string>
#include <string_view>

#include "gridscope/core/result.hpp"

namespace gridscope::http {

// An absolute http or https URL, split. A value: change parts by making a new one.
struct Url {
  std::string scheme;  // "http" or "https"
  std::string host;    // lower case
  int port = 0;        // explicit or the scheme's default
  std::string path;    // starts with '/', percent-encoded as given
  std::string query;   // without '?', as given

  // "https://host[:port]", the port left out when it is the default: what credentials are bound to.
  [[nodiscard]] std::string origin() const;
  // The whole URL, for sending.
  [[nodiscard]] std::string text() const;
  // For people and logs: origin and path, the query replaced by "?..." when there is one. Signed
  // URLs are secrets, so nothing else may ever be printed.
  [[nodiscard]] std::string display() const;

  friend bool operator==(const Url&, const Url&) = default;
};

// Errors: kInvalidArgument for anything but an absolute http(s) URL with a host, and for one that
// carries user name or password (which would end up in logs). A fragment is dropped.
[[nodiscard]] Result<Url> parse_url(std::string_view text);

// `reference` (absolute or relative, as in a Location header) seen from `base`; its query is kept.
[[nodiscard]] Result<Url> resolve_url(const Url& base, std::string_view reference);

// Percent-encodes everything but A-Z a-z 0-9 - . _ ~ ; a path segment when `keep` is empty, a path
// when it is "/".
[[nodiscard]] std::string percent_encode(std::string_view text, std::string_view keep = {});

// Errors: kInvalidArgument on a malformed escape.
[[nodiscard]] Result<std::string> percent_decode(std::string_view text);

}  // namespace gridscope::http
