#include "gridscope/http/fields.hpp"

#include <gtest/gtest.h>

namespace gridscope::http {
namespace {

TEST(ToLower, ChangesAsciiCapitalsAlone) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const bool capital = byte >= 'A' && byte <= 'Z';
    EXPECT_EQ(to_lower(c), capital ? static_cast<char>(byte + 32) : c) << byte;
  }
}

TEST(EqualsIgnoringCase, ComparesAsciiOnly) {
  EXPECT_TRUE(equals_ignoring_case("Content-RANGE", "content-range"));
  EXPECT_TRUE(equals_ignoring_case("", ""));
  EXPECT_FALSE(equals_ignoring_case("content-range", "content-rang"));
  EXPECT_FALSE(equals_ignoring_case("[", "{"));  // 0x5B and 0x7B differ by the case bit alone
}

TEST(TrimBlanks, LeavesWhatIsInside) {
  EXPECT_EQ(trim_blanks(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim_blanks("a"), "a");
  EXPECT_EQ(trim_blanks(" \t\r\n"), "");
  EXPECT_EQ(trim_blanks(""), "");
}

TEST(ParseDigits, TakesTheWholeOf64Bits) {
  EXPECT_EQ(parse_digits("0"), 0U);
  EXPECT_EQ(parse_digits("007"), 7U);
  EXPECT_EQ(parse_digits("18446744073709551615"), UINT64_MAX);
}

TEST(ParseDigits, RefusesAllElse) {
  for (const char* text : {"", "+1", "-1", " 1", "1 ", "1.0", "1e3", "0x10", "a", "1a",
                           "18446744073709551616", "99999999999999999999999"}) {
    EXPECT_EQ(parse_digits(text), std::nullopt) << text;
  }
}

TEST(BareEtag, DropsQuotesAndMarkOfWeakness) {
  EXPECT_EQ(bare_etag("\"abc\""), "abc");
  EXPECT_EQ(bare_etag("W/\"abc\""), "abc");
  EXPECT_EQ(bare_etag(" \"abc\" "), "abc");
  EXPECT_EQ(bare_etag("abc"), "abc");
  EXPECT_EQ(bare_etag("\"\""), "");
  EXPECT_EQ(bare_etag(""), "");
}

TEST(BareEtag, LeavesALoneQuote) {
  EXPECT_EQ(bare_etag("\""), "\"");
  EXPECT_EQ(bare_etag("\"abc"), "\"abc");
  EXPECT_EQ(bare_etag("W/\""), "\"");
}

}  // namespace
}  // namespace gridscope::http
