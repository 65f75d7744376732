#include <gtest/gtest.h>

#include <deque>

#include "gridscope/http/client.hpp"
#include "http/scripted_client.hpp"
#include "support/matchers.hpp"

namespace gridscope::http {
namespace {

using std::chrono::seconds;
using test::CollectingObserver;
using test::Fails;
using test::IsOk;
using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class ClientRangeTest : public ClientTest {};

// ---- right answers ------------------------------------------------------------------

TEST_F(ClientRangeTest, ReadsARange) {
  script({part(5, 12)});
  const auto reply = read(5, 8);
  ASSERT_THAT(reply, IsOk());
  EXPECT_TRUE(reply->has_bytes());
  EXPECT_EQ(reply->received, 8U);
  EXPECT_EQ(reply->total, 20U);
  EXPECT_FALSE(reply->range_ignored);
  EXPECT_EQ(taken_, "56789abc");
  EXPECT_THAT(transport_.ranges(), ElementsAre("bytes=5-12"));
  using Read = CollectingObserver::Read;
  EXPECT_THAT(observer_.reads(), ElementsAre(Read{"https://h/file?...", 5, 8, Origin::kNetwork}));
  EXPECT_THAT(observer_.requests(), SizeIs(1));
}

TEST_F(ClientRangeTest, SendsTheHeadersOfTheQuery) {
  script({part(0, 3)});
  ASSERT_THAT(read(0, 4, {.headers = {{"Authorization", "Bearer T"}}}), IsOk());
  const auto& headers = transport_.requests[0].headers;
  ASSERT_EQ(headers.size(), 3U);
  EXPECT_EQ(headers[0].value, "Bearer T");
  EXPECT_EQ(headers[2].name, "Accept-Encoding");
}

TEST_F(ClientRangeTest, AsksNoFurtherThanTheEndThatIsKnown) {
  script({part(16, 19)});
  const auto reply = read(16, 100, {.size = 20});
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->received, 4U);
  EXPECT_THAT(transport_.ranges(), ElementsAre("bytes=16-19"));
}

TEST_F(ClientRangeTest, LearnsWhereTheFileEnds) {
  script({part(16, 19)});
  const auto reply = read(16, 100);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->received, 4U);
  EXPECT_EQ(reply->total, 20U);
  EXPECT_EQ(taken_, "ghij");
}

TEST_F(ClientRangeTest, ResumesWhereTheBodyBroke) {
  script({broken_part(2, 11, 4), broken_part(6, 11, 3), part(9, 11)});
  const auto reply = read(2, 10);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(taken_, "23456789ab");
  EXPECT_THAT(transport_.ranges(), ElementsAre("bytes=2-11", "bytes=6-11", "bytes=9-11"));
  EXPECT_THAT(observer_.reads(), SizeIs(1));
  EXPECT_EQ(observer_.reads()[0].bytes, 10U);
  EXPECT_THAT(clock_.sleeps(), ElementsAre(seconds(1), seconds(1)));
}

TEST_F(ClientRangeTest, ResumesABodyThatEndsEarlyInGoodOrder) {
  Answer chunked = part(0, 9);
  chunked.headers = {{"Content-Range", "bytes 0-9/20"}};
  chunked.body.resize(7);
  script({chunked, part(7, 9)});
  ASSERT_THAT(read(0, 10), IsOk());
  EXPECT_EQ(taken_, "0123456789");
}

// Whose failure is none of the server's: nothing is asked again.
TEST_F(ClientRangeTest, TheTakersFailureComesBackAsItIs) {
  take_answer_ = fail(ErrorCode::kUnavailable, "the taker has had enough");
  script({part(2, 11)});
  EXPECT_THAT(read(2, 10), Fails(ErrorCode::kUnavailable, Eq("the taker has had enough")));
  EXPECT_EQ(taken_, "234");
  EXPECT_THAT(transport_.ranges(), SizeIs(1));
  EXPECT_THAT(clock_.sleeps(), IsEmpty());
  EXPECT_EQ(observer_.reads()[0].bytes, 3U);
}

TEST_F(ClientRangeTest, ABreakAfterTheLastByteIsNoFailure) {
  script({broken_part(0, 9, 10)});
  const auto reply = read(0, 10);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->head.status, 206);
  EXPECT_EQ(taken_, "0123456789");
}

TEST_F(ClientRangeTest, ProgressStartsTheCountOfAttemptsAnew) {
  std::deque<Answer> answers;
  for (std::size_t at = 0; at < 19; ++at) {
    answers.push_back(broken_part(at, 19, 1));
    answers.push_back({.status = 500});
  }
  answers.push_back(part(19, 19));
  script(answers);
  ASSERT_THAT(read(0, 20), IsOk());
  EXPECT_EQ(taken_, kFile);
}

TEST_F(ClientRangeTest, GivesUpWithoutProgress) {
  script(std::deque<Answer>(20, broken_part(0, 9, 0)));
  EXPECT_THAT(read(0, 10), Fails(ErrorCode::kUnavailable, HasSubstr("connection lost")));
  EXPECT_THAT(transport_.requests, SizeIs(6));
  EXPECT_THAT(observer_.reads(), IsEmpty());
}

TEST_F(ClientRangeTest, CountsBytesOfAReadThatFailed) {
  script({broken_part(0, 9, 4), {.status = 404}});
  const auto reply = read(0, 10);
  ASSERT_THAT(reply, IsOk());
  EXPECT_FALSE(reply->has_bytes());
  EXPECT_EQ(observer_.reads().at(0).bytes, 4U);
}

TEST_F(ClientRangeTest, RedirectsAndErrorsComeBackAsTheyAre) {
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
  EXPECT_EQ(taken_, "");
}

TEST_F(ClientRangeTest, TransientStatusesAreRetriedAndThenReturned) {
  script({{.status = 429, .headers = {{"RateLimit", R"("resolvers";r=0;t=1)"}}}, part(0, 3)});
  ASSERT_THAT(read(0, 4), IsOk());
  EXPECT_THAT(clock_.sleeps(), ElementsAre(seconds(2)));
  script(std::deque<Answer>(20, {.status = 504, .body = "gateway"}));
  const auto reply = read(0, 4);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->head.status, 504);
  EXPECT_EQ(reply->body, "gateway");
}

TEST_F(ClientRangeTest, ImpossibleQuestionsAreNotAsked) {
  EXPECT_THAT(read(0, 0), Fails(ErrorCode::kInvalidArgument, _));
  EXPECT_THAT(read(20, 1, {.size = 20}), Fails(ErrorCode::kInvalidArgument, HasSubstr("end")));
  EXPECT_THAT(read(UINT64_MAX, 2), Fails(ErrorCode::kInvalidArgument, _));
  EXPECT_THAT(transport_.requests, IsEmpty());
}

// ---- answers that contradict the question -------------------------------------------

TEST_F(ClientRangeTest, RefusesAWrongContentRange) {
  for (const char* value :
       {"bytes 0-9/20", "bytes 4-12/20", "bytes 5-11/20", "bytes 5-13/20", "bytes 5-11/*",
        "bytes */20", "bytes 5-12", "5-12/20", "bytes 5-12/12", "bytes 12-5/20"}) {
    Answer answer = with_header(part(5, 12), "Content-Range", value);
    std::erase_if(answer.headers,
                  [](const Header& header) { return header.name == "Content-Length"; });
    script({answer});
    EXPECT_THAT(read(5, 8), Fails(ErrorCode::kCorrupt, HasSubstr("Content-Range"))) << value;
    EXPECT_EQ(taken_, "") << value;
  }
  EXPECT_THAT(clock_.sleeps(), IsEmpty());
}

TEST_F(ClientRangeTest, TakesAnUnknownTotalWhenTheSpanFits) {
  script({with_header(part(5, 12), "Content-Range", "bytes 5-12/*")});
  const auto reply = read(5, 8);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->total, std::nullopt);
}

TEST_F(ClientRangeTest, RefusesA206WithoutContentRange) {
  script({{.status = 206, .body = "01234567"}});
  EXPECT_THAT(read(0, 8), Fails(ErrorCode::kCorrupt, HasSubstr("without Content-Range")));
}

TEST_F(ClientRangeTest, RefusesLengthsThatContradictTheRange) {
  script({with_header(part(5, 12), "Content-Length", "9")});
  EXPECT_THAT(read(5, 8), Fails(ErrorCode::kCorrupt, HasSubstr("Content-Length 9")));
  Answer longer = part(5, 12);
  longer.headers = {{"Content-Range", "bytes 5-12/20"}};
  longer.body += "d";
  script({longer});
  EXPECT_THAT(read(5, 8), Fails(ErrorCode::kCorrupt, HasSubstr("past byte 13")));
}

TEST_F(ClientRangeTest, RefusesAnEncodedRange) {
  script({with_header(part(5, 12), "Content-Encoding", "gzip")});
  EXPECT_THAT(read(5, 8), Fails(ErrorCode::kUnsupported, HasSubstr("gzip")));
  script({with_header(part(5, 12), "Content-Encoding", "identity")});
  EXPECT_THAT(read(5, 8), IsOk());
}

TEST_F(ClientRangeTest, NoticesAnotherSize) {
  script({part(5, 12)});
  EXPECT_THAT(read(5, 8, {.size = 21}),
              Fails(ErrorCode::kChanged, AllOf(HasSubstr("21"), HasSubstr("20"))));
}

TEST_F(ClientRangeTest, NoticesAnotherETag) {
  script({part(5, 12)});
  EXPECT_THAT(read(5, 8, {.etag = "\"v0\""}), Fails(ErrorCode::kChanged, HasSubstr("ETag")));
  script({with_header(part(5, 12), "ETag", "W/\"v1\"")});
  EXPECT_THAT(read(5, 8, {.etag = "v1"}), IsOk());
  Answer without = part(5, 12);
  without.headers.pop_back();
  script({without});
  EXPECT_THAT(read(5, 8, {.etag = "v1"}), IsOk());
}

TEST_F(ClientRangeTest, NoticesAFileReplacedInMidRead) {
  script({broken_part(0, 9, 4), with_header(part(4, 9), "ETag", "\"v2\"")});
  EXPECT_THAT(read(0, 10), Fails(ErrorCode::kChanged, HasSubstr("ETag")));
  script({broken_part(0, 9, 4), with_header(part(4, 9), "Content-Range", "bytes 4-9/30")});
  EXPECT_THAT(read(0, 10), Fails(ErrorCode::kChanged, HasSubstr("30")));
}

// ---- servers that ignore ranges -----------------------------------------------------

Answer whole_file() {
  return {.headers = {{"Content-Length", std::to_string(kFile.size())}},
          .body = std::string(kFile)};
}

TEST_F(ClientRangeTest, TakesTheStartOfAWholeFile) {
  Answer endless = whole_file();
  endless.error = Error{ErrorCode::kInternal, "the transfer was not ended"};
  script({endless});
  const auto reply = read(0, 8);
  ASSERT_THAT(reply, IsOk());
  EXPECT_TRUE(reply->range_ignored);
  EXPECT_EQ(reply->received, 8U);
  EXPECT_EQ(reply->total, 20U);
  EXPECT_EQ(taken_, "01234567");
}

TEST_F(ClientRangeTest, TakesAWholeFileThatIsShorter) {
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

TEST_F(ClientRangeTest, DoesNotGuessWhereAnUnframedFileEnds) {
  script({{.body = std::string(kFile)}});
  EXPECT_THAT(read(0, 30), Fails(ErrorCode::kUnsupported, HasSubstr("how long")));
  script({{.body = std::string(kFile)}});
  EXPECT_THAT(read(0, 30, {.size = 20}), IsOk());
  script({{.body = std::string(kFile)}});
  EXPECT_THAT(read(0, 19, {.size = 19}), Fails(ErrorCode::kCorrupt, HasSubstr("past byte 19")));
}

TEST_F(ClientRangeTest, RefusesAWholeFileForALaterRange) {
  script({whole_file()});
  EXPECT_THAT(read(1, 8), Fails(ErrorCode::kUnsupported,
                                AllOf(HasSubstr("bytes=1-8"), HasSubstr("download the file"))));
}

TEST_F(ClientRangeTest, StartsAWholeFileAgainAfterABreak) {
  Answer broken = whole_file();
  broken.body.resize(12);
  broken.error = kReset;
  script({broken, whole_file()});
  const auto reply = read(0, 16);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->received, 16U);
  EXPECT_EQ(taken_, kFile.substr(0, 16));
  EXPECT_EQ(observer_.reads().at(0).bytes, 28U);
}

TEST_F(ClientRangeTest, AWholeFileThatAlwaysBreaksAtTheSamePlaceIsGivenUp) {
  Answer broken = whole_file();
  broken.body.resize(12);
  broken.error = kReset;
  script(std::deque<Answer>(20, broken));
  EXPECT_THAT(read(0, 16), Fails(ErrorCode::kUnavailable, _));
  EXPECT_THAT(transport_.requests, SizeIs(6));
}

TEST_F(ClientRangeTest, NoticesAWholeFileOfAnotherSize) {
  script({whole_file()});
  EXPECT_THAT(read(0, 8, {.size = 21}), Fails(ErrorCode::kChanged, _));
}

TEST_F(ClientRangeTest, TakesA200WithAFittingContentRange) {
  Answer odd = part(5, 12);
  odd.status = 200;
  script({odd});
  const auto reply = read(5, 8);
  ASSERT_THAT(reply, IsOk());
  EXPECT_FALSE(reply->range_ignored);
  EXPECT_EQ(taken_, "56789abc");
  script({with_header(odd, "Content-Range", "bytes 0-7/20")});
  EXPECT_THAT(read(5, 8), Fails(ErrorCode::kCorrupt, _));
}

// ---- 416 ----------------------------------------------------------------------------

Answer refusal(const std::string& content_range) {
  return {.status = 416, .headers = {{"Content-Range", content_range}}, .body = "<html>"};
}

TEST_F(ClientRangeTest, AsksOnceMoreAfterAnImplausibleRefusal) {
  script({refusal("bytes */177"), part(5, 12)});
  ASSERT_THAT(read(5, 8, {.size = 20}), IsOk());
  EXPECT_THAT(clock_.sleeps(), SizeIs(1));
  EXPECT_EQ(observer_.retries().at(0).reason, "status 416");
}

TEST_F(ClientRangeTest, ASecondRefusalNamesRangeAndTotal) {
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

TEST_F(ClientRangeTest, ARefusalPastAnUnknownEndIsTheCallersFault) {
  script({refusal("bytes */5")});
  EXPECT_THAT(read(5, 8), Fails(ErrorCode::kInvalidArgument, HasSubstr("bytes 5-12")));
  EXPECT_THAT(transport_.requests, SizeIs(1));
}

TEST_F(ClientRangeTest, ARefusalTellsAnEmptyFile) {
  script({refusal("bytes */0")});
  const auto reply = read(0, 8);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->head.status, 416);
  EXPECT_EQ(reply->total, 0U);
}

}  // namespace
}  // namespace gridscope::http
