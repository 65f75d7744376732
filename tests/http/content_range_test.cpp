#include "gridscope/http/content_range.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "support/matchers.hpp"

namespace gridscope::http {
namespace {

using test::Fails;
using test::IsOk;
using ::testing::HasSubstr;

using Span = ContentRange::Span;

TEST(ParseContentRange, TakesTheThreeForms) {
  EXPECT_EQ(parse_content_range("bytes 0-7/100").value(),
            (ContentRange{.span = Span{0, 7}, .total = 100}));
  EXPECT_EQ(parse_content_range("bytes 5-5/*").value(),
            (ContentRange{.span = Span{5, 5}, .total = std::nullopt}));
  EXPECT_EQ(parse_content_range("Bytes */177").value(),
            (ContentRange{.span = std::nullopt, .total = 177}));
  EXPECT_EQ(parse_content_range("bytes */0").value().total, 0U);
}

TEST(ParseContentRange, TakesTheLargestNumbers) {
  EXPECT_EQ(parse_content_range("bytes 18446744073709551613-18446744073709551614/"
                                "18446744073709551615")
                .value()
                .span,
            (Span{UINT64_MAX - 2, UINT64_MAX - 1}));
}

TEST(ParseContentRange, RefusesAllElse) {
  for (const char* value : {"",
                            "bytes",
                            "bytes ",
                            "bytes */*",
                            "bytes 0-7",
                            "bytes 0-7/",
                            "bytes /100",
                            "bytes -7/100",
                            "bytes 0-/100",
                            "bytes 7-0/100",
                            "bytes 0-100/100",
                            "bytes 0-7/7",
                            "bytes=0-7/100",
                            "bytes  0-7/100",
                            "bytes 0 - 7/100",
                            "bytes 0-7/100 ",
                            "bytes 0-7/100, 9-10/100",
                            "bytes +0-7/100",
                            "bytes 0-7/-100",
                            "bytes 0x0-0x7/100",
                            "items 0-7/100",
                            "bytes 0-18446744073709551616/*",
                            "bytes 0-7/18446744073709551616",
                            "bytes 0-7/100\x01"}) {
    EXPECT_THAT(parse_content_range(value), Fails(ErrorCode::kCorrupt, HasSubstr("Content-Range")))
        << value;
  }
}

RC_GTEST_PROP(ParseContentRange, ReadsWhatAServerWrites, (std::uint64_t a, std::uint64_t b)) {
  const Span span{std::min(a, b), std::max(a, b)};
  RC_ASSERT(parse_content_range(fmt::format("bytes {}-{}/*", span.first, span.last)).value().span ==
            span);
  RC_PRE(span.last < UINT64_MAX);
  const std::uint64_t total = *rc::gen::inRange(span.last, UINT64_MAX) + 1;
  const auto range =
      parse_content_range(fmt::format("bytes {}-{}/{}", span.first, span.last, total));
  RC_ASSERT(range.value() == (ContentRange{.span = span, .total = total}));
}

RC_GTEST_PROP(ParseContentRange, TakesExactlyTheSpansWithinTheTotal, ()) {
  const auto small = rc::gen::inRange(0, 6);
  const int first = *small;
  const int last = *small;
  const int total = *small;
  const auto range = parse_content_range(fmt::format("bytes {}-{}/{}", first, last, total));
  RC_ASSERT(range.has_value() == (first <= last && last < total));
}

RC_GTEST_PROP(ParseContentRange, SurvivesAnyText, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("0159-/* ")));
  const auto range = parse_content_range("bytes " + text);
  RC_ASSERT(!range || range->span || range->total);
}

}  // namespace
}  // namespace gridscope::http
