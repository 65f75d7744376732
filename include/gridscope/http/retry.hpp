#pragma once

// When to try again and how long to wait: a function from values to values. The schedule is that of
// the reference client huggingface_hub (waits 1, 2, 4, 8, 8 s; six tries; a rate limit's own reset
// time plus one second), with jitter, with a cap on what a server may ask for, and with less
// patience for a host that is not found.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "gridscope/core/result.hpp"
#include "gridscope/http/transport.hpp"

namespace gridscope::http {

struct RetryPolicy {
  int max_attempts = 6;
  // Of these, in a row, whose host was not found. Waiting seldom mends that: the name is mistyped,
  // or there is no network. Once more is for a name server that was busy.
  int max_lookups = 2;
  std::chrono::milliseconds first_wait{1'000};
  std::chrono::milliseconds longest_wait{8'000};
  std::chrono::milliseconds longest_server_wait{300'000};  // asked for more: give up and say so
  double jitter = 0.1;                                     // added, as a share of the wait
};

// The attempts at one request.
class Attempts {
 public:
  explicit Attempts(const RetryPolicy& policy)
      : max_attempts_(policy.max_attempts), max_lookups_(policy.max_lookups) {}

  void add(HostName host) {
    ++made_;
    failed_lookups_ = host == HostName::kResolved ? 0 : failed_lookups_ + 1;
  }
  // The latest one got somewhere and is counted as the first.
  void begin_anew() { made_ = 1; }

  [[nodiscard]] int made() const { return made_; }
  [[nodiscard]] bool are_enough() const {
    return made_ >= max_attempts_ || failed_lookups_ >= max_lookups_;
  }

 private:
  int max_attempts_;
  int max_lookups_;
  int made_ = 0;
  int failed_lookups_ = 0;
};

// 408, 429, 500, 502, 503, 504.
[[nodiscard]] bool is_transient_status(int status);
// kUnavailable and kTimeout.
[[nodiscard]] bool is_transient(ErrorCode code);

// RateLimit: "resolvers";r=0;t=172 (draft-ietf-httpapi-ratelimit-headers-09).
struct RateLimit {
  std::uint64_t remaining = 0;
  std::chrono::seconds reset{0};
};
[[nodiscard]] std::optional<RateLimit> parse_rate_limit(std::string_view value);

// Seconds, or an HTTP date seen from `now`. Empty when it is neither.
[[nodiscard]] std::optional<std::chrono::seconds> parse_retry_after(
    std::string_view value, std::chrono::system_clock::time_point now);

// The wait before the next try after attempt number `attempt` (from 1) failed with that response
// (or none, for a transport error). `random` is uniform in [0, 1). Errors: kUnavailable, saying how
// long the server wants, when that is beyond the policy's cap.
struct Failure {
  int attempt = 1;
  const ResponseHead* response = nullptr;
  std::chrono::system_clock::time_point now;
  double random = 0.0;
};
[[nodiscard]] Result<std::chrono::milliseconds> retry_wait(const RetryPolicy& policy,
                                                           const Failure& failure);

}  // namespace gridscope::http
