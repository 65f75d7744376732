#include "gridscope/format/gguf.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "gridscope/core/endian.hpp"
#include "gridscope/io/memory_source.hpp"
#include "support/checkpoints.hpp"
#include "support/fakes.hpp"
#include "support/matchers.hpp"

namespace gridscope::format {
namespace {

using test::Fails;
using test::GgufBuilder;
using test::GgufDefect;
using test::IsOk;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::unique_ptr<io::ByteSource> memory(test::Bytes bytes) {
  return io::make_memory_source(std::move(bytes), {.name = "memory", .version = ""});
}

Result<GgufHeader> read(test::Bytes file, const Limits& limits = {}) {
  return read_gguf_header(*memory(std::move(file)), limits);
}

auto corrupt(const char* message) {
  return Fails(ErrorCode::kCorrupt, HasSubstr(message));
}

GgufBuilder small() {
  GgufBuilder builder;
  builder.key("general.architecture", std::string("llama"))
      .tensor("token_embd.weight", Dtype::kQ4_0, {64, 3})
      .tensor("output_norm.weight", Dtype::kF32, {5});
  return builder;
}

// Replaces the first `from` in a file; both have the same length.
test::Bytes patched(test::Bytes file, std::string_view from, std::string_view to) {
  EXPECT_EQ(from.size(), to.size());
  std::string text = test::to_text(file);
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  text.replace(at, to.size(), to);
  return test::to_bytes(text);
}

std::string u32(std::uint32_t value) {
  std::string bytes(4, '\0');
  store_le(std::as_writable_bytes(std::span(bytes)), value);
  return bytes;
}

std::string u64(std::uint64_t value) {
  std::string bytes(8, '\0');
  store_le(std::as_writable_bytes(std::span(bytes)), value);
  return bytes;
}

TEST(GgufHeader, ReadsTensorsWithTheContiguousDimensionLast) {
  const auto header = read(small().build());
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header->version, 3U);
  EXPECT_EQ(header->alignment, 32U);
  EXPECT_EQ(header->split, std::nullopt);
  const std::uint64_t data = header->table.header_bytes;
  EXPECT_EQ(data % 32, 0U);
  TensorInfo embedding{.name = "token_embd.weight",
                       .dtype = Dtype::kQ4_0,
                       .shape = {3, 64},
                       .offset = data,
                       .bytes = 3 * 2 * 18};
  TensorInfo norm{.name = "output_norm.weight",
                  .dtype = Dtype::kF32,
                  .shape = {5},
                  .offset = data + 128,
                  .bytes = 20};
  EXPECT_THAT(header->table.tensors, ElementsAre(embedding, norm));
}

TEST(GgufHeader, WritesEveryMetadataTypeAsText) {
  GgufBuilder builder;
  builder.key("a", std::uint8_t{255})
      .key("b", std::int8_t{-1})
      .key("c", std::uint16_t{65535})
      .key("d", std::int16_t{-2})
      .key("e", std::uint32_t{4294967295})
      .key("f", std::int32_t{-3})
      .key("g", 0.5F)
      .key("h", true)
      .key("i", std::string("text"))
      .key("j", std::uint64_t{18446744073709551615U})
      .key("k", std::int64_t{-4})
      .key("l", 0.1)
      .key("m", std::vector<std::string>{"x", "", "yz"})
      .key("n", std::vector<std::uint32_t>{1, 2});
  const auto header = read(builder.build());
  ASSERT_THAT(header, IsOk());
  EXPECT_THAT(
      header->table.metadata,
      ElementsAre(Pair("a", "255"), Pair("b", "-1"), Pair("c", "65535"), Pair("d", "-2"),
                  Pair("e", "4294967295"), Pair("f", "-3"), Pair("g", "0.5"), Pair("h", "true"),
                  Pair("i", "text"), Pair("j", "18446744073709551615"), Pair("k", "-4"),
                  Pair("l", "0.1"), Pair("m", "[string; 3]"), Pair("n", "[u32; 2]")));
  EXPECT_EQ(header->odd_bools, 0U);
}

TEST(GgufHeader, AcceptsVersion2AndOtherAlignments) {
  EXPECT_THAT(read(small().version(2).build()), IsOk());
  for (const std::uint32_t alignment : {1U, 8U, 4096U}) {
    GgufBuilder builder;
    builder.alignment(alignment).tensor("a", Dtype::kI8, {5}).tensor("b", Dtype::kI8, {5});
    const auto header = read(builder.build());
    ASSERT_THAT(header, IsOk());
    EXPECT_EQ(header->alignment, alignment);
    EXPECT_EQ(header->table.header_bytes % alignment, 0U);
    EXPECT_EQ(header->table.tensors[1].offset % alignment, 0U);
  }
}

TEST(GgufHeader, ThePaddingBehindTheLastTensorMayBeMissing) {
  test::Bytes file = small().build();
  file.resize(file.size() - 12);
  EXPECT_THAT(read(file), IsOk());
  file.pop_back();
  EXPECT_THAT(read(file), corrupt("takes 20 bytes at data offset 128"));
}

TEST(GgufHeader, AFileWithoutTensorsNeedsNoPadding) {
  GgufBuilder builder;
  builder.key("a", true);
  test::Bytes file = builder.build();
  file.resize(4 + 4 + 8 + 8 + 8 + 1 + 4 + 1);
  const auto header = read(file);
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header->table.header_bytes, file.size());
}

TEST(GgufHeader, AScalarAndAnEmptyTensorAreTensors) {
  GgufBuilder builder;
  builder.tensor("scalar", Dtype::kF32, {}).tensor("empty", Dtype::kF32, {4, 0});
  const auto header = read(builder.build());
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header->table.tensors[0].bytes, 4U);
  EXPECT_EQ(header->table.tensors[1].bytes, 0U);
}

TEST(GgufHeader, EveryDefectOfTheBuilderIsNamed) {
  const auto with = [](GgufDefect defect) { return read(small().build(defect)); };
  EXPECT_THAT(with(GgufDefect::kBadMagic), corrupt("expected the bytes \"GGUF\" at byte 0"));
  EXPECT_THAT(with(GgufDefect::kVersion1), Fails(ErrorCode::kUnsupported, HasSubstr("version 1")));
  EXPECT_THAT(with(GgufDefect::kBigEndian),
              Fails(ErrorCode::kUnsupported, HasSubstr("found gguf-big-endian")));
  EXPECT_THAT(with(GgufDefect::kTruncatedHeader), corrupt("but the file has only 3 more"));
  EXPECT_THAT(with(GgufDefect::kTruncatedData), corrupt("tensor \"output_norm.weight\" takes 20"));
  EXPECT_THAT(with(GgufDefect::kDuplicateKey),
              corrupt("key \"general.architecture\" is given twice"));
  EXPECT_THAT(with(GgufDefect::kDuplicateTensor),
              corrupt("tensor \"token_embd.weight\" is given twice"));
  EXPECT_THAT(with(GgufDefect::kHole), corrupt("lies at data offset 160, expected 128"));
}

TEST(GgufHeader, VersionsOutsideTwoAndThreeAreRefused) {
  EXPECT_THAT(read(small().version(0).build()), corrupt("GGUF version 0"));
  EXPECT_THAT(read(small().version(4).build()),
              Fails(ErrorCode::kUnsupported, HasSubstr("GGUF version 4")));
}

TEST(GgufHeader, CountsAreHeldAgainstTheBytesThatFollow) {
  const std::string start = "GGUF" + u32(3);
  const auto with = [&](std::uint64_t tensors, std::uint64_t keys) {
    return read(test::to_bytes(start + u64(tensors) + u64(keys) + std::string(100, '\0')));
  };
  EXPECT_THAT(with(std::uint64_t{1} << 63, 0), corrupt("tensor count at byte 8 is negative"));
  EXPECT_THAT(with(5, 0), corrupt("tensor count at byte 8 is 5, more than the 108 bytes"));
  EXPECT_THAT(with(0, ~std::uint64_t{0}), corrupt("key count at byte 16 is negative: -1"));
  EXPECT_THAT(with(0, 8), corrupt("key count at byte 16 is 8, more than the 100 bytes"));
}

TEST(GgufHeader, StringsAreHeldAgainstTheBytesThatFollow) {
  const test::Bytes file = small().build();
  const std::string_view name = "general.architecture";
  EXPECT_THAT(read(patched(file, u64(name.size()), u64(~std::uint64_t{0}))),
              corrupt("key at byte 24 is a string of 18446744073709551615 bytes"));
  EXPECT_THAT(read(patched(file, u64(name.size()), u64(0))), corrupt("key at byte 24 is empty"));
}

TEST(GgufHeader, ArraysAreHeldAgainstTheBytesThatFollow) {
  GgufBuilder builder;
  builder.key("list", std::vector<std::uint32_t>{7, 7});
  const test::Bytes file = builder.build();
  EXPECT_THAT(read(patched(file, u32(4) + u64(2), u32(4) + u64(std::uint64_t{1} << 62))),
              corrupt("array of 4,611,686,018,427,387,904 elements of type u32"));
  EXPECT_THAT(read(patched(file, u32(4) + u64(2), u32(9) + u64(2))),
              Fails(ErrorCode::kUnsupported, HasSubstr("array of arrays")));
  EXPECT_THAT(read(patched(file, u32(4) + u64(2), u32(13) + u64(2))),
              corrupt("unknown value type 13"));
}

TEST(GgufHeader, OddBoolsAreCounted) {
  GgufBuilder builder;
  builder.key("flags", std::vector<std::uint32_t>{0x02000100}).key("flag", true);
  const auto header = read(patched(patched(builder.build(), u32(4) + u64(1), u32(7) + u64(4)),
                                   "flag" + u32(7) + "\x01", "flag" + u32(7) + "\xFF"));
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header->odd_bools, 2U);
}

TEST(GgufHeader, AlignmentIsAPowerOfTwoInAU32) {
  const auto with = [](GgufBuilder::Value value) {
    GgufBuilder builder;
    return read(builder.key("general.alignment", std::move(value)).build());
  };
  EXPECT_THAT(with(std::uint32_t{0}), corrupt("general.alignment is 0 of type u32"));
  EXPECT_THAT(with(std::uint32_t{48}), corrupt("general.alignment is 48 of type u32"));
  EXPECT_THAT(with(std::uint64_t{32}), corrupt("general.alignment is 32 of type u64"));
  EXPECT_THAT(with(std::string("32")), corrupt("of type string"));
}

TEST(GgufHeader, TensorInfosAreChecked) {
  GgufBuilder builder;
  builder.tensor("t", Dtype::kQ4_0, {32, 7});
  const test::Bytes file = builder.build();
  const std::string dims = u64(32) + u64(7);
  EXPECT_THAT(read(patched(file, dims, u64(33) + u64(7))), corrupt("rows of 33 elements"));
  EXPECT_THAT(read(patched(file, dims, u64(32) + u64(std::uint64_t{1} << 63))),
              corrupt("a dimension of -9223372036854775808"));
  EXPECT_THAT(read(patched(file, dims, u64(std::uint64_t{1} << 32) + u64(std::uint64_t{1} << 31))),
              corrupt("more than 2^63-1 elements"));
  EXPECT_THAT(read(patched(file, "t" + u32(2), "t" + u32(5))), corrupt("has 5 dimensions"));
  const std::string type = u64(7) + u32(2);
  EXPECT_THAT(read(patched(file, type, u64(7) + u32(4))),
              Fails(ErrorCode::kUnsupported, HasSubstr("ggml no longer reads")));
  EXPECT_THAT(read(patched(file, type, u64(7) + u32(43))),
              Fails(ErrorCode::kUnsupported, HasSubstr("newer gridscope")));
}

TEST(GgufHeader, EveryTypeNumberHasItsBlock) {
  GgufBuilder builder;
  builder.tensor("t", Dtype::kF32, {512});
  const std::uint64_t at = 8 + 16 + 8 + 1 + 4 + 8;  // of the type number
  std::vector<std::string> names;
  for (std::uint32_t type = 0; type < 43; ++type) {
    test::Bytes file = builder.build();
    file.resize(file.size() + 8192);
    store_le(std::span(file).subspan(at), type);
    const auto header = read(file);
    if (!header) continue;
    names.emplace_back(dtype_name(header->table.tensors[0].dtype));
  }
  EXPECT_THAT(names, ElementsAre("F32", "F16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q8_1",
                                 "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "Q8_K", "IQ2_XXS",
                                 "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS",
                                 "I8", "I16", "I32", "I64", "F64", "IQ1_M", "BF16", "TQ1_0",
                                 "TQ2_0", "MXFP4", "NVFP4", "Q1_0", "Q2_0"));
}

TEST(GgufHeader, TensorNamesHaveUpTo63Bytes) {
  const auto with = [](std::size_t length) {
    GgufBuilder builder;
    return read(builder.tensor(std::string(length, 'n'), Dtype::kI8, {1}).build());
  };
  EXPECT_THAT(with(63), IsOk());
  EXPECT_THAT(with(64), corrupt("name of 64 bytes"));
}

GgufBuilder split(std::uint16_t number, std::uint16_t count, std::int32_t tensors) {
  GgufBuilder builder = small();
  builder.key("split.no", number).key("split.count", count).key("split.tensors.count", tensors);
  return builder;
}

TEST(GgufHeader, ReadsTheSplit) {
  const auto header = read(split(1, 3, 40).build());
  ASSERT_THAT(header, IsOk());
  ASSERT_TRUE(header->split.has_value());
  EXPECT_EQ(header->split->number, 1U);
  EXPECT_EQ(header->split->count, 3U);
  EXPECT_EQ(header->split->tensors, 40U);
}

TEST(GgufHeader, AMergedFileIsNotSplit) {
  const auto header = read(split(0, 0, 2).build());
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header->split, std::nullopt);
}

TEST(GgufHeader, RefusesSplitsThatCannotBe) {
  EXPECT_THAT(read(split(3, 3, 40).build()), corrupt("split.no is 3, expected less than"));
  EXPECT_THAT(read(split(0, 3, -1).build()), corrupt("split.tensors.count is -1"));
  EXPECT_THAT(read(split(0, 3, 1).build()), corrupt("this file alone has 2"));
  EXPECT_THAT(read(small().key("split.count", std::uint16_t{2}).build()),
              corrupt("needs the keys split.no"));
  EXPECT_THAT(read(small().key("split.count", std::string("2")).build()),
              corrupt("split.count is 2, expected a whole number"));
  EXPECT_THAT(read(split(0, 11, 40).build(), {.shards = 10}),
              Fails(ErrorCode::kLimit, HasSubstr("split.count is 11")));
}

TEST(GgufHeader, LimitsAreHeld) {
  EXPECT_THAT(read(small().build(), {.tensors = 1}),
              Fails(ErrorCode::kLimit, HasSubstr("2 tensors, the limit is 1")));
  EXPECT_THAT(read(small().build(), {.name_bytes = 5}),
              Fails(ErrorCode::kLimit, HasSubstr("key at byte 24")));
  EXPECT_THAT(read(small().build(), {.header_bytes = 60}),
              Fails(ErrorCode::kLimit, HasSubstr("limit of 60 bytes")));
}

TEST(GgufHeader, SaysWhichLimitItPasses) {
  for (const Limit limit :
       {&Limits::header_bytes, &Limits::tensors, &Limits::name_bytes, &Limits::shards}) {
    Limits limits;
    limits.*limit = 1;
    const auto header = read(split(0, 3, 40).build(), limits);
    ASSERT_FALSE(header);
    EXPECT_EQ(header.error().remedy, limit_remedy(limit));
  }
}

TEST(GgufHeader, LongListsAreWalkedOver) {
  std::vector<std::string> tokens;
  for (int i = 0; i < 100'000; ++i) tokens.push_back(fmt::format("token {}", i));
  GgufBuilder builder = small();
  builder.key("tokenizer.ggml.tokens", tokens);
  const test::RecordingSource source(memory(builder.build()));
  const auto header = read_gguf_header(source);
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(*header->table.find_metadata("tokenizer.ggml.tokens"), "[string; 100000]");
  EXPECT_LE(source.single_reads().size(), 4U);
}

TEST(GgufHeader, EveryTruncationOfTheHeaderIsRefused) {
  const test::Bytes file = split(1, 3, 40).build();
  const auto whole = read(file);
  ASSERT_THAT(whole, IsOk());
  for (std::size_t length = 0; length < whole->table.tensors.back().offset; ++length) {
    EXPECT_FALSE(read({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length)}))
        << length;
  }
}

RC_GTEST_PROP(GgufHeaderProperty, WhatIsWrittenIsRead, ()) {
  const auto alignment = *rc::gen::element<std::uint32_t>(1, 16, 32, 64);
  const auto sizes =
      *rc::gen::container<std::vector<std::uint16_t>>(rc::gen::inRange<std::uint16_t>(0, 100));
  GgufBuilder builder;
  builder.alignment(alignment);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    builder.tensor(fmt::format("t{}", i), Dtype::kF16, {sizes[i], 3});
  }
  const test::Bytes file = builder.build();
  const auto header = read(file);
  RC_ASSERT(header.has_value());
  RC_ASSERT(header->table.tensors.size() == sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const TensorInfo& tensor = header->table.tensors[i];
    RC_ASSERT(tensor.shape == (std::vector<std::uint64_t>{3, sizes[i]}));
    RC_ASSERT(tensor.offset % alignment == 0);
    // The builder's bytes count up from 0 in every tensor.
    RC_ASSERT(tensor.bytes == 0 || file[tensor.offset] == std::byte{0});
    RC_ASSERT(tensor.bytes == 0 || file[tensor.offset + 1] == std::byte{1});
  }
}

}  // namespace
}  // namespace gridscope::format
