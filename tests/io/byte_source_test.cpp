#include "gridscope/io/byte_source.hpp"

#include <gmock/gmock.h>

#include "gridscope/io/memory_source.hpp"
#include "support/fakes.hpp"
#include "support/matchers.hpp"

namespace gridscope::io {
namespace {

using test::Fails;
using test::Fault;
using test::FaultySource;
using test::IsOk;
using test::to_bytes;
using test::to_text;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<ByteSource> alphabet() {
  return make_memory_source(to_bytes("abcdefghij"), {.name = "letters", .version = "1"});
}

TEST(CheckRange, AcceptsWhatLiesInside) {
  const auto source = alphabet();
  EXPECT_THAT(check_range(*source, 0, 10), IsOk());
  EXPECT_THAT(check_range(*source, 9, 1), IsOk());
  EXPECT_THAT(check_range(*source, 10, 0), IsOk());
}

TEST(CheckRange, RefusesWhatReachesBeyondTheEnd) {
  const auto source = alphabet();
  EXPECT_THAT(
      check_range(*source, 9, 2),
      Fails(ErrorCode::kInvalidArgument, "2 bytes at 9 asked of \"letters\", which has 10 bytes"));
  EXPECT_THAT(check_range(*source, 11, 0), Fails(ErrorCode::kInvalidArgument, HasSubstr("at 11")));
  EXPECT_THAT(check_range(*source, 1, UINT64_MAX),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("at 1 asked")));
  EXPECT_THAT(check_range(*source, UINT64_MAX, 2),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("2 bytes at 18446744073709551615")));
}

TEST(ReadMany, FillsEveryRequestInAnyOrder) {
  const auto source = alphabet();
  std::vector<std::byte> tail(3);
  std::vector<std::byte> head(2);
  std::vector<std::byte> nothing;
  const ReadRequest requests[] = {{7, tail}, {0, head}, {10, nothing}};
  ASSERT_THAT(source->read_many(requests), IsOk());
  EXPECT_EQ(to_text(tail), "hij");
  EXPECT_EQ(to_text(head), "ab");
}

TEST(ReadMany, PassesTheFirstErrorOut) {
  const FaultySource source(alphabet(), {.fault = Fault::kChanged, .fault_at = 4});
  std::vector<std::byte> one(1);
  std::vector<std::byte> two(1);
  const ReadRequest requests[] = {{0, one}, {4, two}};
  EXPECT_THAT(source.read_many(requests), Fails(ErrorCode::kChanged, HasSubstr("not the one")));
}

// Through four bytes: what was handed on.
std::vector<std::string> read_through(const ByteSource& source, const ByteRange& range,
                                      Status expected = {}) {
  std::vector<std::string> used;
  std::vector<std::byte> window(4);
  const Status status = source.read_through(range, window, [&](std::span<const std::byte> bytes) {
    used.push_back(to_text(bytes));
    return expected;
  });
  EXPECT_EQ(status.has_value(), expected.has_value());
  return used;
}

TEST(ReadThrough, HandsOnAWindowAtATime) {
  const auto source = alphabet();
  EXPECT_THAT(read_through(*source, {.offset = 1, .length = 9}), ElementsAre("bcde", "fghi", "j"));
  EXPECT_THAT(read_through(*source, {.offset = 0, .length = 4}), ElementsAre("abcd"));
  EXPECT_THAT(read_through(*source, {.offset = 10, .length = 0}), IsEmpty());
}

TEST(ReadThrough, EndsWithTheFirstFailure) {
  const auto source = alphabet();
  EXPECT_THAT(read_through(*source, {.offset = 0, .length = 10}, fail(ErrorCode::kCorrupt, "no")),
              ElementsAre("abcd"));
  const FaultySource broken(alphabet(), {.fault = Fault::kChanged, .fault_at = 5});
  std::vector<std::byte> window(4);
  int used = 0;
  const auto count = [&](std::span<const std::byte>) -> Status {
    ++used;
    return {};
  };
  EXPECT_THAT(broken.read_through({.offset = 0, .length = 10}, window, count),
              Fails(ErrorCode::kChanged, HasSubstr("not the one")));
  EXPECT_EQ(used, 1);
  EXPECT_THAT(broken.read_through({.offset = 8, .length = 3}, window, count),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("3 bytes at 8")));
  EXPECT_EQ(used, 1) << "nothing is read of a range that reaches beyond the end";
}

TEST(FaultySource, FailsOnlyWhereAndWhenPlanned) {
  const FaultySource source(alphabet(),
                            {.fault = Fault::kShortRead, .fault_at = 4, .spare = 1, .times = 1});
  std::vector<std::byte> all(10);
  std::vector<std::byte> tail(5);
  EXPECT_THAT(source.read_at(0, all), IsOk());
  EXPECT_THAT(source.read_at(5, tail), IsOk());
  EXPECT_THAT(source.read_at(0, all), Fails(ErrorCode::kUnavailable, HasSubstr("closed early")));
  EXPECT_THAT(source.read_at(0, all), IsOk());
}

TEST(FaultySource, FlipsOneBit) {
  const FaultySource source(alphabet(), {.fault = Fault::kFlippedBit, .fault_at = 2});
  std::vector<std::byte> bytes(4);
  EXPECT_THAT(source.read_at(0, bytes), IsOk());
  EXPECT_EQ(to_text(bytes), "abbd");
}

}  // namespace
}  // namespace gridscope::io
