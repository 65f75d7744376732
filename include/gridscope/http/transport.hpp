#pragma once

// HTTP requests as an interface. One exchange is one request and one response: no redirect is
// followed, nothing is retried, no credential is added. Those are decisions of the layers above,
// where they can be seen and tested.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "gridscope/core/result.hpp"
#include "gridscope/http/url.hpp"

namespace gridscope::http {

struct Header {
  std::string name;
  std::string value;
};

// Response headers in order of arrival; names compare without case.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<Header> headers) : headers_(headers) {}
  void add(std::string name, std::string value);
  // The first value of that name, or null.
  [[nodiscard]] const std::string* find(std::string_view name) const;
  [[nodiscard]] std::span<const Header> all() const { return headers_; }

 private:
  std::vector<Header> headers_;
};

enum class Method : std::uint8_t { kGet, kHead, kPost };
[[nodiscard]] std::string_view method_name(Method method);

struct Request {
  Method method = Method::kGet;
  Url url;
  std::vector<Header> headers = {};
  std::string body = {};
};

struct ResponseHead {
  int status = 0;
  Headers headers;
};

enum class HostName : std::uint8_t { kResolved, kUnresolved };

// Why an exchange ended without a whole response. To callers it is an Error; that a name was not
// found is told apart for the client alone, which has less patience with it.
struct SendError : Error {
  HostName host = HostName::kResolved;  // of the server, or of the proxy asked in its place
};
using SendResult = tl::expected<ResponseHead, SendError>;

// What a sink wants after a piece of the body.
enum class Flow : std::uint8_t {
  kMore,
  kEnough,  // end the transfer here; that is no failure
};

// Takes the body of one response as it arrives, on the sender's thread. While it works no more is
// read.
class BodySink {
 public:
  virtual ~BodySink() = default;
  // Before the body. Errors end the exchange with that error.
  [[nodiscard]] virtual Result<Flow> on_head(const ResponseHead& head) = 0;
  [[nodiscard]] virtual Result<Flow> on_body(std::span<const std::byte> bytes) = 0;
};

// Thread-safe: many exchanges at once, each from its own thread.
class Transport {
 public:
  virtual ~Transport() = default;

  // Returns once the response has ended, whatever its status.
  // Errors: kUnavailable (unknown host, no connection, reset, ended early), kTimeout (stalled),
  // kPermission (TLS verification, proxy authentication), kCorrupt (no HTTP), kLimit (headers too
  // long), kCancelled, kInvalidArgument (a request header with a line break), and those of the
  // sink. Messages carry no query string and no header value.
  [[nodiscard]] virtual SendResult send(const Request& request, BodySink& sink,
                                        const std::stop_token& stop) = 0;
};

}  // namespace gridscope::http
