#include "gridscope/format/safetensors_index.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "support/checkpoints.hpp"
#include "support/matchers.hpp"

namespace gridscope::format {
namespace {

using test::bytes_of;
using test::Fails;
using test::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

Result<ShardIndex> parse(std::string_view text, const Limits& limits = {}) {
  return parse_safetensors_index(bytes_of(text), limits);
}

auto corrupt(const char* message) {
  return Fails(ErrorCode::kCorrupt, HasSubstr(message));
}

TEST(SafetensorsIndex, NumbersShardsInOrderOfFirstMention) {
  const auto index = parse(test::index_json(
      {{"b", "two.safetensors"}, {"a", "one.safetensors"}, {"c", "two.safetensors"}}, 42));
  ASSERT_THAT(index, IsOk());
  EXPECT_THAT(index->shards, ElementsAre("two.safetensors", "one.safetensors"));
  ASSERT_EQ(index->entries.size(), 3U);
  EXPECT_EQ(index->entries[0].tensor, "b");
  EXPECT_EQ(index->entries[0].shard, 0U);
  EXPECT_EQ(index->entries[1].shard, 1U);
  EXPECT_EQ(index->entries[2].shard, 0U);
  EXPECT_THAT(index->total_size, Optional(42U));
}

ShardIndex with_total_size(std::string_view written) {
  const auto index =
      parse(fmt::format(R"({{"metadata":{{"total_size":{}}},"weight_map":{{"a":"b"}}}})", written));
  EXPECT_THAT(index, IsOk());
  return index ? *index : ShardIndex();
}
std::optional<std::uint64_t> total_size(std::string_view written) {
  return with_total_size(written).total_size;
}
std::string odd_total_size(std::string_view written) {
  return with_total_size(written).odd_total_size;
}

TEST(SafetensorsIndex, TotalSizeIsReadAsWritersWriteIt) {
  EXPECT_THAT(total_size("13476839424"), Optional(13476839424U));
  EXPECT_THAT(total_size("\"13476839424\""), Optional(13476839424U));
  EXPECT_THAT(total_size("13476839424.0"), Optional(13476839424U));
  EXPECT_EQ(total_size("1.5"), std::nullopt);
  EXPECT_EQ(total_size("-5"), std::nullopt);
  EXPECT_EQ(total_size("1e300"), std::nullopt);
  EXPECT_EQ(total_size("\"12 GB\""), std::nullopt);
  EXPECT_EQ(total_size("\"\""), std::nullopt);
  EXPECT_EQ(total_size("null"), std::nullopt);
  EXPECT_EQ(total_size("[5]"), std::nullopt);
  EXPECT_EQ(odd_total_size("13476839424"), "");
  EXPECT_EQ(odd_total_size("13476839424.0"), "");
  EXPECT_EQ(odd_total_size("null"), "");
  EXPECT_EQ(odd_total_size("1.5"), "1.5");
  EXPECT_EQ(odd_total_size("-5"), "-5");
  EXPECT_EQ(odd_total_size("true"), "true");
  EXPECT_EQ(odd_total_size("18446744073709551616"), "18446744073709551616");
  EXPECT_EQ(odd_total_size("\"12 GB\""), "\"12 GB\"");
  EXPECT_EQ(odd_total_size("[5]"), "an array");
}

TEST(SafetensorsIndex, MetadataMayBeAbsentEmptyOrMore) {
  EXPECT_THAT(parse(R"({"weight_map":{"a":"b"}})"), IsOk());
  EXPECT_THAT(parse(R"({"metadata":{},"weight_map":{"a":"b"}})"), IsOk());
  EXPECT_THAT(parse(R"({"metadata":null,"weight_map":{"a":"b"}})"), IsOk());
  EXPECT_THAT(parse(R"({"weight_map":{"a":"b"},"metadata":{"x":{"total_size":[1,{}]},)"
                    R"("total_parameters":7},"other":[{"weight_map":{"a":1}}]})"),
              IsOk());
}

TEST(SafetensorsIndex, TotalSizeOfANestedObjectIsAnother) {
  const auto index =
      parse(R"({"metadata":{"x":{"total_size":1},"total_size":2},"weight_map":{"a":"b"}})");
  ASSERT_THAT(index, IsOk());
  EXPECT_THAT(index->total_size, Optional(2U));
}

TEST(SafetensorsIndex, RefusesOtherShapes) {
  EXPECT_THAT(parse(""), corrupt("JSON"));
  EXPECT_THAT(parse("[]"), corrupt("expected an object, found an array"));
  EXPECT_THAT(parse("7"), corrupt("expected an object, found 7"));
  EXPECT_THAT(parse("{}"), corrupt("no weight_map"));
  EXPECT_THAT(parse(R"({"weight_map":["a"]})"), corrupt("weight_map: expected an object"));
  EXPECT_THAT(parse(R"({"weight_map":null})"), corrupt("weight_map: expected an object"));
  EXPECT_THAT(parse(R"({"weight_map":{"a":1}})"), corrupt("entry \"a\": expected a file name"));
  EXPECT_THAT(parse(R"({"weight_map":{"a":{}}})"), corrupt("entry \"a\": expected a file name"));
  EXPECT_THAT(parse(R"({"weight_map":{"a":["b"]}})"), corrupt("entry \"a\": expected a file name"));
  EXPECT_THAT(parse(R"({"weight_map":{"a":"b"}} x)"), corrupt("JSON"));
}

TEST(SafetensorsIndex, RefusesWhatIsGivenTwice) {
  EXPECT_THAT(parse(R"({"weight_map":{"a":"b","c":"b","a":"d"}})"), corrupt("names tensor \"a\""));
  EXPECT_THAT(parse(R"({"weight_map":{"a":"b"},"weight_map":{}})"), corrupt("weight_map is given"));
  EXPECT_THAT(parse(R"({"metadata":{},"metadata":{},"weight_map":{}})"),
              corrupt("metadata is given twice"));
}

TEST(SafetensorsIndex, RefusesShardsThatLeaveTheDirectory) {
  for (const char* name : {"../x", "..", "/etc/passwd", "a/b", "a\\\\b", "C:x", "hf:x", "", ".",
                           "a\\u0000b", "a\\nb", "x..safetensors"}) {
    EXPECT_THAT(parse(fmt::format(R"({{"weight_map":{{"t":"{}"}}}})", name)),
                corrupt("weight_map puts \"t\" into"))
        << name;
  }
}

TEST(SafetensorsIndex, LimitsAreHeld) {
  const std::string text = test::index_json({{"one", "a"}, {"two", "b"}});
  EXPECT_THAT(parse(text, {.shards = 1}), Fails(ErrorCode::kLimit, HasSubstr("1 shards")));
  EXPECT_THAT(parse(text, {.tensors = 1}), Fails(ErrorCode::kLimit, HasSubstr("1 tensors")));
  EXPECT_THAT(parse(text, {.name_bytes = 2}), Fails(ErrorCode::kLimit, HasSubstr("\"one\"")));
  EXPECT_THAT(parse(text, {.index_bytes = 9}), Fails(ErrorCode::kLimit, HasSubstr("limit is 9")));
  EXPECT_THAT(parse(text, {.json_depth = 1}), Fails(ErrorCode::kLimit, HasSubstr("nested")));
}

TEST(SafetensorsIndex, SaysWhichLimitItPasses) {
  const std::string text = test::index_json({{"one", "a"}, {"two", "b"}});
  for (const Limit limit : {&Limits::shards, &Limits::tensors, &Limits::name_bytes,
                            &Limits::index_bytes, &Limits::json_depth}) {
    Limits limits;
    limits.*limit = 1;
    const auto index = parse(text, limits);
    ASSERT_FALSE(index);
    EXPECT_EQ(index.error().remedy, limit_remedy(limit));
  }
}

MATCHER_P4(IsShard, prefix, number, total, suffix, "") {
  return arg && arg->prefix == prefix && arg->number == number && arg->total == total &&
         arg->suffix == suffix;
}

TEST(ShardName, TakesTheNameApart) {
  EXPECT_THAT(parse_shard_name("model-00002-of-00005.safetensors"),
              IsShard("model-", 2U, 5U, ".safetensors"));
  EXPECT_THAT(parse_shard_name("model-00001-of-000163.safetensors"),
              IsShard("model-", 1U, 163U, ".safetensors"));
  EXPECT_THAT(parse_shard_name("model-00000-of-00003.fp16.safetensors"),
              IsShard("model-", 0U, 3U, ".fp16.safetensors"));
  EXPECT_THAT(parse_shard_name("best-of-two_00001-of-00001.gguf"),
              IsShard("best-of-two_", 1U, 1U, ".gguf"));
}

TEST(ShardName, RefusesWhatOnlyLooksLikeIt) {
  for (const char* name :
       {"model.safetensors", "model-0001-of-0002.safetensors", "model-00001-of-0000002.safetensors",
        "model00001-of-00002.safetensors", "00001-of-00002.safetensors",
        "model-00001-of-.safetensors", "model-00003-of-00002.safetensors",
        "model-00000-of-00000.safetensors", "-of-"}) {
    EXPECT_FALSE(parse_shard_name(name).has_value()) << name;
  }
}

TEST(ShardName, SafeNamesAreOneSegment) {
  EXPECT_TRUE(is_safe_shard_name("model-00001-of-00002.safetensors"));
  EXPECT_TRUE(is_safe_shard_name("Modell \xC3\xA4 (1)?#%.safetensors"));
  EXPECT_FALSE(is_safe_shard_name(std::string(256, 'a')));
  EXPECT_FALSE(is_safe_shard_name(std::string_view("a\0b", 3)));
  EXPECT_FALSE(is_safe_shard_name("a\x7F"));
}

}  // namespace
}  // namespace gridscope::format
