#include "gridscope/http/content_range.hpp"

#include <fmt/format.h>

#include <optional>

#include "gridscope/core/text.hpp"
#include "gridscope/http/fields.hpp"

namespace gridscope::http {
namespace {

// "a-b/n", "a-b/*" or "*/n".
std::optional<ContentRange> parse_range(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view span = text.substr(0, slash);
  const std::string_view total = text.substr(slash + 1);

  ContentRange range;
  if (total != "*") {
    range.total = parse_digits(total);
    if (!range.total) return std::nullopt;
  }
  if (span == "*") return range.total ? std::optional(range) : std::nullopt;

  const std::size_t dash = span.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = parse_digits(span.substr(0, dash));
  const auto last = parse_digits(span.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  if (range.total && *last >= *range.total) return std::nullopt;
  range.span = {.first = *first, .last = *last};
  return range;
}

}  // namespace

Result<ContentRange> parse_content_range(std::string_view value) {
  constexpr std::string_view kUnit = "bytes ";
  if (equals_ignoring_case(value.substr(0, kUnit.size()), kUnit)) {
    if (const auto range = parse_range(value.substr(kUnit.size()))) return *range;
  }
  return fail(ErrorCode::kCorrupt,
              fmt::format("Content-Range {} is not \"bytes FIRST-LAST/TOTAL\"", quote(value)));
}

}  // namespace gridscope::http
