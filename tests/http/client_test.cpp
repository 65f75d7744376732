#include "gridscope/http/client.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>

#include "support/fakes.hpp"
#include "support/matchers.hpp"

namespace gridscope::http {
namespace {

using std::chrono::seconds;
using test::CollectingObserver;
using test::Fails;
using test::IsOk;
using test::ManualClock;
using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pointee;
using ::testing::SizeIs;

// One answer of the scripted transport: a response, perhaps broken off with an error.
struct Answer {
  int status = 200;
  std::vector<Header> headers = {};
  std::string body = {};
  std::optional<Error> error = {};  // after the body; with status 0, before any response
  HostName host = HostName::kResolved;
};

const Error kReset{ErrorCode::kUnavailable, "connection lost"};
const Error kNoSuchHost{ErrorCode::kUnavailable, "host not found"};
const Answer kUnknownHost{.status = 0, .error = kNoSuchHost, .host = HostName::kUnresolved};

// Gives the answers in order and keeps the requests.
class ScriptedTransport final : public Transport {
 public:
  SendResult send(const Request& request, BodySink& sink, const std::stop_token& stop) override {
    requests.push_back(request);
    const HostName host = script.empty() ? HostName::kResolved : script.front().host;
    return play(sink, stop).map_error([host](const Error& e) { return SendError{e, host}; });
  }

  // The next answer.
  Result<ResponseHead> play(BodySink& sink, const std::stop_token& stop) {
    if (stop.stop_requested()) return fail(ErrorCode::kCancelled, "cancelled");
    if (script.empty()) return fail(ErrorCode::kInternal, "the script is at its end");
    const Answer answer = std::move(script.front());
    script.pop_front();
    if (answer.status == 0) return tl::make_unexpected(answer.error.value());
    ResponseHead head{.status = answer.status, .headers = {}};
    for (const Header& header : answer.headers) head.headers.add(header.name, header.value);
    GRIDSCOPE_TRY(Flow flow, sink.on_head(head));
    // In pieces, as a network would.
    for (std::size_t at = 0; at < answer.body.size() && flow == Flow::kMore; at += kPiece) {
      GRIDSCOPE_TRY(
          flow,
          sink.on_body(
              test::bytes_of(answer.body).subspan(at, std::min(kPiece, answer.body.size() - at))));
    }
    if (answer.error && flow == Flow::kMore) return tl::make_unexpected(*answer.error);
    return head;
  }

  [[nodiscard]] std::vector<std::string> ranges() const {
    std::vector<std::string> values;
    for (const Request& request : requests) {
      for (const Header& header : request.headers) {
        if (header.name == "Range") values.push_back(header.value);
      }
    }
    return values;
  }

  static constexpr std::size_t kPiece = 3;
  std::deque<Answer> script;
  std::vector<Request> requests;
};

constexpr std::string_view kFile = "0123456789abcdefghij";

// A right answer for [first, last] of kFile.
Answer part(std::size_t first, std::size_t last) {
  return {.status = 206,
          .headers = {{"Content-Range", fmt::format("bytes {}-{}/{}", first, last, kFile.size())},
                      {"Content-Length", std::to_string(last - first + 1)},
                      {"ETag", "\"v1\""}},
          .body = std::string(kFile.substr(first, last - first + 1))};
}

// The same, broken off after `sent` bytes.
Answer broken_part(std::size_t first, std::size_t last, std::size_t sent) {
  Answer answer = part(first, last);
  answer.body.resize(sent);
  answer.error = kReset;
  return answer;
}

Answer with_header(Answer answer, const std::string& name, const std::string& value) {
  std::erase_if(answer.headers, [&](const Header& header) { return header.name == name; });
  answer.headers.push_back({name, value});
  return answer;
}

// What a query may say beyond its range.
struct Known {
  std::vector<Header> headers = {};
  std::optional<std::uint64_t> size = {};
  std::string etag = {};
};

class ClientTest : public ::testing::Test {
 protected:
  void script(std::deque<Answer> answers) { transport_.script = std::move(answers); }

  // Reads `size` bytes at `offset` of kFile.
  Result<RangeReply> read(std::uint64_t offset, std::size_t size, const Known& known = {}) {
    into_.assign(size, std::byte{'?'});
    return client_.read_range({.url = url_,
                               .headers = known.headers,
                               .offset = offset,
                               .size = known.size,
                               .etag = known.etag},
                              into_);
  }
  Result<Document> fetch(std::uint64_t max_bytes = 100) {
    return client_.fetch({.url = url_}, max_bytes);
  }
  [[nodiscard]] std::string text() const { return test::to_text(into_); }

  ScriptedTransport transport_;
  ManualClock clock_;
  CollectingObserver observer_;
  std::stop_source stop_;
  Client client_{
      transport_, clock_, observer_, {.retry = {.jitter = 0}, .stop = stop_.get_token()}};
  Url url_ = parse_url("https://h/file?Signature=SECRET").value();
  std::vector<std::byte> into_;
};

TEST(IsRedirect, IsWhatCarriesALocation) {
  for (const int status : {301, 302, 303, 307, 308}) EXPECT_TRUE(is_redirect(status));
  for (const int status : {200, 206, 300, 304, 404}) EXPECT_FALSE(is_redirect(status));
}

// ---- fetch --------------------------------------------------------------------------------------

TEST_F(ClientTest, FetchBringsHeadAndBody) {
  script({{.headers = {{"X-Repo-Commit", "c0ffee"}}, .body = "{\"a\":1}"}});
  const auto document = fetch();
  ASSERT_THAT(document, IsOk());
  EXPECT_EQ(document->body, "{\"a\":1}");
  EXPECT_THAT(document->head.headers.find("X-Repo-Commit"), Pointee(Eq("c0ffee")));
  EXPECT_EQ(transport_.requests[0].headers.back().value, "identity");
  EXPECT_THAT(observer_.requests(),
              ElementsAre(CollectingObserver::Request{"GET", "https://h/file?..."}));
  EXPECT_THAT(observer_.retries(), IsEmpty());
}

TEST_F(ClientTest, FetchCountsTheBodyOfASuccessOnce) {
  using Read = CollectingObserver::Read;
  script({{.status = 503, .body = "busy"}, {.body = "answer"}, {.status = 404, .body = "why"}});
  ASSERT_THAT(fetch(), IsOk());
  ASSERT_THAT(fetch(), IsOk());
  EXPECT_THAT(observer_.reads(), ElementsAre(Read{"https://h/file?...", 0, 6, Origin::kNetwork}));
}

TEST_F(ClientTest, FetchReturnsFinalStatusesAsTheyAre) {
  for (const int status : {301, 307, 401, 403, 404, 416, 451}) {
    script({{.status = status, .body = "why"}});
    const auto document = fetch();
    ASSERT_THAT(document, IsOk());
    EXPECT_EQ(document->head.status, status);
    EXPECT_EQ(document->body, "why");
  }
}

TEST_F(ClientTest, FetchRetriesWhatIsTransient) {
  script({{.status = 503, .headers = {{"Retry-After", "4"}}, .body = "busy"},
          {.body = "hal", .error = kReset},
          {.status = 0, .error = Error{ErrorCode::kTimeout, "nothing arrived"}},
          {.body = "whole"}});
  const auto document = fetch();
  ASSERT_THAT(document, IsOk());
  EXPECT_EQ(document->body, "whole");
  EXPECT_THAT(clock_.sleeps(), ElementsAre(seconds(5), seconds(2), seconds(4)));
  using Retry = CollectingObserver::Retry;
  const std::string what = "GET https://h/file?...";
  EXPECT_THAT(observer_.retries(), ElementsAre(Retry{what, "status 503", 1, seconds(5)},
                                               Retry{what, "connection lost", 2, seconds(2)},
                                               Retry{what, "nothing arrived", 3, seconds(4)}));
  EXPECT_THAT(observer_.requests(), SizeIs(4));
}

TEST_F(ClientTest, FetchGivesUpAfterTheLastAttempt) {
  script(std::deque<Answer>(10, {.status = 502, .body = "bad gateway"}));
  const auto document = fetch();
  ASSERT_THAT(document, IsOk());
  EXPECT_EQ(document->head.status, 502);
  EXPECT_EQ(document->body, "bad gateway");
  EXPECT_THAT(transport_.requests, SizeIs(6));

  script(std::deque<Answer>(10, {.status = 0, .error = kReset}));
  EXPECT_THAT(fetch(), Fails(ErrorCode::kUnavailable, HasSubstr("connection lost")));
}

TEST_F(ClientTest, LooksForAHostOnceMore) {
  const auto not_found = Fails(ErrorCode::kUnavailable, HasSubstr("host not found"));
  script({kUnknownHost, kUnknownHost, {.body = "found"}});
  EXPECT_THAT(fetch(), not_found);
  EXPECT_THAT(clock_.sleeps(), ElementsAre(seconds(1)));
  script({kUnknownHost, kUnknownHost, part(0, 3)});
  EXPECT_THAT(read(0, 4), not_found);
  script({kUnknownHost, {.status = 0, .error = kReset}, kUnknownHost, {.body = "found"}});
  EXPECT_THAT(fetch(), IsOk());
}

TEST_F(ClientTest, FetchDoesNotRetryWhatIsFinal) {
  script({{.status = 0, .error = Error{ErrorCode::kPermission, "certificate"}}, {.body = "x"}});
  EXPECT_THAT(fetch(), Fails(ErrorCode::kPermission, _));
  EXPECT_THAT(transport_.requests, SizeIs(1));
}

TEST_F(ClientTest, FetchRefusesToWaitTooLong) {
  script({{.status = 429, .headers = {{"RateLimit", R"("api";r=0;t=900)"}}}, {.body = "x"}});
  EXPECT_THAT(fetch(),
              Fails(ErrorCode::kUnavailable, AllOf(HasSubstr("GET https://h/file?..."),
                                                   HasSubstr("901 s"), Not(HasSubstr("SECRET")))));
  EXPECT_THAT(clock_.sleeps(), IsEmpty());
}

TEST_F(ClientTest, FetchBoundsTheBody) {
  script({{.body = std::string(100, 'x')}});
  EXPECT_THAT(fetch(100), IsOk());
  script({{.body = std::string(101, 'x')}});
  EXPECT_THAT(fetch(100), Fails(ErrorCode::kLimit, HasSubstr("longer than 100 B")));
  script({{.headers = {{"Content-Length", "101"}}}});
  EXPECT_THAT(fetch(100), Fails(ErrorCode::kLimit, _));
  script({{.status = 404, .body = std::string(101, 'x')}});
  const auto document = fetch(100);
  ASSERT_THAT(document, IsOk());
  EXPECT_EQ(document->body, std::string(100, 'x'));
}

TEST_F(ClientTest, FetchOfAHeadTakesAnyLength) {
  script({{.headers = {{"Content-Length", "5000000000"}, {"Content-Encoding", "gzip"}}}});
  EXPECT_THAT(client_.fetch({.method = Method::kHead, .url = url_}, 0), IsOk());
}

TEST_F(ClientTest, FetchRefusesAnEncodedBody) {
  script({{.headers = {{"Content-Encoding", "gzip"}}, .body = "\x1f\x8b"}});
  EXPECT_THAT(fetch(), Fails(ErrorCode::kUnsupported, HasSubstr("gzip")));
  script({{.headers = {{"Content-Encoding", "Identity"}}, .body = "x"}});
  EXPECT_THAT(fetch(), IsOk());
}

TEST_F(ClientTest, StopEndsWaitingAndSending) {
  script({{.status = 503}, {.body = "x"}});
  stop_.request_stop();
  EXPECT_THAT(fetch(), Fails(ErrorCode::kCancelled, _));
  EXPECT_THAT(read(0, 4), Fails(ErrorCode::kCancelled, _));
}

// ---- read_range: right answers ------------------------------------------------------------------

TEST_F(ClientTest, ReadsARange) {
  script({part(5, 12)});
  const auto reply = read(5, 8);
  ASSERT_THAT(reply, IsOk());
  EXPECT_TRUE(reply->has_bytes());
  EXPECT_EQ(reply->received, 8U);
  EXPECT_EQ(reply->total, 20U);
  EXPECT_FALSE(reply->range_ignored);
  EXPECT_EQ(text(), "56789abc");
  EXPECT_THAT(transport_.ranges(), ElementsAre("bytes=5-12"));
  using Read = CollectingObserver::Read;
  EXPECT_THAT(observer_.reads(), ElementsAre(Read{"https://h/file?...", 5, 8, Origin::kNetwork}));
  EXPECT_THAT(observer_.requests(), SizeIs(1));
}

TEST_F(ClientTest, SendsTheHeadersOfTheQuery) {
  script({part(0, 3)});
  ASSERT_THAT(read(0, 4, {.headers = {{"Authorization", "Bearer T"}}}), IsOk());
  const auto& headers = transport_.requests[0].headers;
  ASSERT_EQ(headers.size(), 3U);
  EXPECT_EQ(headers[0].value, "Bearer T");
  EXPECT_EQ(headers[2].name, "Accept-Encoding");
}

TEST_F(ClientTest, AsksNoFurtherThanTheEndThatIsKnown) {
  script({part(16, 19)});
  const auto reply = read(16, 100, {.size = 20});
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->received, 4U);
  EXPECT_THAT(transport_.ranges(), ElementsAre("bytes=16-19"));
}

TEST_F(ClientTest, LearnsWhereTheFileEnds) {
  script({part(16, 19)});
  const auto reply = read(16, 100);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->received, 4U);
  EXPECT_EQ(reply->total, 20U);
  EXPECT_EQ(text().substr(0, 5), "ghij?");
}

TEST_F(ClientTest, ResumesWhereTheBodyBroke) {
  script({broken_part(2, 11, 4), broken_part(6, 11, 3), part(9, 11)});
  const auto reply = read(2, 10);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(text(), "23456789ab");
  EXPECT_THAT(transport_.ranges(), ElementsAre("bytes=2-11", "bytes=6-11", "bytes=9-11"));
  EXPECT_THAT(observer_.reads(), SizeIs(1));
  EXPECT_EQ(observer_.reads()[0].bytes, 10U);
  EXPECT_THAT(clock_.sleeps(), ElementsAre(seconds(1), seconds(1)));
}

TEST_F(ClientTest, ResumesABodyThatEndsEarlyInGoodOrder) {
  Answer chunked = part(0, 9);
  chunked.headers = {{"Content-Range", "bytes 0-9/20"}};
  chunked.body.resize(7);
  script({chunked, part(7, 9)});
  ASSERT_THAT(read(0, 10), IsOk());
  EXPECT_EQ(text(), "0123456789");
}

TEST_F(ClientTest, ABreakAfterTheLastByteIsNoFailure) {
  script({broken_part(0, 9, 10)});
  const auto reply = read(0, 10);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->head.status, 206);
  EXPECT_EQ(text(), "0123456789");
}

TEST_F(ClientTest, ProgressStartsTheCountOfAttemptsAnew) {
  std::deque<Answer> answers;
  for (std::size_t at = 0; at < 19; ++at) {
    answers.push_back(broken_part(at, 19, 1));
    answers.push_back({.status = 500});
  }
  answers.push_back(part(19, 19));
  script(answers);
  ASSERT_THAT(read(0, 20), IsOk());
  EXPECT_EQ(text(), kFile);
}

TEST_F(ClientTest, GivesUpWithoutProgress) {
  script(std::deque<Answer>(20, broken_part(0, 9, 0)));
  EXPECT_THAT(read(0, 10), Fails(ErrorCode::kUnavailable, HasSubstr("connection lost")));
  EXPECT_THAT(transport_.requests, SizeIs(6));
  EXPECT_THAT(observer_.reads(), IsEmpty());
}

TEST_F(ClientTest, CountsBytesOfAReadThatFailed) {
  script({broken_part(0, 9, 4), {.status = 404}});
  const auto reply = read(0, 10);
  ASSERT_THAT(reply, IsOk());
  EXPECT_FALSE(reply->has_bytes());
  EXPECT_EQ(observer_.reads().at(0).bytes, 4U);
}

TEST_F(ClientTest, RedirectsAndErrorsComeBackAsTheyAre) {
  script({{.status = 302, .headers = {{"Location", "https://cdn/x"}}, .body = "Found"}});
  auto reply = read(0, 10);
  ASSERT_THAT(reply, IsOk());
  EXPECT_TRUE(is_redirect(reply->head.status));
  EXPECT_FALSE(reply->has_bytes());
  EXPECT_EQ(reply->received, 0U);

  script({{.status = 403, .body = std::string(100'000, 'w')}});
  reply = read(0, 10);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->head.status, 403);
  EXPECT_EQ(reply->body, std::string(4'096, 'w'));
  EXPECT_EQ(text(), "??????????");
}

TEST_F(ClientTest, TransientStatusesAreRetriedAndThenReturned) {
  script({{.status = 429, .headers = {{"RateLimit", R"("resolvers";r=0;t=1)"}}}, part(0, 3)});
  ASSERT_THAT(read(0, 4), IsOk());
  EXPECT_THAT(clock_.sleeps(), ElementsAre(seconds(2)));
  script(std::deque<Answer>(20, {.status = 504, .body = "gateway"}));
  const auto reply = read(0, 4);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->head.status, 504);
  EXPECT_EQ(reply->body, "gateway");
}

TEST_F(ClientTest, ImpossibleQuestionsAreNotAsked) {
  EXPECT_THAT(read(0, 0), Fails(ErrorCode::kInvalidArgument, _));
  EXPECT_THAT(read(20, 1, {.size = 20}), Fails(ErrorCode::kInvalidArgument, HasSubstr("end")));
  EXPECT_THAT(read(UINT64_MAX, 2), Fails(ErrorCode::kInvalidArgument, _));
  EXPECT_THAT(transport_.requests, IsEmpty());
}

// ---- read_range: answers that contradict the question -------------------------------------------

TEST_F(ClientTest, RefusesAWrongContentRange) {
  for (const char* value :
       {"bytes 0-9/20", "bytes 4-12/20", "bytes 5-11/20", "bytes 5-13/20", "bytes 5-11/*",
        "bytes */20", "bytes 5-12", "5-12/20", "bytes 5-12/12", "bytes 12-5/20"}) {
    Answer answer = with_header(part(5, 12), "Content-Range", value);
    std::erase_if(answer.headers,
                  [](const Header& header) { return header.name == "Content-Length"; });
    script({answer});
    EXPECT_THAT(read(5, 8), Fails(ErrorCode::kCorrupt, HasSubstr("Content-Range"))) << value;
    EXPECT_EQ(text(), "????????") << value;
  }
  EXPECT_THAT(clock_.sleeps(), IsEmpty());
}

TEST_F(ClientTest, TakesAnUnknownTotalWhenTheSpanFits) {
  script({with_header(part(5, 12), "Content-Range", "bytes 5-12/*")});
  const auto reply = read(5, 8);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->total, std::nullopt);
}

TEST_F(ClientTest, RefusesA206WithoutContentRange) {
  script({{.status = 206, .body = "01234567"}});
  EXPECT_THAT(read(0, 8), Fails(ErrorCode::kCorrupt, HasSubstr("without Content-Range")));
}

TEST_F(ClientTest, RefusesLengthsThatContradictTheRange) {
  script({with_header(part(5, 12), "Content-Length", "9")});
  EXPECT_THAT(read(5, 8), Fails(ErrorCode::kCorrupt, HasSubstr("Content-Length 9")));
  Answer longer = part(5, 12);
  longer.headers = {{"Content-Range", "bytes 5-12/20"}};
  longer.body += "d";
  script({longer});
  EXPECT_THAT(read(5, 8), Fails(ErrorCode::kCorrupt, HasSubstr("past byte 13")));
}

TEST_F(ClientTest, RefusesAnEncodedRange) {
  script({with_header(part(5, 12), "Content-Encoding", "gzip")});
  EXPECT_THAT(read(5, 8), Fails(ErrorCode::kUnsupported, HasSubstr("gzip")));
  script({with_header(part(5, 12), "Content-Encoding", "identity")});
  EXPECT_THAT(read(5, 8), IsOk());
}

TEST_F(ClientTest, NoticesAnotherSize) {
  script({part(5, 12)});
  EXPECT_THAT(read(5, 8, {.size = 21}),
              Fails(ErrorCode::kChanged, AllOf(HasSubstr("21"), HasSubstr("20"))));
}

TEST_F(ClientTest, NoticesAnotherETag) {
  script({part(5, 12)});
  EXPECT_THAT(read(5, 8, {.etag = "\"v0\""}), Fails(ErrorCode::kChanged, HasSubstr("ETag")));
  script({with_header(part(5, 12), "ETag", "W/\"v1\"")});
  EXPECT_THAT(read(5, 8, {.etag = "v1"}), IsOk());
  Answer without = part(5, 12);
  without.headers.pop_back();
  script({without});
  EXPECT_THAT(read(5, 8, {.etag = "v1"}), IsOk());
}

TEST_F(ClientTest, NoticesAFileReplacedInMidRead) {
  script({broken_part(0, 9, 4), with_header(part(4, 9), "ETag", "\"v2\"")});
  EXPECT_THAT(read(0, 10), Fails(ErrorCode::kChanged, HasSubstr("ETag")));
  script({broken_part(0, 9, 4), with_header(part(4, 9), "Content-Range", "bytes 4-9/30")});
  EXPECT_THAT(read(0, 10), Fails(ErrorCode::kChanged, HasSubstr("30")));
}

// ---- read_range: servers that ignore ranges -----------------------------------------------------

Answer whole_file() {
  return {.headers = {{"Content-Length", std::to_string(kFile.size())}},
          .body = std::string(kFile)};
}

TEST_F(ClientTest, TakesTheStartOfAWholeFile) {
  Answer endless = whole_file();
  endless.error = Error{ErrorCode::kInternal, "the transfer was not ended"};
  script({endless});
  const auto reply = read(0, 8);
  ASSERT_THAT(reply, IsOk());
  EXPECT_TRUE(reply->range_ignored);
  EXPECT_EQ(reply->received, 8U);
  EXPECT_EQ(reply->total, 20U);
  EXPECT_EQ(text(), "01234567");
}

TEST_F(ClientTest, TakesAWholeFileThatIsShorter) {
  script({whole_file()});
  auto reply = read(0, 30);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->received, 20U);
  script({{.headers = {{"Transfer-Encoding", "chunked"}}, .body = std::string(kFile)}});
  reply = read(0, 30);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->received, 20U);
  EXPECT_EQ(reply->total, 20U);
  script({{.headers = {{"Content-Length", "0"}}}});
  reply = read(0, 30);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->received, 0U);
}

TEST_F(ClientTest, DoesNotGuessWhereAnUnframedFileEnds) {
  script({{.body = std::string(kFile)}});
  EXPECT_THAT(read(0, 30), Fails(ErrorCode::kUnsupported, HasSubstr("how long")));
  script({{.body = std::string(kFile)}});
  EXPECT_THAT(read(0, 30, {.size = 20}), IsOk());
  script({{.body = std::string(kFile)}});
  EXPECT_THAT(read(0, 19, {.size = 19}), Fails(ErrorCode::kCorrupt, HasSubstr("past byte 19")));
}

TEST_F(ClientTest, RefusesAWholeFileForALaterRange) {
  script({whole_file()});
  EXPECT_THAT(read(1, 8), Fails(ErrorCode::kUnsupported,
                                AllOf(HasSubstr("bytes=1-8"), HasSubstr("download the file"))));
}

TEST_F(ClientTest, StartsAWholeFileAgainAfterABreak) {
  Answer broken = whole_file();
  broken.body.resize(12);
  broken.error = kReset;
  script({broken, whole_file()});
  const auto reply = read(0, 16);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->received, 16U);
  EXPECT_EQ(text(), kFile.substr(0, 16));
  EXPECT_EQ(observer_.reads().at(0).bytes, 28U);
}

TEST_F(ClientTest, AWholeFileThatAlwaysBreaksAtTheSamePlaceIsGivenUp) {
  Answer broken = whole_file();
  broken.body.resize(12);
  broken.error = kReset;
  script(std::deque<Answer>(20, broken));
  EXPECT_THAT(read(0, 16), Fails(ErrorCode::kUnavailable, _));
  EXPECT_THAT(transport_.requests, SizeIs(6));
}

TEST_F(ClientTest, NoticesAWholeFileOfAnotherSize) {
  script({whole_file()});
  EXPECT_THAT(read(0, 8, {.size = 21}), Fails(ErrorCode::kChanged, _));
}

TEST_F(ClientTest, TakesA200WithAFittingContentRange) {
  Answer odd = part(5, 12);
  odd.status = 200;
  script({odd});
  const auto reply = read(5, 8);
  ASSERT_THAT(reply, IsOk());
  EXPECT_FALSE(reply->range_ignored);
  EXPECT_EQ(text(), "56789abc");
  script({with_header(odd, "Content-Range", "bytes 0-7/20")});
  EXPECT_THAT(read(5, 8), Fails(ErrorCode::kCorrupt, _));
}

// ---- read_range: 416 ----------------------------------------------------------------------------

Answer refusal(const std::string& content_range) {
  return {.status = 416, .headers = {{"Content-Range", content_range}}, .body = "<html>"};
}

TEST_F(ClientTest, AsksOnceMoreAfterAnImplausibleRefusal) {
  script({refusal("bytes */177"), part(5, 12)});
  ASSERT_THAT(read(5, 8, {.size = 20}), IsOk());
  EXPECT_THAT(clock_.sleeps(), SizeIs(1));
  EXPECT_EQ(observer_.retries().at(0).reason, "status 416");
}

TEST_F(ClientTest, ASecondRefusalNamesRangeAndTotal) {
  script({refusal("bytes */7"), refusal("bytes */7"), part(5, 12)});
  EXPECT_THAT(read(5, 8, {.size = 20}),
              Fails(ErrorCode::kChanged,
                    AllOf(HasSubstr("bytes 5-12 of 20"), HasSubstr("416"), HasSubstr("7 bytes"),
                          HasSubstr("https://h/file?"), Not(HasSubstr("SECRET")))));
  script({refusal("bytes */20"), refusal("bytes */20")});
  EXPECT_THAT(read(5, 8, {.size = 20}), Fails(ErrorCode::kCorrupt, HasSubstr("bytes 5-12")));
  script({refusal("nonsense"), refusal("nonsense")});
  EXPECT_THAT(read(5, 8, {.size = 20}), Fails(ErrorCode::kCorrupt, HasSubstr("does not say")));
}

TEST_F(ClientTest, ARefusalPastAnUnknownEndIsTheCallersFault) {
  script({refusal("bytes */5")});
  EXPECT_THAT(read(5, 8), Fails(ErrorCode::kInvalidArgument, HasSubstr("bytes 5-12")));
  EXPECT_THAT(transport_.requests, SizeIs(1));
}

TEST_F(ClientTest, ARefusalTellsAnEmptyFile) {
  script({refusal("bytes */0")});
  const auto reply = read(0, 8);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->head.status, 416);
  EXPECT_EQ(reply->total, 0U);
}

}  // namespace
}  // namespace gridscope::http
