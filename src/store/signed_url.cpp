#include "gridscope/store/signed_url.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "gridscope/http/fields.hpp"

namespace gridscope::store {
namespace {

using std::chrono::seconds;
using std::chrono::system_clock;

constexpr seconds kMargin{120};
constexpr seconds kAssumedLifetime{600};
// About the year 5138; far from the end of what a time_point can hold.
constexpr std::uint64_t kLatestSeconds = 100'000'000'000;

std::optional<std::string_view> query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    if (http::equals_ignoring_case(pair.substr(0, equals), name)) return pair.substr(equals + 1);
  }
  return std::nullopt;
}

std::optional<seconds> seconds_in(std::optional<std::string_view> text) {
  if (!text) return std::nullopt;
  const auto number = http::parse_digits(*text);
  if (!number || *number > kLatestSeconds) return std::nullopt;
  return seconds(static_cast<std::int64_t>(*number));
}

// "20260131T235959Z".
std::optional<system_clock::time_point> parse_amz_date(std::string_view text) {
  constexpr std::size_t kLength = 16;
  if (text.size() != kLength || text[8] != 'T' || text[15] != 'Z') return std::nullopt;
  const auto number = [&](std::size_t at, std::size_t digits) {
    return http::parse_digits(text.substr(at, digits));
  };
  const auto year = number(0, 4);
  const auto month = number(4, 2);
  const auto day = number(6, 2);
  const auto hour = number(9, 2);
  const auto minute = number(11, 2);
  const auto second = number(13, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date) + seconds(*hour * 3600 + *minute * 60 + *second);
}

std::optional<system_clock::time_point> expiry(std::string_view query) {
  if (const auto at = seconds_in(query_value(query, "Expires"))) {
    return system_clock::time_point(*at);
  }
  const auto lifetime = seconds_in(query_value(query, "X-Amz-Expires"));
  const auto date = query_value(query, "X-Amz-Date");
  const auto signed_at = date ? parse_amz_date(*date) : std::nullopt;
  if (!lifetime || !signed_at) return std::nullopt;
  return *signed_at + *lifetime;
}

}  // namespace

system_clock::time_point good_until(const http::Url& url, system_clock::time_point now) {
  const auto stated = expiry(url.query);
  return stated ? *stated - kMargin : now + kAssumedLifetime;
}

}  // namespace gridscope::store
