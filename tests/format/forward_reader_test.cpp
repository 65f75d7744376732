#include "gridscope/format/forward_reader.hpp"

#include <gmock/gmock.h>

#include "gridscope/io/memory_source.hpp"
#include "support/checkpoints.hpp"
#include "support/fakes.hpp"
#include "support/matchers.hpp"

namespace gridscope::format {
namespace {

using test::Fails;
using test::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kNoLimit = 1'000'000'000;

test::RecordingSource counting(std::size_t size) {
  test::Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i % 251);
  return test::RecordingSource(
      io::make_memory_source(std::move(bytes), {.name = "memory", .version = ""}));
}

TEST(ForwardReader, ReadsNumbersAndBytesInOrder) {
  const auto source = counting(20);
  ForwardReader reader(source, kNoLimit);
  EXPECT_EQ(reader.number<std::uint8_t>("a"), 0);
  EXPECT_EQ(reader.number<std::uint16_t>("b"), 0x0201);
  EXPECT_EQ(reader.number<std::uint32_t>("c"), 0x06050403U);
  const auto bytes = reader.bytes(3, "d");
  ASSERT_THAT(bytes, IsOk());
  EXPECT_THAT(*bytes, ElementsAre(std::byte{7}, std::byte{8}, std::byte{9}));
  EXPECT_EQ(reader.position(), 10U);
  EXPECT_EQ(reader.remaining(), 10U);
  EXPECT_THAT(source.single_reads(), ElementsAre(io::ByteRange{0, 20}));
}

TEST(ForwardReader, NeedDoesNotMoveOn) {
  const auto source = counting(8);
  ForwardReader reader(source, kNoLimit);
  EXPECT_THAT(reader.buffered(), IsEmpty());
  ASSERT_THAT(reader.need(4, "a"), IsOk());
  EXPECT_EQ(reader.buffered().size(), 8U);
  EXPECT_EQ(reader.position(), 0U);
}

TEST(ForwardReader, PiecesDoubleUpToACap) {
  const auto source = counting(32 * 1024 * 1024);
  ForwardReader reader(source, kNoLimit);
  while (reader.remaining() > 0) {
    ASSERT_THAT(reader.bytes(1024, "kilobyte"), IsOk());
  }
  std::uint64_t end = 0;
  std::uint64_t piece = kFirstPiece;
  for (const io::ByteRange& read : source.single_reads()) {
    EXPECT_EQ(read.offset, end);
    EXPECT_EQ(read.length, std::min(piece, source.size() - end));
    end = read.end();
    piece = std::min(2 * piece, kLargestPiece);
  }
  EXPECT_EQ(end, source.size());
}

TEST(ForwardReader, OneLargeThingIsReadAtOnce) {
  const auto source = counting(4 * 1024 * 1024);
  ForwardReader reader(source, kNoLimit);
  ASSERT_THAT(reader.number<std::uint8_t>("a"), IsOk());
  const auto bytes = reader.bytes(3 * 1024 * 1024, "b");
  ASSERT_THAT(bytes, IsOk());
  EXPECT_EQ((*bytes)[251 * 8000], std::byte{1});
  EXPECT_EQ(source.single_reads().size(), 2U);
}

TEST(ForwardReader, WhatIsSkippedIsNotRead) {
  const auto source = counting(4 * 1024 * 1024);
  ForwardReader reader(source, kNoLimit);
  ASSERT_THAT(reader.skip(10, "a"), IsOk());
  ASSERT_THAT(reader.number<std::uint8_t>("b"), IsOk());
  ASSERT_THAT(reader.skip(3 * 1024 * 1024, "c"), IsOk());
  const std::uint64_t position = reader.position();
  EXPECT_EQ(position, 11U + 3 * 1024 * 1024);
  EXPECT_EQ(reader.number<std::uint8_t>("d"), position % 251);
  EXPECT_THAT(source.single_reads(), ElementsAre(io::ByteRange{10, kFirstPiece},
                                                 io::ByteRange{position, 2 * kFirstPiece}));
}

TEST(ForwardReader, TheEndOfTheFileIsAnErrorThatNamesThePosition) {
  const auto source = counting(10);
  ForwardReader reader(source, kNoLimit);
  ASSERT_THAT(reader.skip(5, "a"), IsOk());
  EXPECT_THAT(reader.number<std::uint64_t>("thing"),
              Fails(ErrorCode::kCorrupt,
                    HasSubstr("thing at byte 5 takes 8 bytes, but the file has only 5 more")));
  EXPECT_THAT(reader.skip(6, "thing"), Fails(ErrorCode::kCorrupt, HasSubstr("only 5 more")));
  EXPECT_THAT(reader.skip(5, "rest"), IsOk());
  EXPECT_EQ(reader.remaining(), 0U);
}

TEST(ForwardReader, TheLimitIsHeldBeforeAnythingIsRead) {
  const auto source = counting(100);
  ForwardReader reader(source, 50);
  EXPECT_THAT(reader.bytes(51, "thing"), Fails(ErrorCode::kLimit, HasSubstr("limit of 50 bytes")));
  EXPECT_THAT(source.single_reads(), IsEmpty());
  EXPECT_THAT(reader.bytes(50, "thing"), IsOk());
  EXPECT_THAT(reader.skip(1, "thing"), Fails(ErrorCode::kLimit, HasSubstr("thing at byte 50")));
}

TEST(ForwardReader, FailuresOfTheSourcePassThrough) {
  const test::FaultySource source(
      io::make_memory_source(test::Bytes(100), {.name = "memory", .version = ""}),
      {.fault = test::Fault::kChanged});
  ForwardReader reader(source, kNoLimit);
  EXPECT_THAT(reader.number<std::uint8_t>("a"), Fails(ErrorCode::kChanged, HasSubstr("")));
}

}  // namespace
}  // namespace gridscope::format
