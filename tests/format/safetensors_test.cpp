#include "gridscope/format/safetensors.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "gridscope/core/endian.hpp"
#include "gridscope/io/memory_source.hpp"
#include "support/checkpoints.hpp"
#include "support/fakes.hpp"
#include "support/matchers.hpp"

namespace gridscope::format {
namespace {

using test::bytes_of;
using test::Fails;
using test::IsOk;
using test::SafetensorsBuilder;
using test::SafetensorsDefect;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

std::unique_ptr<io::ByteSource> memory(test::Bytes bytes) {
  return io::make_memory_source(std::move(bytes), {.name = "memory", .version = ""});
}

Result<TensorTable> read(test::Bytes file, const Limits& limits = {}) {
  return read_safetensors_header(*memory(std::move(file)), limits);
}

Result<TensorTable> read_text(std::string_view header, std::size_t data_bytes = 0,
                              const Limits& limits = {}) {
  return read(test::safetensors_file(header, data_bytes), limits);
}

auto corrupt(const char* message) {
  return Fails(ErrorCode::kCorrupt, HasSubstr(message));
}

SafetensorsBuilder small() {
  SafetensorsBuilder builder;
  builder.metadata("format", "pt")
      .tensor("a", Dtype::kF32, {2, 3})
      .tensor("b", Dtype::kBF16, {4})
      .tensor("scalar", Dtype::kI64, {});
  return builder;
}

TEST(SafetensorsHeader, ReadsNamesTypesShapesAndPlaces) {
  const auto table = read(small().build());
  ASSERT_THAT(table, IsOk());
  const std::uint64_t data = 8 + small().header().size();
  EXPECT_EQ(table->header_bytes, data);
  EXPECT_THAT(table->metadata, ElementsAre(Pair("format", "pt")));
  const TensorInfo a{
      .name = "a", .dtype = Dtype::kF32, .shape = {2, 3}, .offset = data, .bytes = 24};
  const TensorInfo b{
      .name = "b", .dtype = Dtype::kBF16, .shape = {4}, .offset = data + 24, .bytes = 8};
  const TensorInfo scalar{
      .name = "scalar", .dtype = Dtype::kI64, .shape = {}, .offset = data + 32, .bytes = 8};
  EXPECT_THAT(table->tensors, ElementsAre(a, b, scalar));
}

TEST(SafetensorsHeader, AcceptsEveryType) {
  SafetensorsBuilder builder;
  std::size_t types = 0;
  for (const DtypeInfo& info : all_dtypes()) {
    if (!info.in_safetensors) continue;
    builder.tensor(std::string(info.name), info.dtype, {4, 2});
    ++types;
  }
  EXPECT_EQ(types, 22U);
  const auto table = read(builder.build());
  ASSERT_THAT(table, IsOk());
  for (const TensorInfo& tensor : table->tensors) EXPECT_EQ(dtype_name(tensor.dtype), tensor.name);
}

TEST(SafetensorsHeader, AcceptsWhatTheReferenceAccepts) {
  EXPECT_THAT(read_text("{}"), IsOk());
  EXPECT_THAT(read_text("{}      "), IsOk());
  EXPECT_THAT(read_text("\t\n{}\r "), IsOk());
  EXPECT_THAT(read_text(R"({"__metadata__":{"a":"b"}})"), IsOk());
  EXPECT_THAT(read_text(R"({"__metadata__":null})"), IsOk());
  EXPECT_THAT(read_text(R"({"a":{"dtype":"F4","shape":[1,2],"data_offsets":[0,1]}})", 1), IsOk());
  EXPECT_THAT(
      read_text(R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0,1],"x":{"y":[1,null]}}})", 1),
      IsOk());
}

TEST(SafetensorsHeader, SortsByOffsetWithZeroSizesFirst) {
  const auto table =
      read_text(R"({"last":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},)"
                R"("empty2":{"dtype":"U8","shape":[0],"data_offsets":[2,2]},)"
                R"("first":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                R"("empty1":{"dtype":"F64","shape":[9223372036854775807,0],"data_offsets":[2,2]}})",
                3);
  ASSERT_THAT(table, IsOk());
  std::vector<std::string> names;
  for (const TensorInfo& tensor : table->tensors) names.push_back(tensor.name);
  EXPECT_THAT(names, ElementsAre("first", "empty2", "empty1", "last"));
}

TEST(SafetensorsHeader, AZeroSizeTensorMustLieOnABoundary) {
  EXPECT_THAT(read_text(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                        R"("e":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})",
                        2),
              corrupt("overlaps"));
}

TEST(SafetensorsHeader, EveryDefectOfTheBuilderIsNamed) {
  const auto with = [](SafetensorsDefect defect) { return read(small().build(defect)); };
  EXPECT_THAT(with(SafetensorsDefect::kTruncatedHeader), corrupt("bytes follow"));
  EXPECT_THAT(with(SafetensorsDefect::kTruncatedData), corrupt("1 byte missing"));
  EXPECT_THAT(with(SafetensorsDefect::kTrailingByte), corrupt("1 byte too many"));
  EXPECT_THAT(with(SafetensorsDefect::kHeaderNotJson), corrupt("header"));
  EXPECT_THAT(with(SafetensorsDefect::kHeaderTooLong), corrupt("header length"));
  EXPECT_THAT(with(SafetensorsDefect::kUnknownDtype), corrupt("unknown type \"F31\""));
  EXPECT_THAT(with(SafetensorsDefect::kWrongSize), corrupt("needs 48 bytes"));
  EXPECT_THAT(with(SafetensorsDefect::kHole), corrupt("belong to no tensor"));
  EXPECT_THAT(with(SafetensorsDefect::kOverlap), corrupt("overlaps"));
  EXPECT_THAT(with(SafetensorsDefect::kDuplicateName), corrupt("tensor \"a\" is given twice"));
}

// What JSON writes as a number but the format does not take as one.
TEST(SafetensorsHeader, OffsetsAndDimensionsAreWholeNumbers) {
  for (const char* number : {"1.0", "1e3", "-0", "-1", "18446744073709551616", "\"1\"", "null"}) {
    EXPECT_THAT(
        read_text(
            fmt::format(R"({{"a":{{"dtype":"U8","shape":[{}],"data_offsets":[0,1]}}}})", number),
            1),
        corrupt("shape of tensor \"a\": expected a whole number"))
        << number;
  }
}

TEST(SafetensorsHeader, TheProductIsTakenFromLeftToRight) {
  EXPECT_THAT(
      read_text(R"({"a":{"dtype":"U8","shape":[9223372036854775808,4,0],"data_offsets":[0,0]}})"),
      corrupt("more than 2^64-1 elements"));
  EXPECT_THAT(
      read_text(R"({"a":{"dtype":"U8","shape":[0,9223372036854775808,4],"data_offsets":[0,0]}})"),
      IsOk());
  EXPECT_THAT(
      read_text(R"({"a":{"dtype":"F64","shape":[1152921504606846976],"data_offsets":[0,0]}})"),
      corrupt("more than 2^64-1 bits"));
}

// A file with two faults is refused for the one that the reference meets first.
TEST(SafetensorsHeader, ChecksInTheOrderOfTheReference) {
  EXPECT_THAT(read_text(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[1,9]}})"),
              corrupt("belong to no tensor"));
  EXPECT_THAT(read_text(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,9]}})"),
              corrupt("do not end on a byte"));
  EXPECT_THAT(read_text(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,9]}})"),
              corrupt("needs 3 bytes"));
}

TEST(SafetensorsHeader, LimitsAreHeldAndCanBeRaised) {
  const std::string deep = std::string(20, '[') + std::string(20, ']');
  const std::string header = fmt::format(
      R"({{"name":{{"dtype":"U8","shape":[1,1,1],"data_offsets":[0,1],"x":{}}}}})", deep);
  const Limits roomy{.json_depth = 30};
  EXPECT_THAT(read_text(header, 1, roomy), IsOk());
  EXPECT_THAT(read_text(header, 1), Fails(ErrorCode::kLimit, HasSubstr("nested")));
  const auto limited = [&](Limits limits) {
    limits.json_depth = 30;
    return read_text(header, 1, limits);
  };
  EXPECT_THAT(limited({.name_bytes = 3}), Fails(ErrorCode::kLimit, HasSubstr("\"name\"")));
  EXPECT_THAT(limited({.rank = 2}), Fails(ErrorCode::kLimit, HasSubstr("more than 2 dimensions")));
  EXPECT_THAT(limited({.tensors = 0}), Fails(ErrorCode::kLimit, HasSubstr("more than 0 tensors")));
  EXPECT_THAT(limited({.header_bytes = 10}), Fails(ErrorCode::kLimit, HasSubstr("limit is 10")));
}

TEST(SafetensorsHeader, SaysWhichLimitItPasses) {
  const std::string header = R"({"nm":{"dtype":"U8","shape":[1,1],"data_offsets":[0,1]},)"
                             R"("no":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})";
  for (const Limit limit : {&Limits::header_bytes, &Limits::tensors, &Limits::name_bytes,
                            &Limits::json_depth, &Limits::rank}) {
    Limits limits;
    limits.*limit = 1;
    const auto table = read_text(header, 2, limits);
    ASSERT_FALSE(table);
    EXPECT_EQ(table.error().remedy, limit_remedy(limit));
  }
}

TEST(SafetensorsHeader, ANarrowLimitCastsNoDoubtOnTheFile) {
  test::Bytes file = test::to_bytes("12345678{\"a\":");
  store_le<std::uint64_t>(file, 5'000);
  const auto narrow = safetensors_header_length(file, 9'000, {.header_bytes = 10});
  ASSERT_FALSE(narrow);
  EXPECT_EQ(narrow.error().code, ErrorCode::kLimit);
  EXPECT_EQ(narrow.error().remedy, limit_remedy(&Limits::header_bytes));
  file[8] = std::byte{'<'};
  const auto doubtful = safetensors_header_length(file, 9'000, {.header_bytes = 10});
  ASSERT_FALSE(doubtful);
  EXPECT_THAT(doubtful.error().remedy, HasSubstr("most likely this is no safetensors file"));
}

TEST(SafetensorsHeader, ErrorsGiveTheBytePosition) {
  EXPECT_THAT(read_text("{\"a\xFF\"}"), corrupt("byte 11 of the file"));
  EXPECT_THAT(read_text("{\"a\":1}"), corrupt("byte"));
}

TEST(SafetensorsHeader, NamesFromTheFileCannotReachTheTerminal) {
  const auto table = read_text("{\"\\u001b[2Ja\":1}");
  ASSERT_THAT(table, corrupt("\\x1B[2Ja"));
  EXPECT_THAT(table.error().message, ::testing::Not(HasSubstr("\x1B")));
}

TEST(SafetensorsHeader, AnLfsPointerIsNamed) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') +
      "\nsize 5000000000\n";
  EXPECT_THAT(read(test::to_bytes(pointer)),
              Fails(ErrorCode::kCorrupt,
                    AllOf(HasSubstr("git-lfs-pointer"), HasSubstr("a file of 5000000000 bytes"),
                          HasSubstr("git lfs pull"))));
}

TEST(SafetensorsHeader, AnotherContainerIsNamed) {
  EXPECT_THAT(read(test::GgufBuilder().build()),
              Fails(ErrorCode::kUnsupported, HasSubstr("found gguf")));
}

TEST(SafetensorsHeader, TheLengthFieldIsCheckedBeforeAnythingElse) {
  EXPECT_THAT(safetensors_header_length({}, 0), corrupt("file of 0 bytes"));
  EXPECT_THAT(read(test::to_bytes("1234567")), corrupt("file of 7 bytes"));
  EXPECT_THAT(read_text(""), corrupt("header length 0"));
  test::Bytes file(8);
  store_le<std::uint64_t>(file, 100'000'000);
  EXPECT_EQ(safetensors_header_length(file, 100'000'008), 100'000'000U);
  EXPECT_THAT(safetensors_header_length(file, 100'000'007), corrupt("only 99999999 bytes follow"));
  store_le<std::uint64_t>(file, 100'000'001);
  EXPECT_THAT(safetensors_header_length(file, 200'000'000),
              Fails(ErrorCode::kLimit, HasSubstr("100000001")));
  store_le<std::uint64_t>(file, ~std::uint64_t{0});
  EXPECT_THAT(safetensors_header_length(file, ~std::uint64_t{0}),
              Fails(ErrorCode::kLimit, HasSubstr("18446744073709551615")));
}

TEST(ReadSafetensorsHeader, ASmallHeaderTakesOneRead) {
  const test::RecordingSource source(memory(small().build()));
  ASSERT_THAT(read_safetensors_header(source), IsOk());
  EXPECT_THAT(source.single_reads(), ElementsAre(io::ByteRange{0, source.size()}));
}

TEST(ReadSafetensorsHeader, ALargeHeaderTakesASecondReadForTheRest) {
  SafetensorsBuilder builder;
  for (int i = 0; i < 3000; ++i) builder.tensor(fmt::format("t{}", i), Dtype::kU8, {100});
  const test::RecordingSource source(memory(builder.build()));
  const auto table = read_safetensors_header(source);
  ASSERT_THAT(table, IsOk());
  EXPECT_THAT(table->tensors, SizeIs(3000));
  const std::uint64_t rest = 8 + builder.header().size() - kSpeculativeBytes;
  EXPECT_THAT(source.single_reads(), ElementsAre(io::ByteRange{0, kSpeculativeBytes},
                                                 io::ByteRange{kSpeculativeBytes, rest}));
}

// Whatever is cut off a file, it is never accepted.
TEST(ReadSafetensorsHeader, EveryTruncationIsRefused) {
  const test::Bytes file = small().build();
  for (std::size_t length = 0; length < file.size(); ++length) {
    EXPECT_FALSE(read({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length)}))
        << length;
  }
}

RC_GTEST_PROP(SafetensorsHeaderProperty, WhatIsWrittenIsRead, ()) {
  SafetensorsBuilder builder;
  const auto shapes = *rc::gen::container<std::vector<std::vector<std::uint8_t>>>(rc::gen::resize(
      4, rc::gen::container<std::vector<std::uint8_t>>(rc::gen::inRange<std::uint8_t>(0, 5))));
  std::vector<test::Shape> written;
  for (const auto& shape : shapes) {
    written.emplace_back(shape.begin(), shape.end());
    builder.tensor(fmt::format("t{}", written.size()), Dtype::kF32, written.back());
  }
  const auto table = read(builder.build());
  RC_ASSERT(table.has_value());
  RC_ASSERT(table->tensors.size() == written.size());
  std::uint64_t end = table->header_bytes;
  for (const TensorInfo& tensor : table->tensors) {
    RC_ASSERT(tensor.offset == end);
    RC_ASSERT(tensor.bytes == 4 * tensor.elements());
    end += tensor.bytes;
  }
}

}  // namespace
}  // namespace gridscope::format
