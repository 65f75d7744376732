// Everything that can go wrong between a Hub and a reader, at every stage, one at a time. Whatever
// happens, a read gives the right bytes or an error of a kind that fits; it ends in bounded time;
// and neither the token nor a signature is seen anywhere it should not be.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>

#include "gridscope/store/hub_repository.hpp"
#include "gridscope/store/remote_file.hpp"
#include "store/world.hpp"

namespace gridscope::store {
namespace {

using test::HttpFault;
using test::HttpReply;
using test::HttpRequest;
using test::HubStage;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kAlways = SIZE_MAX;
constexpr std::chrono::seconds kLongestRead{15};

using Change = std::function<HttpReply(const HttpRequest&, HttpReply)>;

struct Case {
  std::string name;
  HubStage stage;
  Change change;
  std::size_t times = kAlways;
  std::vector<ErrorCode> errors = {};  // that may come of it; none: the bytes must
  std::string path = std::string(kLargePath);
};

// ---- Changes

Change with_fault(HttpFault fault) {
  return [fault](const HttpRequest&, HttpReply reply) {
    reply.fault = fault;
    return reply;
  };
}

Change instead(HttpReply reply) {
  return [reply](const HttpRequest&, const HttpReply&) { return reply; };
}

void set_field(HttpReply& reply, std::string_view name, std::string value) {
  std::erase_if(reply.fields, [&](const test::HttpField& field) { return field.name == name; });
  reply.fields.push_back({std::string(name), std::move(value)});
}

Change with_field(std::string name, std::string value) {
  return [=](const HttpRequest&, HttpReply reply) {
    set_field(reply, name, value);
    return reply;
  };
}

Change without_field(std::string name) {
  return [=](const HttpRequest&, HttpReply reply) {
    std::erase_if(reply.fields, [&](const test::HttpField& field) { return field.name == name; });
    return reply;
  };
}

// Every byte is wrong, but there is one too many or too few.
Change with_body_longer_by(int bytes) {
  return [=](const HttpRequest&, HttpReply reply) {
    const auto size = static_cast<std::ptrdiff_t>(reply.body.size()) + bytes;
    reply.body.assign(static_cast<std::size_t>(std::max<std::ptrdiff_t>(size, 0)), '!');
    return reply;
  };
}

HttpReply ignore_range(const HttpRequest& request, const HttpReply&) {
  HttpRequest whole = request;
  whole.fields.clear();
  return test::serve_content(whole, pattern(kLargeSize));
}

HttpReply redirect_to_itself(const HttpRequest& request, const HttpReply&) {
  return {.status = 302, .fields = {{"Location", request.target}, {"X-Repo-Commit", "x"}}};
}

// ---- The matrix

const char* stage_name(HubStage stage) {
  switch (stage) {
    case HubStage::kResolve:
      return "resolve";
    case HubStage::kResolveCache:
      return "resolve_cache";
    case HubStage::kContent:
      return "content";
    default:
      return "api";
  }
}

// A broken connection after that many bytes of the response: once it is mended, and for ever it is
// an error, unless every try brings some bytes more.
void add_breaks(std::vector<Case>& cases, HubStage stage, const std::string& path) {
  constexpr std::size_t kMany = 40;
  const std::string what = fmt::format("{}_{}", stage_name(stage), path.substr(0, path.find('.')));
  for (const std::uint64_t after : {0U, 1U, 9U, 17U, 60U, 150U, 300U, 500U, 800U}) {
    for (const HttpFault::Kind kind : {HttpFault::Kind::kDrop, HttpFault::Kind::kReset}) {
      const std::string name = fmt::format(
          "{}_{}_after_{}", what, kind == HttpFault::Kind::kDrop ? "drop" : "reset", after);
      const Change change =
          with_fault({.kind = kind, .after = after, .from = HttpFault::From::kResponse});
      cases.push_back({name + "_once", stage, change, 1, {}, path});
      cases.push_back({name + "_often", stage, change, kMany, {ErrorCode::kUnavailable}, path});
    }
  }
}

// In the body, where every try gets further: that is mended however often it happens.
void add_body_breaks(std::vector<Case>& cases) {
  for (const std::uint64_t after : {1U, 100U, 4'096U, 50'000U, 99'999U}) {
    for (const HttpFault::Kind kind : {HttpFault::Kind::kDrop, HttpFault::Kind::kReset}) {
      const bool quick = after >= 4'096;
      cases.push_back({fmt::format("body_{}_after_{}",
                                   kind == HttpFault::Kind::kDrop ? "drop" : "reset", after),
                       HubStage::kContent,
                       with_fault({.kind = kind, .after = after}),
                       quick ? kAlways : 5,
                       {}});
    }
  }
}

void add_statuses(std::vector<Case>& cases, HubStage stage) {
  for (const int status : {408, 429, 500, 502, 503, 504}) {
    const std::string name = fmt::format("{}_{}", stage_name(stage), status);
    const Change change = instead({.status = status, .body = "not now"});
    cases.push_back({name + "_once", stage, change, 1});
    cases.push_back({name + "_always", stage, change, kAlways, {ErrorCode::kUnavailable}});
  }
  const std::string name = fmt::format("{}_429", stage_name(stage));
  const auto limited = [](const char* field, const char* value) {
    return instead({.status = 429, .fields = {{field, value}}, .body = "slow"});
  };
  cases.push_back(
      {name + "_rate_limit", stage, limited("RateLimit", "\"resolvers\";r=0;t=172"), 2});
  cases.push_back({name + "_retry_after", stage, limited("Retry-After", "20"), 2});
  cases.push_back({name + "_for_too_long",
                   stage,
                   limited("RateLimit", "\"resolvers\";r=0;t=9999"),
                   kAlways,
                   {ErrorCode::kUnavailable}});
}

void add_stalls(std::vector<Case>& cases, HubStage stage) {
  const std::string name = fmt::format("{}_stall", stage_name(stage));
  const Change head = with_fault(
      {.kind = HttpFault::Kind::kStall, .after = 30, .from = HttpFault::From::kResponse});
  cases.push_back({name + "_once", stage, head, 1});
  cases.push_back({name + "_always", stage, head, kAlways, {ErrorCode::kTimeout}});
}

// Answers that are no answer to the question.
void add_lies(std::vector<Case>& cases) {
  const HubStage content = HubStage::kContent;
  const auto add = [&](std::string name, const Change& change, std::vector<ErrorCode> errors) {
    cases.push_back({std::move(name), content, change, kAlways, std::move(errors)});
  };
  add("whole_file_for_a_range", ignore_range, {});
  add("gzip_on_a_range", with_field("Content-Encoding", "gzip"), {ErrorCode::kUnavailable});
  add("no_content_range", without_field("Content-Range"), {ErrorCode::kUnavailable});
  for (const char* range : {"bytes 1-10/300000", "bytes 0-299999/300001", "bytes 5-4/300000",
                            "bytes */300000", "bytes 0-9/177", "items 0-9/300000", "",
                            "bytes 18446744073709551615-18446744073709551616/5"}) {
    add(fmt::format("content_range_{}", cases.size()), with_field("Content-Range", range),
        {ErrorCode::kUnavailable, ErrorCode::kChanged});
  }
  add("short_body", with_body_longer_by(-1), {ErrorCode::kUnavailable});
  add("no_body", with_body_longer_by(-1'000'000), {ErrorCode::kUnavailable});
  add("long_body", with_body_longer_by(1), {ErrorCode::kUnavailable});
  add("very_long_body", with_body_longer_by(1'000'000), {ErrorCode::kUnavailable});
  add("multipart",
      instead({.status = 206,
               .fields = {{"Content-Type", "multipart/byteranges; boundary=x"}},
               .body = "--x"}),
      {ErrorCode::kUnavailable});
  add("no_http", instead({.raw = "SSH-2.0-OpenSSH\r\n"}), {ErrorCode::kUnavailable});
  add("status_204", instead({.status = 204}), {ErrorCode::kUnavailable});
  add("status_400", instead({.status = 400, .body = "<html>too large</html>"}),
      {ErrorCode::kUnavailable});
  add("refused", instead({.status = 403, .body = "Auth failed: invalid range"}),
      {ErrorCode::kPermission});
  add("gone", instead({.status = 404}), {ErrorCode::kNotFound});
  add("range_refused", instead({.status = 416, .fields = {{"Content-Range", "bytes */300000"}}}),
      {ErrorCode::kUnavailable});
  add("range_refused_without_total", instead({.status = 416}), {ErrorCode::kUnavailable});
  add("content_loop", redirect_to_itself, {ErrorCode::kUnavailable});
}

// What only the Hub's own hops can do wrong.
void add_hub_lies(std::vector<Case>& cases) {
  const HubStage resolve = HubStage::kResolve;
  const auto add = [&](std::string name, const Change& change, std::vector<ErrorCode> errors) {
    cases.push_back({std::move(name), resolve, change, kAlways, std::move(errors)});
  };
  add("loop", redirect_to_itself, {ErrorCode::kUnavailable});
  add("no_location", without_field("Location"), {ErrorCode::kUnavailable});
  add("bad_location", with_field("Location", "ftp://x/y"), {ErrorCode::kUnavailable});
  add("commit_moved", with_field("X-Repo-Commit", std::string(40, 'f')), {ErrorCode::kChanged});
  add("size_differs", with_field("X-Linked-Size", "1"), {ErrorCode::kChanged});
  add("content_differs", with_field("X-Linked-ETag", '"' + std::string(64, 'f') + '"'),
      {ErrorCode::kChanged});
  add("no_commit", without_field("X-Repo-Commit"), {ErrorCode::kUnavailable});
  add("login_page", instead({.fields = {{"Content-Type", "text/html"}}, .body = "<html>Log in"}),
      {ErrorCode::kUnavailable});
  add("login_redirect", instead({.status = 302, .fields = {{"Location", "http://localhost:1/"}}}),
      {ErrorCode::kUnavailable});
  add("range_refused_by_a_cache",
      [](const HttpRequest& request, HttpReply reply) {
        if (request.method == "HEAD") return reply;
        return HttpReply{.status = 416, .fields = {{"Content-Range", "bytes */177"}}};
      },
      {});
  cases.push_back({"cached_query_dropped",
                   HubStage::kResolve,
                   [](const HttpRequest&, HttpReply reply) {
                     for (auto& field : reply.fields) {
                       if (field.name == "Location") {
                         field.value = field.value.substr(0, field.value.find('?'));
                       }
                     }
                     std::erase_if(reply.fields, [](const test::HttpField& field) {
                       return field.name == "X-Repo-Commit";
                     });
                     return reply;
                   },
                   kAlways,
                   {ErrorCode::kUnavailable},
                   "config.json"});
}

std::vector<Case> matrix() {
  std::vector<Case> cases;
  add_breaks(cases, HubStage::kResolve, std::string(kLargePath));
  add_breaks(cases, HubStage::kContent, std::string(kLargePath));
  add_breaks(cases, HubStage::kResolve, "config.json");
  add_breaks(cases, HubStage::kResolveCache, "config.json");
  add_breaks(cases, HubStage::kResolve, "license.txt");
  add_body_breaks(cases);
  for (const HubStage stage : {HubStage::kResolve, HubStage::kContent}) {
    add_statuses(cases, stage);
    add_stalls(cases, stage);
  }
  add_lies(cases);
  add_hub_lies(cases);
  return cases;
}

// ---- Reading

using Reader = std::function<Status(const io::ByteSource& source, std::string& text)>;

// Many ranges at once, the file's ends among them.
Status read_in_pieces(const io::ByteSource& source, std::string& text) {
  text.assign(source.size(), '\0');
  const std::size_t piece = std::max<std::size_t>(text.size() / 3, 1);
  std::vector<io::ReadRequest> requests;
  for (std::size_t offset = 0; offset < text.size(); offset += piece) {
    const std::size_t length = std::min(piece, text.size() - offset);
    GRIDSCOPE_CHECK(
        source.read_at(offset, std::as_writable_bytes(std::span(text).subspan(offset, length))));
  }
  return {};
}

// All of it through a window.
Status read_through(const io::ByteSource& source, std::string& text) {
  text.clear();
  std::vector<std::byte> window(7'000);
  return source.uncached().read_through({.offset = 0, .length = source.size()}, window,
                                        [&](std::span<const std::byte> bytes) -> Status {
                                          text += test::to_text(bytes);
                                          return {};
                                        });
}

// The signatures that went over the wire, so that they can be looked for.
std::vector<std::string> signatures(const World& world) {
  std::vector<std::string> found;
  for (const HttpRequest& request : world.hub.requests()) {
    const std::string query = request.query();
    const std::size_t start = query.find("Signature=");
    if (start == std::string::npos) continue;
    found.push_back(query.substr(start + 10, query.find('&', start) - start - 10));
  }
  return found;
}

void expect_no_secret(const World& world, const std::string& said) {
  EXPECT_THAT(said, Not(HasSubstr(kToken)));
  for (const std::string& signature : signatures(world)) {
    ASSERT_GE(signature.size(), 64U);
    EXPECT_THAT(said, Not(HasSubstr(signature)));
  }
  for (const HttpRequest& request : world.requests_to("localhost")) {
    EXPECT_FALSE(request.has_authorization()) << request.path();
    EXPECT_NE(request.range(), "") << request.path();
  }
}

class FaultMatrix : public ::testing::TestWithParam<Case> {
 protected:
  static test::HubServerOptions options() { return {.token = std::string(kToken)}; }
  static test::HubRepo repo() {
    test::HubRepo repo = small_repo();
    repo.access = test::HubAccess::kPrivate;  // so that the token is needed at every own hop
    return repo;
  }

  // Opens the repository in good order; faults come after that.
  std::unique_ptr<Repository> open_repository() {
    StoreContext context = world_.context();
    context.hub.token = kToken;
    return open_hub_repository(hub_reference(), context).value();
  }

  // Reads all of the case's file: the right bytes or an error that fits, and no secret told.
  void expect_right_or_refused(const Case& wanted, const Reader& read);

  World world_{options(), repo()};
};

void FaultMatrix::expect_right_or_refused(const Case& wanted, const Reader& read) {
  const auto repository = open_repository();
  world_.hub.add_fault({.stage = wanted.stage, .change = wanted.change, .times = wanted.times});
  const auto source = repository->open(wanted.path);
  ASSERT_TRUE(source.has_value());

  const auto start = std::chrono::steady_clock::now();
  std::string text;
  const Status status = read(**source, text);
  EXPECT_LT(std::chrono::steady_clock::now() - start, kLongestRead);

  std::string said = world_.wire.said();
  if (status) {
    EXPECT_TRUE(text == small_repo().files.at(wanted.path).content()) << "wrong bytes";
    const bool must_fail =
        !wanted.errors.empty() && wanted.name.find("_after_") == std::string::npos;
    EXPECT_FALSE(must_fail) << "succeeded";
  } else {
    said += describe(status.error());
    EXPECT_THAT(wanted.errors, Contains(status.error().code)) << describe(status.error());
  }
  expect_no_secret(world_, said);
}

TEST_P(FaultMatrix, GivesTheRightBytesOrAnErrorThatFits) {
  expect_right_or_refused(GetParam(), read_in_pieces);
}

TEST_P(FaultMatrix, GivesThemOnceEachThroughAWindow) {
  expect_right_or_refused(GetParam(), read_through);
}

INSTANTIATE_TEST_SUITE_P(Hub, FaultMatrix, ::testing::ValuesIn(matrix()),
                         [](const auto& suite) { return suite.param.name; });

// ---- What takes more than one change

class Faults : public FaultMatrix {};

TEST_F(Faults, AnExpiredUrlInTheMiddleOfAReadIsRenewed) {
  const auto repository = open_repository();
  const auto source = repository->open(kLargePath).value();
  ASSERT_TRUE(read_text(*source, 0, 100).has_value());
  // The server's clock runs ahead: the URL is dead although we think it good.
  world_.hub.add_fault({.stage = HubStage::kContent,
                        .change = instead({.status = 403, .body = "Request has expired"}),
                        .times = 1});
  EXPECT_EQ(read_text(*source, 100'000, 100), pattern(kLargeSize).substr(100'000, 100));
  expect_no_secret(world_, world_.wire.said());
}

TEST_F(Faults, AUrlThatIsBornExpiredIsUsedOnceForEachRead) {
  World world({.lifetime = 30});
  const auto repository = open_hub_repository(hub_reference(), world.context()).value();
  const auto source = repository->open(kLargePath).value();
  std::string text;
  ASSERT_TRUE(read_in_pieces(*source, text).has_value());
  EXPECT_EQ(text, pattern(kLargeSize));
}

TEST_F(Faults, ManyRangesThatFailTogetherLookTheUrlUpTogether) {
  const auto repository = open_repository();
  const auto source = repository->open(kLargePath).value();
  ASSERT_TRUE(read_text(*source, 0, 100).has_value());
  const std::string first_url = world_.requests_to("localhost").at(0).target;
  world_.hub.add_fault(
      {.stage = HubStage::kContent, .change = [first_url](const HttpRequest& request, auto reply) {
         return request.target == first_url ? HttpReply{.status = 403} : reply;
       }});
  world_.wire.clock.advance(std::chrono::seconds(1));  // so that the next signature is another
  world_.hub.forget_requests();
  std::vector<std::string> texts(3, std::string(100, '\0'));
  std::vector<io::ReadRequest> requests;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    requests.push_back(
        {.offset = i * 100'000, .into = std::as_writable_bytes(std::span(texts[i]))});
  }
  EXPECT_THAT(source->read_many(requests), test::IsOk());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(texts[i], pattern(kLargeSize).substr(i * 100'000, 100));
  }
  EXPECT_THAT(world_.requests_to("127.0.0.1"), ::testing::SizeIs(1));
}

TEST_F(Faults, ACommitThatMovesBetweenTwoRangesIsNoticed) {
  World world({.lifetime = 30});  // so that every read asks the Hub
  const auto repository = open_hub_repository(hub_reference(), world.context()).value();
  const auto source = repository->open(kLargePath).value();
  ASSERT_TRUE(read_text(*source, 0, 100).has_value());
  world.hub.add_fault(
      {.stage = HubStage::kResolve, .change = with_field("X-Repo-Commit", std::string(40, 'f'))});
  EXPECT_THAT(read_text(*source, 100, 100),
              test::Fails(ErrorCode::kChanged, HasSubstr("not from the pinned")));
}

TEST_F(Faults, ACancelledReadEnds) {
  std::stop_source stop;
  auto transport = http::make_curl_transport({}).value();
  http::Client client(*transport, world_.wire.clock, world_.wire.observer,
                      {.stop = stop.get_token()});
  StoreContext context = world_.context();
  context.client = &client;
  context.hub.token = kToken;
  const auto repository = open_hub_repository(hub_reference(), context).value();
  const auto source = repository->open(kLargePath).value();
  stop.request_stop();
  EXPECT_THAT(read_text(*source, 0, 100), test::Fails(ErrorCode::kCancelled, HasSubstr("")));
}

TEST(TlsFault, IsNotTriedAgainAndKeepsTheToken) {
  World world({.token = std::string(kToken),
               .server = {.security = test::HttpServerOptions::Security::kTls}});
  StoreContext context = world.context();
  context.hub.token = kToken;
  const auto repository = open_hub_repository(hub_reference(), context);
  EXPECT_THAT(repository, test::Fails(ErrorCode::kPermission, Not(HasSubstr(kToken))));
  EXPECT_THAT(world.hub.requests(), ::testing::IsEmpty());
  EXPECT_THAT(world.wire.clock.sleeps(), ::testing::IsEmpty());
}

TEST(TlsHub, MustNotLeadToPlainHttp) {
  // The test Hub signs http URLs for its content host, which an https Hub must not.
  World world({.server = {.security = test::HttpServerOptions::Security::kTls}});
  Wire wire({.ca_file = world.hub.certificate_file()});
  StoreContext context = world.context();
  context.client = &wire.client();
  const auto repository = open_hub_repository(hub_reference(), context);
  ASSERT_THAT(repository, test::IsOk());
  const auto source = (*repository)->open(kLargePath).value();
  EXPECT_THAT(read_text(*source, 0, 10),
              test::Fails(ErrorCode::kPermission, HasSubstr("plain http")));
}

}  // namespace
}  // namespace gridscope::store
