#include "gridscope/http/curl_transport.hpp"

// A line is what libcurl keeps for one sender at a time: its handles and the connections that they
// leave open. send() takes a line that has spoken to the host before, moves its bytes on the
// sender's own thread and calls the sink straight from libcurl's write callback, so that a byte is
// copied once on its way from libcurl's buffer to where the caller wants it, and what is done with
// it next is done where it still is in a cache. No thread waits for another, except for a line. A
// wake-up call is all that other threads ever do with a line that is in use; lines share what they
// know of names and TLS sessions.
//
// Stalls are measured here because libcurl's own limit counts whole seconds.

#include <curl/curl.h>
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "gridscope/core/text.hpp"
#include "gridscope/http/fields.hpp"

namespace gridscope::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr long kBufferBytes = 524'288;  // the most that libcurl allows: every call costs a poll
constexpr milliseconds kLongestPoll{1'000};
constexpr long kConnectionsOfLine = 4;  // several hosts take part in one download

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct MultiDeleter {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct ShareDeleter {
  void operator()(CURLSH* share) const { curl_share_cleanup(share); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, EasyDeleter>;
using Multi = std::unique_ptr<CURLM, MultiDeleter>;
using Share = std::unique_ptr<CURLSH, ShareDeleter>;
using List = std::unique_ptr<curl_slist, ListDeleter>;

// One request on its way, by a handle of the line that carries it.
struct Exchange {
  const Request& request;
  BodySink& sink;
  CURL* easy = nullptr;

  List header_list = {};
  std::array<char, CURL_ERROR_SIZE> curl_message = {};
  ResponseHead head = {};
  std::size_t header_bytes = 0;
  bool head_complete = false;
  bool enough = false;              // the sink wants no more
  std::optional<Error> error = {};  // why we ended it ourselves
  bool connected = false;
  bool moved = false;  // something arrived when libcurl looked last
  steady_clock::time_point last_activity = {};
  curl_off_t uploaded = 0;
};

std::string describe_request(const Request& request) {
  return fmt::format("{} {}", method_name(request.method), request.url.display());
}

// ---- callbacks: called by libcurl with the exchange ---------------------------------------------

// The sink's answer in libcurl's terms: all consumed, or an end with CURLE_WRITE_ERROR.
std::size_t verdict(Exchange& exchange, Result<Flow> flow, std::size_t consumed) {
  if (!flow) {
    exchange.error = std::move(flow).error();
  } else if (*flow == Flow::kEnough) {
    exchange.enough = true;
  } else {
    return consumed;
  }
  return CURL_WRITEFUNC_ERROR;
}

// "HTTP/1.1 206 Partial Content" -> 206.
int parse_status(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return 0;
  return static_cast<int>(parse_digits(line.substr(space + 1, 3)).value_or(0));
}

void add_header(Headers& headers, std::string_view line) {
  const std::size_t colon = line.find(':');
  const bool continues_the_last = line.starts_with(' ') || line.starts_with('\t');
  if (colon == std::string_view::npos || continues_the_last) return;
  headers.add(std::string(line.substr(0, colon)), std::string(trim_blanks(line.substr(colon + 1))));
}

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const std::size_t bytes = size * count;
  exchange.moved = true;
  exchange.header_bytes += bytes;
  if (exchange.header_bytes > kMaxHeaderBytes) {
    exchange.error = Error{ErrorCode::kLimit, fmt::format("response headers are longer than {}",
                                                          format_bytes(kMaxHeaderBytes))};
    return CURL_WRITEFUNC_ERROR;
  }
  if (exchange.head_complete) return bytes;  // trailers
  const std::string_view line(data, bytes);
  if (line.starts_with("HTTP/")) {
    exchange.head = {.status = parse_status(line), .headers = {}};
    return bytes;
  }
  if (!trim_blanks(line).empty()) {
    add_header(exchange.head.headers, line);
    return bytes;
  }
  constexpr int kFirstFinalStatus = 200;
  if (exchange.head.status < kFirstFinalStatus) return bytes;
  exchange.head_complete = true;
  return verdict(exchange, exchange.sink.on_head(exchange.head), bytes);
}

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const std::size_t bytes = size * count;
  exchange.moved = true;
  return verdict(exchange, exchange.sink.on_body(std::as_bytes(std::span(data, bytes))), bytes);
}

// The connection stands and the request is about to be sent: from here on silence is a stall.
int on_connected(void* user, char* /*ip*/, char* /*own_ip*/, int /*port*/, int /*own_port*/) {
  auto& exchange = *static_cast<Exchange*>(user);
  exchange.connected = true;
  exchange.last_activity = steady_clock::now();
  return CURL_PREREQFUNC_OK;
}

// ---- setting up an exchange ---------------------------------------------------------------------

Status check_header(const Header& header) {
  constexpr std::string_view kBreaks("\r\n\0", 3);
  if (header.name.empty() || header.name.find_first_of(kBreaks) != std::string::npos ||
      header.name.find(':') != std::string::npos ||
      header.value.find_first_of(kBreaks) != std::string::npos) {
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("request header {} has no name or holds a line break, which could smuggle "
                    "in another header",
                    quote(header.name)));
  }
  return {};
}

// libcurl's notation: "Name: value", "Name;" for an empty value, "Name:" to leave out its own.
Result<List> make_header_list(const Request& request) {
  std::vector<std::string> lines = {"Expect:"};  // a body of any size is sent at once
  bool has_content_type = false;
  for (const Header& header : request.headers) {
    GRIDSCOPE_CHECK(check_header(header));
    has_content_type |= equals_ignoring_case(header.name, "Content-Type");
    lines.push_back(header.value.empty() ? header.name + ";"
                                         : fmt::format("{}: {}", header.name, header.value));
  }
  if (!has_content_type) lines.emplace_back("Content-Type:");
  List list;
  for (const std::string& line : lines) {
    curl_slist* longer = curl_slist_append(list.get(), line.c_str());
    if (longer == nullptr) return fail(ErrorCode::kInternal, "out of memory for request headers");
    if (list == nullptr) list.reset(longer);  // later lines are hung on behind the first
  }
  return list;
}

void set_method(CURL* easy, const Request& request) {
  switch (request.method) {
    case Method::kGet:
      curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
      break;
    case Method::kHead:
      curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
      break;
    case Method::kPost:
      curl_easy_setopt(easy, CURLOPT_POST, 1L);
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(request.body.size()));
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
      break;
  }
}

void set_callbacks(CURL* easy, Exchange& exchange) {
  curl_easy_setopt(easy, CURLOPT_PRIVATE, &exchange);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange.curl_message.data());
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
  curl_easy_setopt(easy, CURLOPT_PREREQDATA, &exchange);
}

// Redirects, Accept-Encoding and cookies stay off, as libcurl has them by default.
void set_connection(CURL* easy, const TransportOptions& options) {
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, kBufferBytes);
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, options.connect_timeout.count());
  if (!options.proxy.empty()) curl_easy_setopt(easy, CURLOPT_PROXY, options.proxy.c_str());
  if (!options.ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, options.ca_file.c_str());
  if (!options.user_agent.empty()) {
    curl_easy_setopt(easy, CURLOPT_USERAGENT, options.user_agent.c_str());
  }
}

Status set_up(Exchange& exchange, const TransportOptions& options) {
  GRIDSCOPE_TRY(exchange.header_list, make_header_list(exchange.request));
  CURL* const easy = exchange.easy;
  curl_easy_reset(easy);
  curl_easy_setopt(easy, CURLOPT_URL, exchange.request.url.text().c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, exchange.header_list.get());
  set_method(easy, exchange.request);
  set_callbacks(easy, exchange);
  set_connection(easy, options);
  return {};
}

// ---- what an exchange comes to ------------------------------------------------------------------

constexpr std::string_view kTlsRemedy =
    "if a proxy of yours replaces certificates, add its own to those of the system; otherwise do "
    "not "
    "trust this connection";
constexpr std::string_view kProxyRemedy = "check user name and password in the proxy setting";

struct CurlFault {
  CURLcode curl;
  ErrorCode code;
  std::string_view what;
  std::string_view remedy = {};
  // libcurl's own message says more and is known to hold neither query nor header value.
  bool detailed = true;
};

constexpr std::array kFaults = {
    CurlFault{CURLE_COULDNT_RESOLVE_HOST, ErrorCode::kUnavailable, "host not found",
              "check the host name and the network"},
    CurlFault{CURLE_COULDNT_RESOLVE_PROXY, ErrorCode::kUnavailable, "proxy not found",
              "check the proxy setting", false},
    CurlFault{CURLE_COULDNT_CONNECT, ErrorCode::kUnavailable, "no connection",
              "check the network, the proxy setting and the firewall"},
    CurlFault{CURLE_PROXY, ErrorCode::kUnavailable, "the proxy gave no connection",
              "check the proxy setting", false},
    CurlFault{CURLE_OPERATION_TIMEDOUT, ErrorCode::kTimeout, "no connection in time"},
    CurlFault{CURLE_GOT_NOTHING, ErrorCode::kUnavailable, "connection closed without a response"},
    CurlFault{CURLE_PARTIAL_FILE, ErrorCode::kUnavailable, "connection closed within the body"},
    CurlFault{CURLE_RECV_ERROR, ErrorCode::kUnavailable, "connection lost"},
    CurlFault{CURLE_SEND_ERROR, ErrorCode::kUnavailable, "connection lost while sending"},
    CurlFault{CURLE_HTTP2, ErrorCode::kUnavailable, "HTTP/2 connection failed"},
    CurlFault{CURLE_HTTP2_STREAM, ErrorCode::kUnavailable, "HTTP/2 stream failed"},
    CurlFault{CURLE_SSL_CONNECT_ERROR, ErrorCode::kUnavailable, "TLS handshake failed",
              "check that the port speaks https"},
    CurlFault{CURLE_PEER_FAILED_VERIFICATION, ErrorCode::kPermission,
              "the server's certificate could not be verified", kTlsRemedy},
    CurlFault{CURLE_SSL_ISSUER_ERROR, ErrorCode::kPermission,
              "the server's certificate could not be verified", kTlsRemedy},
    CurlFault{CURLE_SSL_CACERT_BADFILE, ErrorCode::kPermission,
              "the file of trusted certificates could not be read", "check its name and rights"},
    CurlFault{CURLE_UNSUPPORTED_PROTOCOL, ErrorCode::kCorrupt, "the server does not speak HTTP"},
    CurlFault{CURLE_WEIRD_SERVER_REPLY, ErrorCode::kCorrupt, "the response is not HTTP", {}, false},
    CurlFault{
        CURLE_BAD_CONTENT_ENCODING, ErrorCode::kCorrupt, "the response is not HTTP", {}, false},
    // How libcurl ends where a header line or all headers outgrow its own buffers.
    CurlFault{CURLE_OUT_OF_MEMORY, ErrorCode::kLimit, "a response header is too long", {}, false},
};

// A proxy that refuses the tunnel shows up as a lost connection; its own status says more.
std::optional<Error> proxy_refusal(CURL* easy) {
  constexpr long kFirstErrorStatus = 400;
  constexpr long kProxyAuthentication = 407;
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &status);
  if (status < kFirstErrorStatus) return std::nullopt;
  const bool denied = status < 500;
  return Error{denied ? ErrorCode::kPermission : ErrorCode::kUnavailable,
               fmt::format("the proxy refused the connection with status {}", status),
               std::string(status == kProxyAuthentication ? kProxyRemedy : "")};
}

Error curl_error(const Exchange& exchange, CURLcode code) {
  if (code == CURLE_RECV_ERROR || code == CURLE_COULDNT_CONNECT) {
    if (auto refusal = proxy_refusal(exchange.easy)) return *std::move(refusal);
  }
  const auto* const fault = std::ranges::find(kFaults, code, &CurlFault::curl);
  if (fault == kFaults.end()) {
    return {ErrorCode::kUnavailable, fmt::format("transfer failed: {}", curl_easy_strerror(code))};
  }
  const std::string_view detail =
      fault->detailed ? std::string_view(exchange.curl_message.data()) : std::string_view();
  return {fault->code,
          detail.empty() ? std::string(fault->what)
                         : fmt::format("{} ({})", fault->what, printable(detail)),
          std::string(fault->remedy)};
}

SendResult outcome(Exchange& exchange, CURLcode code) {
  if (!exchange.error && (code == CURLE_OK || exchange.enough)) {
    if (exchange.head_complete) return std::move(exchange.head);
    exchange.error = Error{ErrorCode::kUnavailable, "the response ended within its headers"};
  }
  const bool unresolved = !exchange.error && (code == CURLE_COULDNT_RESOLVE_HOST ||
                                              code == CURLE_COULDNT_RESOLVE_PROXY);
  Error error = exchange.error ? *std::move(exchange.error) : curl_error(exchange, code);
  return tl::make_unexpected(
      SendError{with_context(std::move(error), describe_request(exchange.request)),
                unresolved ? HostName::kUnresolved : HostName::kResolved});
}

// ---- a line -------------------------------------------------------------------------------------

// OpenSSL writes with write(2), which raises SIGPIPE on a connection that is gone; CURLOPT_NOSIGNAL
// leaves that to us. While one of these lives its thread gets none.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }

  ~WithoutSigpipe() {
    constexpr std::timespec kNoWait = {};
    while (!was_pending_ && sigtimedwait(&pipe_, nullptr, &kNoWait) == -1 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_ = false;
};

class Line {
 public:
  Line(Multi multi, Easy easy, const TransportOptions& options)
      : options_(options), multi_(std::move(multi)), easy_(std::move(easy)) {}

  // Whether a connection to the host may still be open.
  [[nodiscard]] bool knows(std::string_view origin) const {
    return std::ranges::find(origins_, origin) != origins_.end();
  }

  SendResult send(const Request& request, BodySink& sink, const std::stop_token& stop) {
    Exchange exchange{.request = request, .sink = sink, .easy = easy_.get()};
    if (Status status = set_up(exchange, options_); !status) {
      exchange.error = std::move(status).error();
      return outcome(exchange, CURLE_FAILED_INIT);
    }
    const WithoutSigpipe guard;
    const std::stop_callback wake_up(stop, [this] { curl_multi_wakeup(multi_.get()); });
    curl_multi_add_handle(multi_.get(), exchange.easy);
    const CURLcode code = carry(exchange, stop);
    curl_multi_remove_handle(multi_.get(), exchange.easy);
    remember(request.url.origin(), code == CURLE_OK);
    return outcome(exchange, code);
  }

 private:
  // A host that refuses more connections must be asked over those that it granted.
  void remember(const std::string& origin, bool ended_well) {
    std::erase(origins_, origin);
    if (ended_well) origins_.push_back(origin);
  }

  // Moves bytes until the exchange has ended, whoever ended it.
  CURLcode carry(Exchange& exchange, const std::stop_token& stop) {
    while (true) {
      const auto now = steady_clock::now();
      if (stop.stop_requested()) {
        exchange.error = Error{ErrorCode::kCancelled, "cancelled"};
      } else if (is_stalled(exchange, now)) {
        exchange.error =
            Error{ErrorCode::kTimeout,
                  fmt::format("nothing arrived for {} ms", options_.stall_timeout.count()),
                  "check the network or allow more time"};
      }
      if (exchange.error) return CURLE_ABORTED_BY_CALLBACK;
      exchange.moved = false;
      int running = 0;
      curl_multi_perform(multi_.get(), &running);
      int left = 0;
      const CURLMsg* message = curl_multi_info_read(multi_.get(), &left);
      if (message != nullptr && message->msg == CURLMSG_DONE) return message->data.result;
      if (running == 0) return CURLE_FAILED_INIT;  // libcurl did not take it, for want of memory
      if (exchange.moved) {
        exchange.last_activity = steady_clock::now();  // the sink may have taken its time
        continue;                                      // and more may have come meanwhile
      }
      curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(poll_timeout(exchange).count()),
                      nullptr);
    }
  }

  // Bytes that go up count as life, but only libcurl sees them: asked for when it matters.
  bool is_stalled(Exchange& exchange, steady_clock::time_point now) const {
    if (!exchange.connected || now - exchange.last_activity < options_.stall_timeout) return false;
    curl_off_t uploaded = 0;
    curl_easy_getinfo(exchange.easy, CURLINFO_SIZE_UPLOAD_T, &uploaded);
    if (uploaded == exchange.uploaded) return true;
    exchange.uploaded = uploaded;
    exchange.last_activity = now;
    return false;
  }

  // Until a stall could fall due, rounded up so that the loop does not spin before it.
  [[nodiscard]] milliseconds poll_timeout(const Exchange& exchange) const {
    if (!exchange.connected) return kLongestPoll;
    const auto due = exchange.last_activity + options_.stall_timeout - steady_clock::now();
    return std::clamp(std::chrono::ceil<milliseconds>(due), milliseconds(0), kLongestPoll);
  }

  const TransportOptions& options_;
  Multi multi_;
  Easy easy_;                         // taken down before the connections of multi_
  std::vector<std::string> origins_;  // with which the last exchange ended well
};

// ---- the transport ------------------------------------------------------------------------------

// What the lines know together.
class SharedKnowledge {
 public:
  [[nodiscard]] Status start() {
    share_.reset(curl_share_init());
    if (share_ == nullptr) return fail(ErrorCode::kInternal, "libcurl gave no share handle");
    CURLSH* const share = share_.get();
    curl_share_setopt(share, CURLSHOPT_USERDATA, this);
    curl_share_setopt(share, CURLSHOPT_LOCKFUNC, &SharedKnowledge::lock);
    curl_share_setopt(share, CURLSHOPT_UNLOCKFUNC, &SharedKnowledge::unlock);
    curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS);
    curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    return {};
  }

  [[nodiscard]] CURLSH* get() const { return share_.get(); }

 private:
  static void lock(CURL* /*easy*/, curl_lock_data data, curl_lock_access /*access*/, void* user) {
    static_cast<SharedKnowledge*>(user)->mutexes_.at(data).lock();
  }
  static void unlock(CURL* /*easy*/, curl_lock_data data, void* user) {
    static_cast<SharedKnowledge*>(user)->mutexes_.at(data).unlock();
  }

  std::array<std::mutex, CURL_LOCK_DATA_LAST> mutexes_;
  Share share_;
};

class CurlTransport final : public Transport {
 public:
  explicit CurlTransport(TransportOptions options) : options_(std::move(options)) {}

  ~CurlTransport() override {
    idle_.clear();
    shared_.reset();
    curl_global_cleanup();
  }

  CurlTransport(const CurlTransport&) = delete;
  CurlTransport& operator=(const CurlTransport&) = delete;

  [[nodiscard]] Status start() { return shared_->start(); }

  SendResult send(const Request& request, BodySink& sink, const std::stop_token& stop) override {
    const std::string origin = request.url.origin();
    auto line = take(origin, stop);
    if (!line) {
      return tl::make_unexpected(
          SendError{with_context(std::move(line).error(), describe_request(request))});
    }
    SendResult result = (*line)->send(request, sink, stop);
    give_back(origin, *std::move(line));
    return result;
  }

 private:
  // Waits for one while the host has as many as it may have.
  [[nodiscard]] Result<std::unique_ptr<Line>> take(const std::string& origin,
                                                   const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    std::size_t& in_use = in_use_[origin];
    const auto is_free = [&] {
      return in_use < std::max<std::size_t>(1, options_.connections_per_host);
    };
    if (!freed_.wait(lock, stop, is_free)) return fail(ErrorCode::kCancelled, "cancelled");
    ++in_use;
    if (idle_.empty()) {
      auto line = make_line();
      if (!line) --in_use;
      return line;
    }
    // The one that was in use last, of those that know the host if there are any.
    auto found = std::ranges::find_if(idle_.rbegin(), idle_.rend(),
                                      [&](const auto& line) { return line->knows(origin); });
    if (found == idle_.rend()) found = idle_.rbegin();
    auto line = std::move(*found);
    idle_.erase(std::next(found).base());
    return line;
  }

  void give_back(const std::string& origin, std::unique_ptr<Line> line) {
    {
      const std::scoped_lock lock(mutex_);
      --in_use_[origin];
      idle_.push_back(std::move(line));
    }
    freed_.notify_all();
  }

  [[nodiscard]] Result<std::unique_ptr<Line>> make_line() const {
    Multi multi(curl_multi_init());
    Easy easy(curl_easy_init());
    if (multi == nullptr || easy == nullptr) {
      return fail(ErrorCode::kInternal, "libcurl gave no handle");
    }
    curl_multi_setopt(multi.get(), CURLMOPT_MAXCONNECTS, kConnectionsOfLine);
    curl_easy_setopt(easy.get(), CURLOPT_SHARE, shared_->get());
    return std::make_unique<Line>(std::move(multi), std::move(easy), options_);
  }

  const TransportOptions options_;
  std::unique_ptr<SharedKnowledge> shared_ = std::make_unique<SharedKnowledge>();
  std::mutex mutex_;
  std::condition_variable_any freed_;
  std::map<std::string, std::size_t> in_use_;  // lines by the host they speak to
  std::vector<std::unique_ptr<Line>> idle_;
};

}  // namespace

Result<std::unique_ptr<Transport>> make_curl_transport(const TransportOptions& options) {
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return fail(ErrorCode::kInternal, "libcurl cannot start");
  }
  auto transport = std::make_unique<CurlTransport>(options);
  GRIDSCOPE_CHECK(transport->start());
  return transport;
}

}  // namespace gridscope::http
