#pragma once

// Transport plus patience: retries with waits, bounded bodies, and ranges that are checked byte for
// byte. Redirects come back to the caller as what they are, since what follows depends on who asks.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gridscope/core/clock.hpp"
#include "gridscope/core/observer.hpp"
#include "gridscope/core/result.hpp"
#include "gridscope/http/retry.hpp"
#include "gridscope/http/transport.hpp"

namespace gridscope::http {

[[nodiscard]] constexpr bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// A whole small response.
struct Document {
  ResponseHead head;
  std::string body;
};

// What came of asking for a range. Exactly one of three: the bytes, a redirect, or another status
// (416 only for an empty file of unknown size, with total = 0).
struct RangeReply {
  ResponseHead head;
  std::chrono::nanoseconds waited{0};       // for the head, from when the last request was made
  std::uint64_t received = 0;               // all that was asked for, unless the file ends earlier
  std::optional<std::uint64_t> total = {};  // the file's size, when known
  bool range_ignored = false;               // answered 200 with the whole file; its start was taken
  std::string body = {};  // of a response that is neither 2xx nor redirect, cut short

  [[nodiscard]] bool has_bytes() const { return head.status == 200 || head.status == 206; }
};

struct RangeQuery {
  Url url;
  std::vector<Header> headers = {};
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::optional<std::uint64_t> size = {};  // of the file, when known: replies are held against it
  // Of the file, when known and as this very server tells it: another one gives kChanged.
  std::string etag = {};
};

// Takes the next bytes of a range, which live until it returns. Its failure ends the reading.
using TakeBytes = std::function<Status(std::span<const std::byte>)>;

// Thread-safe. All references must outlive the client.
class Client {
 public:
  struct Options {
    RetryPolicy retry = {};
    std::stop_token stop = {};
  };

  Client(Transport& transport, Clock& clock, Observer& observer, Options options)
      : transport_(transport), clock_(clock), observer_(observer), options_(std::move(options)) {}

  // Sends and retries what is transient, whatever the method. Any final status is returned, not
  // only 2xx. Always asks for identity encoding. Errors: those of the transport; for 2xx, kLimit
  // for a body beyond max_bytes and kUnsupported for an encoded one (other bodies are cut short).
  // A body of a 2xx counts as one range that was read, from byte 0.
  [[nodiscard]] Result<Document> fetch(const Request& request, std::uint64_t max_bytes);

  // Asks for [offset, offset + length) with one Range and gives each byte to `take` once, in order,
  // on this thread. Checks status, Content-Range, Content-Encoding, ETag and length; resumes a body
  // that breaks off where it broke; retries what is transient. Requires: length > 0. A 200 is taken
  // only when offset is 0 (its first bytes are read, then the transfer is ended) or when it carries
  // a Content-Range that fits exactly. Errors, with which some bytes may have been taken: kCorrupt
  // for an answer that contradicts the question, kChanged when size or ETag moved, kUnsupported
  // when the server ignores ranges, those of the transport; that of `take`, as it is.
  [[nodiscard]] Result<RangeReply> read_range(const RangeQuery& query, const TakeBytes& take);

  [[nodiscard]] Clock& clock() { return clock_; }
  [[nodiscard]] Observer& observer() { return observer_; }
  [[nodiscard]] const std::stop_token& stop() const { return options_.stop; }

 private:
  class RangeSink;
  [[nodiscard]] Result<RangeReply> read_attempts(const Request& request, RangeSink& sink);
  void count_body(const Request& request, std::uint64_t bytes);
  [[nodiscard]] SendResult send_once(const Request& request, BodySink& sink);
  // Announces the next try and waits for its time.
  [[nodiscard]] Status pause(const Request& request, const SendResult& failed, int attempt);

  Transport& transport_;
  Clock& clock_;
  Observer& observer_;
  Options options_;
};

}  // namespace gridscope::http
