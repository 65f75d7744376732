#include "gridscope/http/retry.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "gridscope/http/fields.hpp"

namespace gridscope::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Longer waits are all the same to us, and this many milliseconds are far from overflow.
constexpr std::uint64_t kLongestSeconds = 1'000'000'000;

std::optional<seconds> parse_seconds(std::string_view text) {
  const auto number = parse_digits(text);
  if (!number) return std::nullopt;
  return seconds(static_cast<std::int64_t>(std::min(*number, kLongestSeconds)));
}

// Cuts off what stands before the next `separator` outside double quotes, and the separator.
std::string_view next_piece(std::string_view& rest, char separator) {
  bool quoted = false;
  std::size_t end = 0;
  for (; end < rest.size() && (quoted || rest[end] != separator); ++end) {
    if (rest[end] == '"') quoted = !quoted;
  }
  const std::string_view piece = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return trim_blanks(piece);
}

// One quota: "name";r=N;t=N.
std::optional<RateLimit> parse_quota(std::string_view item) {
  std::optional<std::uint64_t> remaining;
  std::optional<seconds> reset;
  while (!item.empty()) {
    const std::string_view parameter = next_piece(item, ';');
    if (parameter.starts_with("r=")) remaining = parse_digits(parameter.substr(2));
    if (parameter.starts_with("t=")) reset = parse_seconds(parameter.substr(2));
  }
  if (!remaining || !reset) return std::nullopt;
  return RateLimit{.remaining = *remaining, .reset = *reset};
}

// What the server itself asks for, one second added for clocks that tick apart.
std::optional<seconds> server_wait(const ResponseHead& response,
                                   std::chrono::system_clock::time_point now) {
  constexpr int kTooManyRequests = 429;
  const std::string* limit = response.headers.find("RateLimit");
  if (response.status == kTooManyRequests && limit != nullptr) {
    const auto parsed = parse_rate_limit(*limit);
    if (parsed && parsed->remaining == 0) return parsed->reset + seconds(1);
  }
  const std::string* after = response.headers.find("Retry-After");
  if (after == nullptr) return std::nullopt;
  const auto parsed = parse_retry_after(*after, now);
  return parsed ? std::optional(*parsed + seconds(1)) : std::nullopt;
}

milliseconds backoff(const RetryPolicy& policy, int attempt, double random) {
  milliseconds wait = policy.first_wait;
  for (int i = 1; i < attempt && wait < policy.longest_wait; ++i) wait *= 2;
  wait = std::min(wait, policy.longest_wait);
  const double added = static_cast<double>(wait.count()) * policy.jitter * random;
  return wait + milliseconds(static_cast<std::int64_t>(added));
}

}  // namespace

bool is_transient_status(int status) {
  constexpr std::array kTransient = {408, 429, 500, 502, 503, 504};
  return std::ranges::find(kTransient, status) != kTransient.end();
}

bool is_transient(ErrorCode code) {
  return code == ErrorCode::kUnavailable || code == ErrorCode::kTimeout;
}

std::optional<RateLimit> parse_rate_limit(std::string_view value) {
  std::optional<RateLimit> tightest;
  while (!value.empty()) {
    const auto quota = parse_quota(next_piece(value, ','));
    if (quota && (!tightest || quota->remaining < tightest->remaining)) tightest = quota;
  }
  return tightest;
}

std::optional<seconds> parse_retry_after(std::string_view value,
                                         std::chrono::system_clock::time_point now) {
  value = trim_blanks(value);
  if (const auto number = parse_seconds(value)) return number;
  // Every form of an HTTP date ("Sun, 06 Nov 1994 08:49:37 GMT") begins with the day's name;
  // libcurl's parser would take much else.
  constexpr std::size_t kLongestDate = 64;
  constexpr std::array<std::string_view, 7> kDays = {"Mon", "Tue", "Wed", "Thu",
                                                     "Fri", "Sat", "Sun"};
  if (value.size() > kLongestDate || std::ranges::find(kDays, value.substr(0, 3)) == kDays.end()) {
    return std::nullopt;
  }
  const time_t date = curl_getdate(std::string(value).c_str(), nullptr);
  if (date < 0) return std::nullopt;
  const auto wait = std::chrono::ceil<seconds>(std::chrono::system_clock::from_time_t(date) - now);
  return std::clamp(wait, seconds(0), seconds(static_cast<std::int64_t>(kLongestSeconds)));
}

Result<milliseconds> retry_wait(const RetryPolicy& policy, const Failure& failure) {
  if (failure.response != nullptr && is_transient_status(failure.response->status)) {
    if (const auto asked = server_wait(*failure.response, failure.now)) {
      if (*asked <= policy.longest_server_wait) return milliseconds(*asked);
      return fail(ErrorCode::kUnavailable,
                  fmt::format("status {}: the server asks to wait {} s, more than the {} s allowed",
                              failure.response->status, asked->count(),
                              std::chrono::ceil<seconds>(policy.longest_server_wait).count()),
                  "try again later");
    }
  }
  return backoff(policy, failure.attempt, failure.random);
}

}  // namespace gridscope::http
