#include "gridscope/cli/option_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "gridscope/core/checked.hpp"
#include "gridscope/core/text.hpp"

namespace gridscope::cli {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr std::array kUnits = {
    Unit{"", 1},
    Unit{"B", 1},
    Unit{"KB", 1'000},
    Unit{"MB", 1'000'000},
    Unit{"GB", 1'000'000'000},
    Unit{"TB", 1'000'000'000'000},
    Unit{"KiB", 1ULL << 10},
    Unit{"MiB", 1ULL << 20},
    Unit{"GiB", 1ULL << 30},
    Unit{"TiB", 1ULL << 40},
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

tl::unexpected<Error> expected(const std::string& what, std::string_view found) {
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("expected {}, found {}", what, quote(found)));
}

Result<std::uint64_t> check_choice(const OptionSpec& option, std::string_view text) {
  if (std::ranges::find(option.choices, text) != option.choices.end()) return 0;
  const std::string_view one_of = option.choices.size() == 1 ? "" : "one of ";
  return expected(fmt::format("{}{}", one_of, fmt::join(option.choices, ", ")), text);
}

Result<std::uint64_t> check_range(const OptionSpec& option, std::optional<std::uint64_t> number,
                                  const std::string& what, std::string_view text) {
  if (number && *number >= option.minimum && *number <= option.maximum) return *number;
  return expected(what, text);
}

std::string count_expectation(const OptionSpec& option) {
  if (option.maximum == OptionSpec::kUnbounded) {
    return fmt::format("a whole number, at least {}", option.minimum);
  }
  return fmt::format("a whole number from {} to {}", option.minimum, option.maximum);
}

// host[:port] or scheme://host[:port]. What was found may hold a password and is not repeated.
Result<std::uint64_t> check_proxy(std::string_view text) {
  constexpr std::array<std::string_view, 6> kSchemes = {"http",    "https",  "socks4",
                                                        "socks4a", "socks5", "socks5h"};
  const std::size_t separator = text.find("://");
  const bool has_scheme = separator != std::string_view::npos;
  const std::string_view host = has_scheme ? text.substr(separator + 3) : text;
  const bool plain = std::ranges::all_of(
      text, [](char c) { return c > ' ' && static_cast<unsigned char>(c) < 0x7F; });
  const bool known =
      !has_scheme || std::ranges::find(kSchemes, text.substr(0, separator)) != kSchemes.end();
  if (plain && known && !host.empty() && host[0] != ':' && host[0] != '/') return 0;
  return fail(ErrorCode::kInvalidArgument,
              "expected [http://|https://|socks5://|socks5h://]host[:port], found something else");
}

}  // namespace

std::optional<std::uint64_t> parse_count(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  const auto* const digits_end = std::ranges::find_if_not(text, is_digit);
  const auto digits = static_cast<std::size_t>(digits_end - text.begin());
  const auto count = parse_count(text.substr(0, digits));
  const auto* const unit = std::ranges::find(kUnits, text.substr(digits), &Unit::name);
  if (!count || unit == kUnits.end()) return std::nullopt;
  return checked_mul(*count, unit->bytes);
}

std::optional<std::uint64_t> parse_seconds(std::string_view text) {
  constexpr std::size_t kDecimals = 3;
  const std::size_t point = std::min(text.find('.'), text.size());
  const auto whole = parse_count(text.substr(0, point));
  std::string decimals(text.substr(std::min(point + 1, text.size())));
  const bool dangling = point < text.size() && decimals.empty();
  if (!whole || dangling || decimals.size() > kDecimals) return std::nullopt;
  decimals.resize(kDecimals, '0');
  const auto fraction = parse_count(decimals);
  const auto milliseconds = checked_mul(*whole, 1000);
  if (!fraction || !milliseconds) return std::nullopt;
  return checked_add(*milliseconds, *fraction);
}

std::optional<double> parse_real(std::string_view text) {
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  const bool plain = digits.find_first_not_of("0123456789.") == std::string_view::npos;
  if (digits.empty() || !plain || !is_digit(digits.front()) || !is_digit(digits.back())) {
    return std::nullopt;
  }
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Result<std::uint64_t> check_value(const OptionSpec& option, std::string_view text) {
  switch (option.kind) {
    case ValueKind::kChoice:
      return check_choice(option, text);
    case ValueKind::kCount:
      return check_range(option, parse_count(text), count_expectation(option), text);
    case ValueKind::kSize:
      return check_range(option, parse_size(text), "a size such as 4096, 500MB or 2GiB, at least 1",
                         text);
    case ValueKind::kSeconds:
      return check_range(
          option, parse_seconds(text),
          fmt::format("seconds from 0.001 to {}, such as 30 or 0.5", option.maximum / 1000), text);
    case ValueKind::kFraction: {
      const auto number = parse_real(text);
      if (!number || *number < 0.0 || *number > 1.0) return expected("a number from 0 to 1", text);
      break;
    }
    case ValueKind::kReal:
      if (!parse_real(text)) return expected("a number such as 30 or 17.5", text);
      break;
    case ValueKind::kProxy:
      return check_proxy(text);
    case ValueKind::kFlag:
    case ValueKind::kModel:
      break;
    case ValueKind::kText:
    case ValueKind::kFile:
    case ValueKind::kDirectory:
      if (text.empty()) return expected("a value", text);
      break;
  }
  return 0;
}

}  // namespace gridscope::cli
