#include "support/http_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <condition_variable>
#include <csignal>
#include <list>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "support/http_server_stream.hpp"

namespace gridscope::test {
namespace {

using std::chrono::milliseconds;

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

const std::string* find_field(const std::vector<HttpField>& fields, std::string_view name) {
  const auto it = std::ranges::find_if(
      fields, [&](const HttpField& field) { return same_name(field.name, name); });
  return it == fields.end() ? nullptr : &it->value;
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 206:
      return "Partial Content";
    case 302:
      return "Found";
    case 307:
      return "Temporary Redirect";
    case 404:
      return "Not Found";
    case 416:
      return "Range Not Satisfiable";
    default:
      return "Answer";
  }
}

// Bytes of a connection that were read but not yet used.
class RequestReader {
 public:
  RequestReader(Stream& stream, milliseconds upload_pause)
      : stream_(stream), upload_pause_(upload_pause) {}

  // The next request, or empty when the client is gone.
  std::optional<HttpRequest> next() {
    while (pending_.find("\r\n\r\n") == std::string::npos) {
      constexpr char kTlsHandshake = 0x16;
      if (!read_more() || pending_.front() == kTlsHandshake) return std::nullopt;
    }
    HttpRequest request = parse_head(take(pending_.find("\r\n\r\n") + 4));
    const std::uint64_t length = parse_number(request.field("Content-Length")).value_or(0);
    while (pending_.size() < length) {
      std::this_thread::sleep_for(upload_pause_);
      if (!read_more()) return std::nullopt;
    }
    request.body = take(length);
    return request;
  }

 private:
  bool read_more() {
    std::array<char, 16384> buffer{};
    const std::size_t n = stream_.read(buffer);
    pending_.append(buffer.data(), n);
    return n > 0;
  }

  std::string take(std::size_t n) {
    std::string taken = pending_.substr(0, n);
    pending_.erase(0, n);
    return taken;
  }

  static HttpRequest parse_head(std::string_view head) {
    HttpRequest request;
    const std::string_view first = head.substr(0, head.find("\r\n"));
    const std::size_t space = first.find(' ');
    request.method = first.substr(0, space);
    request.target = first.substr(space + 1, first.rfind(' ') - space - 1);
    head.remove_prefix(first.size() + 2);
    while (head != "\r\n") {
      const std::string_view line = head.substr(0, head.find("\r\n"));
      const std::size_t colon = line.find(':');
      const std::size_t value = std::min(line.find_first_not_of(' ', colon + 1), line.size());
      request.fields.push_back(
          {std::string(line.substr(0, colon)), std::string(line.substr(value))});
      head.remove_prefix(line.size() + 2);
    }
    return request;
  }

  Stream& stream_;
  milliseconds upload_pause_;
  std::string pending_;
};

std::string response_head(const HttpReply& reply) {
  using Framing = HttpReply::Framing;
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", reply.status, reason_phrase(reply.status));
  for (const HttpField& field : reply.fields)
    head += fmt::format("{}: {}\r\n", field.name, field.value);
  if (reply.framing == Framing::kChunked) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (reply.framing == Framing::kUntilClose) {
    head += "Connection: close\r\n";
  } else if (find_field(reply.fields, "Content-Length") == nullptr) {
    head += fmt::format("Content-Length: {}\r\n", reply.body.size());
  }
  return head + "\r\n";
}

std::string in_one_chunk(std::string_view body) {
  if (body.empty()) return "0\r\n\r\n";
  return fmt::format("{:x}\r\n{}\r\n0\r\n\r\n", body.size(), body);
}

}  // namespace

const std::string* HttpRequest::find(std::string_view name) const {
  return find_field(fields, name);
}

std::string HttpRequest::field(std::string_view name) const {
  const std::string* value = find(name);
  return value == nullptr ? "" : *value;
}

std::string HttpRequest::path() const {
  return target.substr(0, target.find('?'));
}

std::string HttpRequest::query() const {
  const std::size_t mark = target.find('?');
  return mark == std::string::npos ? "" : target.substr(mark + 1);
}

std::string HttpRequest::host() const {
  const std::string host = field("Host");
  return host.substr(0, host.rfind(':'));
}

HttpReply serve_content(const HttpRequest& request, std::string_view content) {
  const std::string range = request.range();
  const std::size_t dash = range.find('-');
  if (!range.starts_with("bytes=") || dash == std::string::npos) {
    return {.fields = {{"Accept-Ranges", "bytes"}}, .body = std::string(content)};
  }
  const std::uint64_t first = parse_number(std::string_view(range).substr(6, dash - 6)).value_or(0);
  const std::uint64_t asked_last =
      parse_number(std::string_view(range).substr(dash + 1)).value_or(content.size());
  if (first >= content.size()) {
    return {.status = 416,
            .fields = {{"Content-Range", fmt::format("bytes */{}", content.size())}},
            .body = "<html>range not satisfiable</html>"};
  }
  const std::uint64_t last = std::min<std::uint64_t>(asked_last, content.size() - 1);
  return {.status = 206,
          .fields = {{"Content-Range", fmt::format("bytes {}-{}/{}", first, last, content.size())}},
          .body = std::string(content.substr(first, last - first + 1))};
}

struct HttpServer::State {
  Handler handler;
  HttpServerOptions options;
  std::unique_ptr<TlsIdentity> identity;
  int listener = -1;
  int port = 0;

  mutable std::mutex mutex;  // guards what follows, and calls of the handler by its own lock
  std::condition_variable stopped;
  bool stopping = false;
  std::vector<HttpRequest> log;
  std::set<int> sockets;
  std::size_t accepted = 0;
  std::mutex handler_mutex;

  std::list<std::thread> connections;  // the acceptor's until it has ended
  std::thread acceptor;

  void listen_on_loopback();
  void accept_connections();
  void serve_socket(int socket);
  void serve(Stream& stream, int socket);
  // Both return whether the connection goes on.
  bool answer(Stream& stream, int socket, const HttpRequest& request);
  bool send(Stream& stream, int socket, std::string_view bytes, const HttpFault& fault,
            std::uint64_t& sent);
  bool strike(Stream& stream, int socket, const HttpFault& fault);
  bool wait(milliseconds duration);
};

void HttpServer::State::listen_on_loopback() {
  listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (options.upload_pause > milliseconds::zero()) {
    // Else the kernel would take megabytes at once, and the client see no slowness.
    const int small = 64 * 1024;
    ::setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
  }
  if (options.port != 0) {
    const int yes = 1;
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(options.port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener, generic, size) != 0 || ::listen(listener, SOMAXCONN) != 0 ||
      ::getsockname(listener, generic, &size) != 0) {
    throw std::runtime_error("the test server cannot listen on 127.0.0.1");
  }
  port = ntohs(address.sin_port);
}

void HttpServer::State::accept_connections() {
  while (true) {
    const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    {
      const std::scoped_lock lock(mutex);
      if (stopping) {
        ::close(socket);
        return;
      }
      sockets.insert(socket);
      ++accepted;
    }
    connections.emplace_back([this, socket] { serve_socket(socket); });
  }
}

void HttpServer::State::serve_socket(int socket) {
  // OpenSSL writes with write(2), which would raise SIGPIPE when the client has gone.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));

  const std::unique_ptr<Stream> stream =
      identity == nullptr ? make_plain_stream(socket) : identity->accept(socket);
  if (stream != nullptr) serve(*stream, socket);
  const std::scoped_lock lock(mutex);
  sockets.erase(socket);
  ::close(socket);
}

void HttpServer::State::serve(Stream& stream, int socket) {
  RequestReader reader(stream, options.upload_pause);
  while (const std::optional<HttpRequest> request = reader.next()) {
    {
      const std::scoped_lock lock(mutex);
      log.push_back(*request);
    }
    if (!answer(stream, socket, *request)) return;
  }
}

bool HttpServer::State::answer(Stream& stream, int socket, const HttpRequest& request) {
  const HttpReply reply = [&] {
    const std::scoped_lock lock(handler_mutex);
    return handler(request);
  }();
  if (!wait(options.latency + reply.delay)) return false;
  if (!reply.raw.empty()) {
    static_cast<void>(stream.write(reply.raw));
    return false;
  }
  const std::string head = response_head(reply);
  HttpFault fault = reply.fault;
  if (fault.from == HttpFault::From::kBody) fault.after += head.size();
  const bool chunked = reply.framing == HttpReply::Framing::kChunked;
  const std::string framed = chunked ? in_one_chunk(reply.body) : std::string();
  std::string_view body = chunked ? framed : reply.body;
  if (request.method == "HEAD") body = {};
  std::uint64_t sent = 0;
  return send(stream, socket, head, fault, sent) && send(stream, socket, body, fault, sent) &&
         reply.framing != HttpReply::Framing::kUntilClose &&
         !same_name(request.field("Connection"), "close");
}

bool HttpServer::State::send(Stream& stream, int socket, std::string_view bytes,
                             const HttpFault& fault, std::uint64_t& sent) {
  // Strikes before the byte at `after`, wherever that byte lies: in the head or in the body.
  const bool strikes = fault.kind != HttpFault::Kind::kNone && sent <= fault.after &&
                       fault.after < sent + bytes.size();
  const std::size_t before = strikes ? fault.after - sent : bytes.size();
  sent += bytes.size();
  if (!stream.write(bytes.substr(0, before))) return false;
  return !strikes || (strike(stream, socket, fault) && stream.write(bytes.substr(before)));
}

bool HttpServer::State::strike(Stream& stream, int socket, const HttpFault& fault) {
  switch (fault.kind) {
    case HttpFault::Kind::kPause:
      return wait(fault.pause);
    case HttpFault::Kind::kStall: {
      std::array<char, 1024> ignored{};
      while (stream.read(ignored) > 0) {
      }
      return false;
    }
    case HttpFault::Kind::kReset: {
      const linger at_once{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
      return false;
    }
    case HttpFault::Kind::kDrop:
    case HttpFault::Kind::kNone:
      break;
  }
  return false;
}

bool HttpServer::State::wait(milliseconds duration) {
  std::unique_lock lock(mutex);
  if (duration <= milliseconds::zero()) return !stopping;
  return !stopped.wait_for(lock, duration, [this] { return stopping; });
}

HttpServer::HttpServer(Handler handler, HttpServerOptions options)
    : state_(std::make_unique<State>()) {
  state_->handler = std::move(handler);
  state_->options = options;
  if (options.security == HttpServerOptions::Security::kTls) {
    state_->identity = std::make_unique<TlsIdentity>();
  }
  state_->listen_on_loopback();
  state_->acceptor = std::thread([state = state_.get()] { state->accept_connections(); });
}

HttpServer::~HttpServer() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stopping = true;
    for (const int socket : state_->sockets) ::shutdown(socket, SHUT_RDWR);
  }
  state_->stopped.notify_all();
  ::shutdown(state_->listener, SHUT_RDWR);
  state_->acceptor.join();
  for (std::thread& connection : state_->connections) connection.join();
  ::close(state_->listener);
}

int HttpServer::port() const {
  return state_->port;
}

std::string HttpServer::url(std::string_view path) const {
  return fmt::format("{}://127.0.0.1:{}{}", state_->identity ? "https" : "http", port(), path);
}

std::string HttpServer::localhost_url(std::string_view path) const {
  return fmt::format("{}://localhost:{}{}", state_->identity ? "https" : "http", port(), path);
}

std::string HttpServer::certificate_file() const {
  return state_->identity ? state_->identity->certificate_file() : "";
}

std::vector<HttpRequest> HttpServer::requests() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->log;
}

void HttpServer::forget_requests() {
  const std::scoped_lock lock(state_->mutex);
  state_->log.clear();
}

std::size_t HttpServer::connections_accepted() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->accepted;
}

}  // namespace gridscope::test
