#pragma once

// A loopback HTTP/1.1 server whose faults are data: what to answer, and after how many bytes to
// drop, reset, stall or pause. It listens on 127.0.0.1, so that "127.0.0.1" and "localhost" are two
// hosts to a client and one server to the test. Every request is kept for assertions. It shares no
// code with the client under test.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gridscope::test {

struct HttpField {
  std::string name;
  std::string value;
};

struct HttpRequest {
  std::string method;
  std::string target;  // as sent: path and query
  std::vector<HttpField> fields;
  std::string body;

  // The first field of that name, case ignored, or null.
  [[nodiscard]] const std::string* find(std::string_view name) const;
  // Its value, or "".
  [[nodiscard]] std::string field(std::string_view name) const;
  // The target before and after '?'.
  [[nodiscard]] std::string path() const;
  [[nodiscard]] std::string query() const;
  // The Host field without its port: "127.0.0.1" or "localhost".
  [[nodiscard]] std::string host() const;
  [[nodiscard]] bool has_authorization() const { return find("Authorization") != nullptr; }
  // The Range field, "bytes=0-7", or "".
  [[nodiscard]] std::string range() const { return field("Range"); }
};

struct HttpFault {
  enum class Kind : std::uint8_t {
    kNone,
    kDrop,   // close the connection in good order
    kReset,  // close it with a TCP reset
    kStall,  // send nothing more until the client goes away
    kPause,  // send nothing for `pause`, then go on
  };
  // Where `after` starts to count.
  enum class From : std::uint8_t { kBody, kResponse };

  Kind kind = Kind::kNone;
  std::uint64_t after = 0;  // bytes that still go out; nothing happens when the response is shorter
  From from = From::kBody;
  std::chrono::milliseconds pause{0};
};

struct HttpReply {
  int status = 200;
  // Content-Length is added unless a field of that name is here (a wrong one is sent as it is), or
  // the framing is not by length.
  std::vector<HttpField> fields = {};
  std::string body = {};
  enum class Framing : std::uint8_t { kLength, kChunked, kUntilClose } framing = Framing::kLength;
  // Not empty: these bytes are sent instead of a response and the connection is closed.
  std::string raw = {};
  HttpFault fault = {};
  std::chrono::milliseconds delay{0};  // before the first byte
};

// What a correct server answers to a GET or HEAD of `content`: 200, 206 or 416.
[[nodiscard]] HttpReply serve_content(const HttpRequest& request, std::string_view content);

struct HttpServerOptions {
  int port = 0;                               // 0: any that is free
  std::chrono::milliseconds latency{0};       // added to every request
  std::chrono::milliseconds upload_pause{0};  // before each 16 KiB of a request's body
  enum class Security : std::uint8_t { kPlain, kTls } security = Security::kPlain;
};

class HttpServer {
 public:
  // Called for one request at a time, so that it may keep state without a lock.
  using Handler = std::function<HttpReply(const HttpRequest&)>;

  explicit HttpServer(Handler handler, HttpServerOptions options = {});
  // Ends all connections, stalled ones too.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] int port() const;
  // "http://127.0.0.1:PORT" + path, and the same server under its other name. https with TLS.
  [[nodiscard]] std::string url(std::string_view path = "/") const;
  [[nodiscard]] std::string localhost_url(std::string_view path = "/") const;
  // TLS: a PEM file with the certificate made for this run, good for both names. Removed at the
  // end.
  [[nodiscard]] std::string certificate_file() const;

  // All requests so far, in order of arrival.
  [[nodiscard]] std::vector<HttpRequest> requests() const;
  void forget_requests();
  [[nodiscard]] std::size_t connections_accepted() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gridscope::test
