#include "gridscope/store/hub_errors.hpp"

#include <gtest/gtest.h>

#include "support/matchers.hpp"

namespace gridscope::store {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

http::Url url_of(std::string_view text) {
  return http::parse_url(text).value();
}

const http::Url kUrl = url_of("https://huggingface.co/org/model/resolve/main/x");

struct Row {
  const char* name;
  int status;
  http::Headers headers;
  const char* body;
  bool token_sent;
  ErrorCode code;
  const char* meaning;
  const char* remedy;
};

class HubErrors : public ::testing::TestWithParam<Row> {};

TEST_P(HubErrors, AreJudgedByCodeThenMessageThenStatus) {
  const Row& row = GetParam();
  const http::ResponseHead head{.status = row.status, .headers = row.headers};
  const Error error = hub_error(
      {.head = head, .body = row.body, .url = kUrl},
      {.endpoint = "https://huggingface.co", .repo_id = "org/model", .token_sent = row.token_sent});
  EXPECT_EQ(error.code, row.code) << describe(error);
  EXPECT_THAT(error.message, HasSubstr(row.meaning));
  EXPECT_THAT(error.message, HasSubstr(std::to_string(row.status)));
  EXPECT_THAT(error.remedy, HasSubstr(row.remedy));
}

http::Headers code(const char* value) {
  return {{"X-Error-Code", value}};
}
http::Headers message(const char* value) {
  return {{"X-Error-Message", value}};
}

INSTANTIATE_TEST_SUITE_P(
    Table, HubErrors,
    ::testing::Values(
        Row{"revision", 404, code("RevisionNotFound"), "", false, ErrorCode::kNotFound,
            "no such revision", "https://huggingface.co/org/model/tree/main"},
        Row{"entry", 404, code("EntryNotFound"), "", false, ErrorCode::kNotFound, "no such file",
            "listed at"},
        Row{"gated_anonymous", 401, code("GatedRepo"), "", false, ErrorCode::kPermission,
            "is gated", "HF_TOKEN"},
        Row{"gated_stranger", 403, code("GatedRepo"), "", true, ErrorCode::kPermission,
            "access list", "https://huggingface.co/org/model"},
        Row{"disabled", 403, message("Access to this resource is disabled."), "", false,
            ErrorCode::kPermission, "disabled", "its page"},
        Row{"bad_token", 401, message("Invalid credentials in Authorization header"), "", true,
            ErrorCode::kPermission, "wrong or has expired", "unset it"},
        Row{"bad_token_in_body",
            401,
            {},
            R"({"error":"Invalid credentials in Authorization header"})",
            true,
            ErrorCode::kPermission,
            "wrong or has expired",
            "unset it"},
        Row{"missing_anonymous", 401, message("Invalid username or password."), "", false,
            ErrorCode::kNotFound, "or it is private", "HF_TOKEN"},
        Row{"missing", 404, code("RepoNotFound"), "", true, ErrorCode::kNotFound,
            "or it is private", "HF_TOKEN"},
        Row{"bare_404", 404, {}, "", false, ErrorCode::kNotFound, "was not found", "revision"},
        Row{"bare_403", 403, {}, "", true, ErrorCode::kPermission, "is refused", "read access"},
        Row{"limit_anonymous",
            429,
            {},
            "",
            false,
            ErrorCode::kUnavailable,
            "rate limit",
            "set HF_TOKEN"},
        Row{"limit", 429, {}, "", true, ErrorCode::kUnavailable, "rate limit", "five minutes"},
        Row{"fault", 503, {}, "", false, ErrorCode::kUnavailable, "not able to answer", "later"},
        Row{"legal", 451, {}, "", false, ErrorCode::kPermission, "legal reasons", "page"},
        Row{"bad_request", 400, {}, "Bad input", false, ErrorCode::kUnsupported, "Bad input", ""},
        Row{"teapot", 418, {}, "", false, ErrorCode::kUnsupported, "answered 418", ""}),
    [](const auto& suite) { return std::string(suite.param.name); });

Error error_of(const http::Headers& headers, std::string_view body) {
  const http::ResponseHead head{.status = 400, .headers = headers};
  return hub_error({.head = head, .body = body, .url = kUrl}, {});
}

TEST(HubErrors, TakeTheMessageFromWhereItStands) {
  EXPECT_THAT(error_of(message("from the header"), "body").message, HasSubstr(": from the header"));
  EXPECT_THAT(error_of({}, R"({"error":"one"})").message, HasSubstr(": one"));
  EXPECT_THAT(error_of({}, R"({"error":["one","two"]})").message, HasSubstr(": one; two"));
  EXPECT_THAT(error_of({}, R"({"error_description":"why","error":"x"})").message,
              HasSubstr(": why"));
  EXPECT_THAT(error_of({}, R"({"errors":[{"message":"a"},{"message":"b"}]})").message,
              HasSubstr(": a; b"));
  EXPECT_THAT(error_of({}, "first line\nsecond").message,
              AllOf(HasSubstr(": first line"), Not(HasSubstr("second"))));
  EXPECT_THAT(error_of({}, "{broken").message, HasSubstr(": {broken"));
}

TEST(HubErrors, ShowNoHtmlAndNoEscapes) {
  EXPECT_THAT(error_of({}, "<!doctype html><p>Sorry").message, Not(HasSubstr("Sorry")));
  EXPECT_THAT(error_of({}, "red \x1B[31m").message, Not(HasSubstr("\x1B")));
}

TEST(HubErrors, CarryTheRequestId) {
  EXPECT_THAT(error_of({{"X-Amz-Cf-Id", "third"}, {"X-Request-Id", "first"}}, "").message,
              HasSubstr("(request first)"));
  EXPECT_THAT(error_of({{"X-Amz-Cf-Id", "third"}}, "").message, HasSubstr("(request third)"));
}

struct ContentRow {
  int status;
  ErrorCode code;
};

TEST(ContentError, IsJudgedByStatus) {
  const http::Url url = url_of("https://cdn.example/file?Signature=abcdefghijk");
  for (const ContentRow row :
       {ContentRow{401, ErrorCode::kPermission}, ContentRow{403, ErrorCode::kPermission},
        ContentRow{451, ErrorCode::kPermission}, ContentRow{404, ErrorCode::kNotFound},
        ContentRow{410, ErrorCode::kNotFound}, ContentRow{429, ErrorCode::kUnavailable},
        ContentRow{503, ErrorCode::kUnavailable}, ContentRow{400, ErrorCode::kUnsupported},
        ContentRow{300, ErrorCode::kUnsupported}}) {
    const http::ResponseHead head{.status = row.status, .headers = {}};
    const Error error = content_error({.head = head, .body = "why", .url = url});
    EXPECT_EQ(error.code, row.code) << row.status;
    EXPECT_THAT(describe(error), AllOf(HasSubstr(": why"), HasSubstr("https://cdn.example/file"),
                                       Not(HasSubstr("abcdefghijk"))));
  }
}

TEST(ContentError, DropsABodyThatRepeatsTheSignature) {
  const http::Url url = url_of("https://cdn.example/f?x-id=Get&Signature=ab%2Bcdefghijk&Expires=1");
  const http::ResponseHead head{.status = 403, .headers = {}};
  for (const char* body : {"bad ab%2Bcdefghijk", "bad ab+cdefghijk"}) {
    EXPECT_THAT(content_error({.head = head, .body = body, .url = url}).message,
                Not(HasSubstr("bad")));
  }
  EXPECT_THAT(content_error({.head = head, .body = "bad Get", .url = url}).message,
              HasSubstr("bad Get"));
}

TEST(ContentError, ShowsOfXmlTheMessageOnly) {
  const http::Url url = url_of("https://cdn.example/f");
  const http::ResponseHead head{.status = 403, .headers = {}};
  const auto shown = [&](std::string_view body) {
    return content_error({.head = head, .body = body, .url = url}).message;
  };
  EXPECT_THAT(shown("<?xml?><Error><Code>AccessDenied</Code><Message>Expired</Message>"
                    "<StringToSign>secret</StringToSign></Error>"),
              AllOf(HasSubstr(": Expired"), Not(HasSubstr("secret"))));
  EXPECT_THAT(shown("<Error><Code>AccessDenied</Code></Error>"), HasSubstr(": AccessDenied"));
  EXPECT_THAT(shown("</Code><Code>"), Not(HasSubstr("Code")));
}

TEST(AllowList, NamesTheHostsAFirewallMustLetThrough) {
  const Error error = with_allow_list({.code = ErrorCode::kUnavailable, .message = "no route"});
  EXPECT_EQ(error.message, "no route");
  EXPECT_THAT(error.remedy, AllOf(HasSubstr("us.aws.cdn.hf.co"), HasSubstr("cdn-lfs-us-1.hf.co")));
}

}  // namespace
}  // namespace gridscope::store
