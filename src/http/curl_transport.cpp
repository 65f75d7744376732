#include "gridscope/http/curl_transport.hpp"

// A driver is a thread that owns libcurl objects: no other touches them. send() hands an exchange
// to the driver that has the least to do and waits for the promise; the driver adds it to its multi
// handle, moves bytes for all its exchanges at once and calls their sinks straight from libcurl's
// write callback, so that a byte is copied once on its way from libcurl's buffer to where the
// caller wants it. A wake-up call of the multi handle is all that other threads ever do with
// libcurl. There are two drivers, because decrypting and copying keep one busy before the line is
// full.
//
// Stalls are measured here because libcurl's own limit counts whole seconds and also the time that
// an exchange spends in its queue, waiting for one of the connections of its host.

#include <curl/curl.h>
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "gridscope/core/text.hpp"
#include "gridscope/http/fields.hpp"

namespace gridscope::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr long kBufferBytes = 131'072;  // those of all connections fit into a CPU's cache
constexpr milliseconds kLongestPoll{1'000};
constexpr std::size_t kDrivers = 2;
constexpr long kCachedConnectionsPerSender = 4;  // several hosts take part in one download

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct MultiDeleter {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, EasyDeleter>;
using Multi = std::unique_ptr<CURLM, MultiDeleter>;
using List = std::unique_ptr<curl_slist, ListDeleter>;

// One request on its way. `request` and `sink` are the sender's, who waits for `promise`.
struct Exchange {
  const Request& request;
  BodySink& sink;
  std::stop_token stop;
  std::promise<SendResult> promise = {};

  Easy easy = {};
  List header_list = {};
  std::array<char, CURL_ERROR_SIZE> curl_message = {};
  ResponseHead head = {};
  std::size_t header_bytes = 0;
  bool head_complete = false;
  bool enough = false;              // the sink wants no more
  std::optional<Error> error = {};  // why we ended it ourselves
  bool connected = false;
  steady_clock::time_point last_activity = {};
  curl_off_t uploaded = 0;
};

std::string describe_request(const Request& request) {
  return fmt::format("{} {}", method_name(request.method), request.url.display());
}

// ---- callbacks: called by libcurl on its thread with the exchange -------------------------------

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
  exchange.last_activity = steady_clock::now();
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
  exchange.last_activity = steady_clock::now();
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
  exchange.easy.reset(curl_easy_init());
  if (exchange.easy == nullptr) return fail(ErrorCode::kInternal, "libcurl gave no easy handle");
  GRIDSCOPE_TRY(exchange.header_list, make_header_list(exchange.request));
  CURL* easy = exchange.easy.get();
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
    if (auto refusal = proxy_refusal(exchange.easy.get())) return *std::move(refusal);
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

// ---- the transport ------------------------------------------------------------------------------

// OpenSSL writes with write(2), which raises SIGPIPE on a connection that is gone; CURLOPT_NOSIGNAL
// leaves that to us.
void block_sigpipe() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

class Driver {
 public:
  Driver(Multi multi, std::size_t connections, const TransportOptions& options)
      : options_(options), connections_(connections), multi_(std::move(multi)) {
    thread_ = std::jthread([this](const std::stop_token& stop) { drive(stop); });
  }

  ~Driver() {
    thread_.request_stop();
    curl_multi_wakeup(multi_.get());
    thread_.join();
  }

  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // How many senders wait for each of its connections.
  [[nodiscard]] double load() const {
    return static_cast<double>(senders_) / static_cast<double>(connections_);
  }

  SendResult send(const Request& request, BodySink& sink, const std::stop_token& stop) {
    ++senders_;
    SendResult result = exchange(request, sink, stop);
    --senders_;
    return result;
  }

 private:
  SendResult exchange(const Request& request, BodySink& sink, const std::stop_token& stop) {
    auto exchange =
        std::make_unique<Exchange>(Exchange{.request = request, .sink = sink, .stop = stop});
    auto result = exchange->promise.get_future();
    {
      const std::scoped_lock lock(mutex_);
      submitted_.push_back(std::move(exchange));
    }
    const std::stop_callback wake_up(stop, [this] { curl_multi_wakeup(multi_.get()); });
    curl_multi_wakeup(multi_.get());
    return result.get();
  }

  void drive(const std::stop_token& stop) {
    block_sigpipe();
    while (!stop.stop_requested()) {
      start_submitted();
      end_cancelled_and_stalled();
      int running = 0;
      curl_multi_perform(multi_.get(), &running);
      // What has ended may have made way for what was queued, of which libcurl does not wake up.
      if (reap()) continue;
      curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(poll_timeout().count()), nullptr);
    }
  }

  void start_submitted() {
    std::vector<std::unique_ptr<Exchange>> fresh;
    {
      const std::scoped_lock lock(mutex_);
      fresh.swap(submitted_);
    }
    for (auto& exchange : fresh) {
      if (Status status = set_up(*exchange, options_); !status) {
        exchange->error = std::move(status).error();
        finish(*exchange, CURLE_FAILED_INIT);
        continue;
      }
      curl_multi_add_handle(multi_.get(), exchange->easy.get());
      active_.push_back(std::move(exchange));
    }
  }

  void end_cancelled_and_stalled() {
    const auto now = steady_clock::now();
    std::erase_if(active_, [&](const std::unique_ptr<Exchange>& exchange) {
      if (exchange->stop.stop_requested()) {
        exchange->error = Error{ErrorCode::kCancelled, "cancelled"};
      } else if (is_stalled(*exchange, now)) {
        exchange->error =
            Error{ErrorCode::kTimeout,
                  fmt::format("nothing arrived for {} ms", options_.stall_timeout.count()),
                  "check the network or allow more time"};
      } else {
        return false;
      }
      curl_multi_remove_handle(multi_.get(), exchange->easy.get());
      finish(*exchange, CURLE_ABORTED_BY_CALLBACK);
      return true;
    });
  }

  // Bytes that go up count as life, but only libcurl sees them: asked for when it matters.
  bool is_stalled(Exchange& exchange, steady_clock::time_point now) const {
    if (!exchange.connected || now - exchange.last_activity < options_.stall_timeout) return false;
    curl_off_t uploaded = 0;
    curl_easy_getinfo(exchange.easy.get(), CURLINFO_SIZE_UPLOAD_T, &uploaded);
    if (uploaded == exchange.uploaded) return true;
    exchange.uploaded = uploaded;
    exchange.last_activity = now;
    return false;
  }

  // Whether anything has ended.
  bool reap() {
    const std::size_t before = active_.size();
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      CURL* easy = message->easy_handle;
      curl_multi_remove_handle(multi_.get(), easy);
      const auto done = std::ranges::find_if(
          active_, [easy](const auto& exchange) { return exchange->easy.get() == easy; });
      finish(**done, code);
      active_.erase(done);
    }
    return active_.size() < before;
  }

  // The sender may go on, and take request and sink away, as soon as the promise is kept.
  static void finish(Exchange& exchange, CURLcode code) {
    exchange.promise.set_value(outcome(exchange, code));
  }

  // Until the next stall could fall due, rounded up so that the loop does not spin before it.
  [[nodiscard]] milliseconds poll_timeout() const {
    auto wait = kLongestPoll;
    const auto now = steady_clock::now();
    for (const auto& exchange : active_) {
      if (!exchange->connected) continue;
      const auto due = exchange->last_activity + options_.stall_timeout - now;
      wait = std::min(wait, std::chrono::ceil<milliseconds>(due));
    }
    return std::max(wait, milliseconds(0));
  }

  const TransportOptions& options_;
  const std::size_t connections_;
  Multi multi_;
  std::atomic<std::size_t> senders_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Exchange>> submitted_;  // guarded by mutex_
  std::vector<std::unique_ptr<Exchange>> active_;     // the thread's
  std::jthread thread_;
};

class CurlTransport final : public Transport {
 public:
  explicit CurlTransport(TransportOptions options) : options_(std::move(options)) {}

  ~CurlTransport() override {
    drivers_.clear();
    curl_global_cleanup();
  }

  CurlTransport(const CurlTransport&) = delete;
  CurlTransport& operator=(const CurlTransport&) = delete;

  // Each driver has its share of the connections.
  [[nodiscard]] Status start() {
    const std::size_t connections = std::max<std::size_t>(1, options_.connections_per_host);
    const std::size_t count = std::min(connections, kDrivers);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t share = (connections + i) / count;
      GRIDSCOPE_TRY(Multi multi, make_multi(share));
      drivers_.push_back(std::make_unique<Driver>(std::move(multi), share, options_));
    }
    return {};
  }

  // Of equally busy drivers the first: requests in turn find its connections.
  SendResult send(const Request& request, BodySink& sink, const std::stop_token& stop) override {
    const auto least = std::ranges::min_element(drivers_, {}, &Driver::load);
    return (*least)->send(request, sink, stop);
  }

 private:
  [[nodiscard]] static Result<Multi> make_multi(std::size_t connections) {
    Multi multi(curl_multi_init());
    if (multi == nullptr) return fail(ErrorCode::kInternal, "libcurl gave no multi handle");
    const auto most = static_cast<long>(connections);
    curl_multi_setopt(multi.get(), CURLMOPT_MAX_HOST_CONNECTIONS, most);
    curl_multi_setopt(multi.get(), CURLMOPT_MAXCONNECTS, most * kCachedConnectionsPerSender);
    return multi;
  }

  const TransportOptions options_;
  std::vector<std::unique_ptr<Driver>> drivers_;
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
