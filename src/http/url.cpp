#include "gridscope/http/url.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "gridscope/core/text.hpp"
#include "gridscope/http/fields.hpp"

namespace gridscope::http {
namespace {

constexpr std::size_t kMaxUrlBytes = 16'384;  // signed URLs take about 2 KiB
constexpr std::size_t kMaxDisplayBytes = 400;
constexpr std::uint64_t kMaxPort = 65'535;

struct HandleDeleter {
  void operator()(CURLU* handle) const { curl_url_cleanup(handle); }
};
using Handle = std::unique_ptr<CURLU, HandleDeleter>;

int default_port(std::string_view scheme) {
  return scheme == "https" ? 443 : 80;
}

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// A DNS name, an IPv4 address, or an IPv6 address in brackets: nothing that could read as another
// part of a URL when it is written out again.
bool is_plain_host(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) {
    return std::ranges::all_of(host.substr(1, host.size() - 2),
                               [](char c) { return is_alphanumeric(c) || c == ':' || c == '.'; });
  }
  return !host.empty() && std::ranges::all_of(host, [](char c) {
    return is_alphanumeric(c) || c == '-' || c == '.' || c == '_';
  });
}

std::string part(CURLU* handle, CURLUPart which, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(handle, which, &text, flags) != CURLUE_OK) return {};
  std::string copy = text;
  curl_free(text);
  return copy;
}

// Errors never quote the text, which may hold a password or a signature.
Result<Url> split(CURLU* handle) {
  const std::string scheme = part(handle, CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("URL scheme {} is not http or https", quote(scheme)));
  }
  if (!part(handle, CURLUPART_USER).empty() || !part(handle, CURLUPART_PASSWORD).empty()) {
    return fail(ErrorCode::kInvalidArgument, "the URL carries a user name or password",
                "pass credentials through the environment");
  }
  Url url{.scheme = scheme,
          .host = part(handle, CURLUPART_HOST),
          .port = 0,
          .path = part(handle, CURLUPART_PATH),
          .query = part(handle, CURLUPART_QUERY)};
  std::ranges::transform(url.host, url.host.begin(), to_lower);
  if (!is_plain_host(url.host)) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("{} is not a host name", quote(url.host)),
                "write international names in their xn-- form");
  }
  const auto port = parse_digits(part(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT));
  if (!port || *port == 0 || *port > kMaxPort) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("the URL's port is not 1 to {}", kMaxPort));
  }
  url.port = static_cast<int>(*port);
  return url;
}

Result<Handle> make_handle() {
  Handle handle(curl_url());
  if (handle == nullptr) return fail(ErrorCode::kInternal, "libcurl gave no URL handle");
  return handle;
}

Status set_url(CURLU* handle, std::string_view text, unsigned flags) {
  if (text.size() > kMaxUrlBytes) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("the URL is longer than {} bytes", with_thousands(kMaxUrlBytes)));
  }
  if (text.find('\0') != std::string_view::npos) {
    return fail(ErrorCode::kInvalidArgument, "the URL holds a NUL byte");
  }
  const CURLUcode code = curl_url_set(handle, CURLUPART_URL, std::string(text).c_str(), flags);
  if (code == CURLUE_OK) return {};
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("not an absolute http or https URL: {}", curl_url_strerror(code)));
}

// libcurl also takes "http:/host" and "http:///host", which nobody means.
bool has_authority(std::string_view text) {
  const std::size_t slashes = text.find("://");
  return slashes != std::string_view::npos && !text.substr(slashes + 3).starts_with('/');
}

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

}  // namespace

std::string Url::origin() const {
  if (port == default_port(scheme)) return fmt::format("{}://{}", scheme, host);
  return fmt::format("{}://{}:{}", scheme, host, port);
}

std::string Url::text() const {
  return query.empty() ? origin() + path : fmt::format("{}{}?{}", origin(), path, query);
}

std::string Url::display() const {
  return printable(origin() + path, kMaxDisplayBytes) + (query.empty() ? "" : "?...");
}

Result<Url> parse_url(std::string_view text) {
  if (!has_authority(text)) {
    return fail(ErrorCode::kInvalidArgument, "not an absolute http or https URL",
                "write it as https://HOST/PATH");
  }
  GRIDSCOPE_TRY(const Handle handle, make_handle());
  GRIDSCOPE_CHECK(set_url(handle.get(), text, CURLU_PATH_AS_IS));
  return split(handle.get());
}

Result<Url> resolve_url(const Url& base, std::string_view reference) {
  GRIDSCOPE_TRY(const Handle handle, make_handle());
  GRIDSCOPE_CHECK(set_url(handle.get(), base.text(), CURLU_PATH_AS_IS));
  // Servers do send raw spaces and UTF-8 in Location.
  GRIDSCOPE_CHECK(set_url(handle.get(), reference, CURLU_URLENCODE | CURLU_ALLOW_SPACE));
  return split(handle.get());
}

std::string percent_encode(std::string_view text, std::string_view keep) {
  constexpr std::string_view kUnreserved = "-._~";
  std::string out;
  for (const char c : text) {
    const bool plain = is_alphanumeric(c) || kUnreserved.find(c) != std::string_view::npos ||
                       keep.find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

Result<std::string> percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const auto high = i + 1 < text.size() ? hex_digit(text[i + 1]) : std::nullopt;
    const auto low = i + 2 < text.size() ? hex_digit(text[i + 2]) : std::nullopt;
    if (!high || !low) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} has a malformed %-escape at byte {}", quote(text), i));
    }
    out += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return out;
}

}  // namespace gridscope::http
