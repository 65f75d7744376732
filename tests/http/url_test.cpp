#include "gridscope/http/url.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "support/matchers.hpp"

namespace gridscope::http {
namespace {

using test::Fails;
using test::IsOk;
using ::testing::_;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ParseUrl, SplitsIntoParts) {
  const Url url = parse_url("HTTPS://User-Content.Example.COM:8443/a/b%2Fc?x=1&y=%20#part").value();
  EXPECT_EQ(url, (Url{.scheme = "https",
                      .host = "user-content.example.com",
                      .port = 8443,
                      .path = "/a/b%2Fc",
                      .query = "x=1&y=%20"}));
}

TEST(ParseUrl, FillsInPortAndPath) {
  EXPECT_EQ(parse_url("http://h").value(),
            (Url{.scheme = "http", .host = "h", .port = 80, .path = "/", .query = ""}));
  EXPECT_EQ(parse_url("https://h?x").value().port, 443);
  EXPECT_EQ(parse_url("https://h?x").value().query, "x");
}

TEST(ParseUrl, KeepsThePathAsGiven) {
  EXPECT_EQ(parse_url("http://h/a/../b/./c//d%2e%2E").value().path, "/a/../b/./c//d%2e%2E");
}

TEST(ParseUrl, TakesAddresses) {
  EXPECT_EQ(parse_url("http://[::1]:8080/").value().host, "[::1]");
  EXPECT_EQ(parse_url("http://127.0.0.1/").value().host, "127.0.0.1");
}

TEST(ParseUrl, RefusesWhatIsNoHttpUrl) {
  for (const std::string text : {"",
                                 "h",
                                 "h/path",
                                 "/path",
                                 "//h/path",
                                 "ftp://h/",
                                 "file:///etc/passwd",
                                 "http:/h/",
                                 "http:///h/",
                                 "http://",
                                 "http://:80/",
                                 "http://h:0/",
                                 "http://h:65536/",
                                 "http://h:x/",
                                 "http://h /",
                                 "http://h/a b",
                                 "http://h/\r\nX: y",
                                 "http://h/\x7f",
                                 "https://h_\xC3\xA9/",
                                 "http://a%2fb/",
                                 "http://[::1/",
                                 "javascript:alert(1)",
                                 "http://h\\@evil/"}) {
    EXPECT_THAT(parse_url(text), Fails(ErrorCode::kInvalidArgument, Not(HasSubstr("\n")))) << text;
  }
  EXPECT_THAT(parse_url(std::string_view("http://h/\0x", 11)),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("NUL")));
  EXPECT_THAT(parse_url("http://h/" + std::string(20'000, 'a')),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("longer")));
}

TEST(ParseUrl, RefusesCredentialsWithoutShowingThem) {
  for (const char* text : {"https://user:PASSWORD@h/", "https://PASSWORD@h/",
                           "https://:PASSWORD@h/", "https://h:PASSWORD@h"}) {
    EXPECT_THAT(parse_url(text), Fails(ErrorCode::kInvalidArgument, Not(HasSubstr("PASSWORD"))));
  }
}

TEST(Url, WritesOriginTextAndDisplay) {
  const Url url = parse_url("https://h:443/p?token=SECRET").value();
  EXPECT_EQ(url.origin(), "https://h");
  EXPECT_EQ(url.text(), "https://h/p?token=SECRET");
  EXPECT_EQ(url.display(), "https://h/p?...");
  EXPECT_EQ(parse_url("http://h:443/p").value().origin(), "http://h:443");
  EXPECT_EQ(parse_url("http://h/p").value().display(), "http://h/p");
}

TEST(Url, TextReadsBackAsTheSameUrl) {
  for (const char* text : {"http://h/", "https://h:8443/a%20b?x=%2F&y", "http://[::1]:81/p?q?r"}) {
    const Url url = parse_url(text).value();
    EXPECT_EQ(parse_url(url.text()).value(), url);
  }
}

TEST(Url, DisplayEscapesAndCuts) {
  EXPECT_EQ(parse_url("http://h/\xC2\x9B"
                      "1m")
                .value()
                .display(),
            "http://h/\\xC2\\x9B1m");
  EXPECT_LT(parse_url("http://h/" + std::string(10'000, 'a')).value().display().size(), 500U);
}

TEST(ResolveUrl, TakesEveryKindOfReference) {
  const Url base = parse_url("https://h:8443/a/b/c?old=1").value();
  const auto resolved = [&](std::string_view reference) {
    return resolve_url(base, reference).value().text();
  };
  EXPECT_EQ(resolved("/api/resolve-cache/x?%2Fy=&etag=%22z%22"),
            "https://h:8443/api/resolve-cache/x?%2Fy=&etag=%22z%22");
  EXPECT_EQ(resolved("d?n=2"), "https://h:8443/a/b/d?n=2");
  EXPECT_EQ(resolved("../d"), "https://h:8443/a/d");
  EXPECT_EQ(resolved("//other/e"), "https://other/e");
  EXPECT_EQ(resolved("http://other:81/e?f"), "http://other:81/e?f");
  EXPECT_EQ(resolved("?n=2"), "https://h:8443/a/b/c?n=2");
}

TEST(ResolveUrl, EncodesWhatServersLeaveRaw) {
  const Url base = parse_url("https://h/a").value();
  EXPECT_EQ(resolve_url(base, "/x y?z=\xC3\xA9").value().text(), "https://h/x%20y?z=%c3%a9");
}

TEST(ResolveUrl, RefusesOtherSchemesAndCredentials) {
  const Url base = parse_url("https://h/a").value();
  for (const char* reference : {"file:///etc/passwd", "ftp://h/", "https://user:PASSWORD@h/",
                                "//user:PASSWORD@h/", "/a\r\nX: b"}) {
    EXPECT_THAT(resolve_url(base, reference),
                Fails(ErrorCode::kInvalidArgument, Not(HasSubstr("PASSWORD"))))
        << reference;
  }
}

TEST(PercentEncode, LeavesTheUnreserved) {
  EXPECT_EQ(percent_encode("AZaz09-._~"), "AZaz09-._~");
  EXPECT_EQ(percent_encode("refs/pr/7"), "refs%2Fpr%2F7");
  EXPECT_EQ(percent_encode("a/b c+d%\xC3\xA9", "/"), "a/b%20c%2Bd%25%C3%A9");
}

TEST(PercentDecode, ReadsEscapesOfEitherCase) {
  EXPECT_EQ(percent_decode("a%2fb%2Fc+d").value(), "a/b/c+d");
  EXPECT_EQ(percent_decode("%00").value(), std::string(1, '\0'));
}

TEST(PercentDecode, RefusesMalformedEscapes) {
  for (const char* text : {"%", "a%2", "%zz", "%2g", "%%41"}) {
    EXPECT_THAT(percent_decode(text), Fails(ErrorCode::kInvalidArgument, HasSubstr("at byte")))
        << text;
  }
}

RC_GTEST_PROP(PercentEncode, DecodesToTheSameBytes, (const std::string& text)) {
  RC_ASSERT(percent_decode(percent_encode(text)).value() == text);
  RC_ASSERT(percent_decode(percent_encode(text, "/+")).value() == text);
}

RC_GTEST_PROP(PercentEncode, FitsIntoAUrl, (const std::string& text)) {
  const std::string path = "/" + percent_encode(text);
  RC_ASSERT(parse_url("https://h" + path + "?q").value().path == path);
}

}  // namespace
}  // namespace gridscope::http
