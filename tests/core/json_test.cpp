#include "gridscope/core/json.hpp"

#include <gtest/gtest.h>

#include "gridscope/core/text.hpp"
#include "support/matchers.hpp"

namespace gridscope {
namespace {

using test::bytes_of;
using test::Fails;
using test::IsOk;
using ::testing::HasSubstr;

// Writes events down as text, and fails at the event it is told to.
class EventLog final : public JsonHandler {
 public:
  explicit EventLog(std::string fail_at = {}) : fail_at_(std::move(fail_at)) {}

  Status on_null() override { return add("null"); }
  Status on_bool(bool value) override { return add(value ? "true" : "false"); }
  Status on_signed(std::int64_t value) override { return add("i" + std::to_string(value)); }
  Status on_unsigned(std::uint64_t value) override { return add("u" + std::to_string(value)); }
  Status on_real(double, std::string_view text) override { return add("r" + std::string(text)); }
  Status on_string(std::string_view value) override { return add("'" + std::string(value) + "'"); }
  Status on_key(std::string_view key) override { return add(std::string(key) + ":"); }
  Status on_begin_object() override { return add("{"); }
  Status on_end_object() override { return add("}"); }
  Status on_begin_array() override { return add("["); }
  Status on_end_array() override { return add("]"); }

  [[nodiscard]] const std::string& log() const { return log_; }

 private:
  Status add(const std::string& event) {
    if (event == fail_at_) return fail(ErrorCode::kUnsupported, "not that", "another one");
    log_ += (log_.empty() ? "" : " ") + event;
    return {};
  }

  const std::string fail_at_;
  std::string log_;
};

std::string events(std::string_view text) {
  EventLog log;
  const Status read = read_json(bytes_of(text), log);
  EXPECT_THAT(read, IsOk()) << text;
  return log.log();
}

Status read(std::string_view text, const JsonLimits& limits = {},
            DuplicateKeys duplicates = DuplicateKeys::kReject) {
  EventLog log;
  return read_json(bytes_of(text), log, limits, duplicates);
}

TEST(ReadJson, TellsWhatIsThereInOrder) {
  EXPECT_EQ(events(R"({"a": [1, -2, 1.50, "x"], "b": {"c": null, "d": true}, "e": false})"),
            "{ a: [ u1 i-2 r1.50 'x' ] b: { c: null d: true } e: false }");
  EXPECT_EQ(events(" [] \n"), "[ ]");
  EXPECT_EQ(events("\"\""), "''");
}

TEST(ReadJson, KeepsIntegersOfSixtyFourBitsExact) {
  EXPECT_EQ(events("18446744073709551615"), "u18446744073709551615");
  EXPECT_EQ(events("-9223372036854775808"), "i-9223372036854775808");
  EXPECT_EQ(events("-0"), "i0");
}

TEST(ReadJson, GivesLargerIntegersAsWritten) {
  EXPECT_EQ(events("18446744073709551616"), "r18446744073709551616");
  EXPECT_EQ(events("-9223372036854775809"), "r-9223372036854775809");
  EXPECT_EQ(events("[1e2, 1.0]"), "[ r1e2 r1.0 ]");
}

TEST(ReadJson, DecodesEscapes) {
  EXPECT_EQ(events(R"("\" \\ \/ \n \u00e9 \ud83d\ude00")"), "'\" \\ / \n é \U0001F600'");
  EXPECT_EQ(events(R"("a\u0000b")"), std::string("'a\0b'", 5));
}

TEST(ReadJson, RefusesDuplicateKeys) {
  EXPECT_THAT(read(R"({"a": 1, "b": 2, "a": 3})"),
              Fails(ErrorCode::kCorrupt,
                    "duplicate key \"a\" (JSON read up to byte 20); write each key once"));
  EXPECT_THAT(read(R"({"x": {"a": 1, "b": {}, "a": 2}})"),
              Fails(ErrorCode::kCorrupt, HasSubstr("duplicate key \"a\"")));
  EXPECT_THAT(read(R"({"": 1, "": 2})"), Fails(ErrorCode::kCorrupt, HasSubstr("key \"\"")));
}

TEST(ReadJson, SeesThroughEscapesInDuplicateKeys) {
  EXPECT_THAT(read(R"({"abc": 1, "\u0061bc": 2})"),
              Fails(ErrorCode::kCorrupt, HasSubstr("duplicate key \"abc\"")));
  EXPECT_THAT(read(R"({"\u0061": 1, "\u0061": 2})"),
              Fails(ErrorCode::kCorrupt, HasSubstr("duplicate key \"a\"")));
  EXPECT_THAT(read(R"({"a\"": 1, "a\u0022": 2})"),
              Fails(ErrorCode::kCorrupt, HasSubstr("duplicate key")));
}

TEST(ReadJson, AllowsTheSameKeyInDifferentObjects) {
  EXPECT_THAT(read(R"({"a": {"a": {"a": 1}}, "b": {"a": 2}, "c": [{"a": 1}, {"a": 1}]})"), IsOk());
  EXPECT_THAT(read(R"({"a": 1, "A": 2, "a ": 3, "\\u0061": 4})"), IsOk());
}

TEST(ReadJson, LeavesDuplicateKeysToAHandlerThatWantsThem) {
  EXPECT_THAT(read(R"({"a": 1, "a": 2})", {}, DuplicateKeys::kReport), IsOk());
}

TEST(ReadJson, LimitsDepth) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_THAT(read(nested(16)), IsOk());
  EXPECT_THAT(
      read(nested(17)),
      Fails(ErrorCode::kLimit, "JSON is nested deeper than 16 levels (JSON read up to byte 17)"));
  EXPECT_THAT(read(nested(1'000'000)), Fails(ErrorCode::kLimit, HasSubstr("deeper than 16")));
  EXPECT_THAT(read(R"({"a": {"b": 1}})", {.max_depth = 1}),
              Fails(ErrorCode::kLimit, HasSubstr("deeper than 1 levels")));
  EXPECT_THAT(read("[[], [], []]", {.max_depth = 2}), IsOk());
}

TEST(ReadJson, LimitsSize) {
  EXPECT_THAT(read("[1, 2]", {.max_bytes = 6}), IsOk());
  EXPECT_THAT(read("[1, 2]", {.max_bytes = 5}),
              Fails(ErrorCode::kLimit, "JSON text of 6 bytes, the limit is 5"));
}

struct Refusal {
  std::string text;
  std::string message;
};

class RefusedJson : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedJson, WithThePosition) {
  EXPECT_THAT(read(GetParam().text), Fails(ErrorCode::kCorrupt, HasSubstr(GetParam().message)))
      << quote(GetParam().text);
}

// The position is that of the last byte that the parser had to see.
INSTANTIATE_TEST_SUITE_P(
    Syntax, RefusedJson,
    ::testing::Values(
        Refusal{"", "not valid JSON at byte 0: syntax error while parsing value - unexpected end"},
        Refusal{"  ", "at byte 2:"},                            //
        Refusal{"[1, 2", "at byte 5:"},                         // ends too early
        Refusal{"{\"a\"", "at byte 4:"},                        //
        Refusal{"\"abc", "at byte 4:"},                         //
        Refusal{"{\"a\": 1} x", "at byte 9:"},                  // something after the value
        Refusal{"{}{}", "at byte 2:"},                          //
        Refusal{"[1,]", "at byte 3:"},                          // trailing comma
        Refusal{"{\"a\": 1,}", "at byte 8:"},                   //
        Refusal{"{a: 1}", "at byte 1:"},                        // key without quotes
        Refusal{"{'a': 1}", "at byte 1:"},                      //
        Refusal{"[01]", "at byte 2:"},                          // leading zero
        Refusal{"[+1]", "at byte 1:"},                          //
        Refusal{"[.5]", "at byte 1:"},                          //
        Refusal{"[1.]", "at byte 3:"},                          //
        Refusal{"[NaN]", "at byte 1:"},                         // Python's, not JSON
        Refusal{"[-Infinity]", "at byte 2:"},                   //
        Refusal{"[0x10]", "at byte 2:"},                        //
        Refusal{"// c\n1", "at byte 0:"},                       // comments
        Refusal{"\"a\nb\"", "at byte 2:"},                      // raw control characters
        Refusal{"\"a\x1F\"", "at byte 2:"},                     //
        Refusal{"\"\\x\"", "at byte 2:"},                       // unknown escape
        Refusal{"\"\\u12G4\"", "at byte 5:"},                   //
        Refusal{"\"\\ud800\"", "at byte 7:"},                   // lone surrogates
        Refusal{"\"\\ud800\\u0041\"", "at byte 12:"},           //
        Refusal{"\"\\udc00\"", "at byte 6:"},                   //
        Refusal{"\"\xFF\"", "at byte 1:"},                      // invalid UTF-8
        Refusal{"\"\xC0\xAF\"", "at byte 1:"},                  //
        Refusal{"\"\xED\xA0\x80\"", "at byte 2:"},              //
        Refusal{"[1e999]", "number overflow parsing '1e999'"},  //
        Refusal{"\xEF\xBB\xBF{}", "at byte 0: it starts with a byte order mark"},
        Refusal{std::string("{}\0", 3), "at byte 2: a NUL byte"},
        Refusal{std::string("{}\0 garbage", 11), "at byte 2: a NUL byte"},
        Refusal{std::string("{\"a\0\": 1}", 9), "at byte 3: a NUL byte"}));

TEST(ReadJson, QuotesForeignTextPrintably) {
  const Status status = read("[\x1B[2J]");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message.find('\x1B'), std::string::npos);
  EXPECT_EQ(status.error().message.find("json.exception"), std::string::npos);
  EXPECT_EQ(read("[1e999]").error().message.find("json.exception"), std::string::npos);
}

TEST(ReadJson, PassesAHandlersErrorOutWithThePosition) {
  EventLog log("b:");
  const Status status = read_json(bytes_of(R"({"a": 1, "b": 2})"), log);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error(),
            (Error{ErrorCode::kUnsupported, "not that (JSON read up to byte 12)", "another one"}));
  EXPECT_EQ(log.log(), "{ a: u1");
}

TEST(ReadJson, AsksNoHandlerAfterItsError) {
  for (const char* event : {"{", "}", "[", "]", "a:", "u1", "i-1", "r0.5", "'s'", "true", "null"}) {
    EventLog log(event);
    EXPECT_THAT(read_json(bytes_of(R"([{"a": 1}, -1, 0.5, "s", true, null])"), log),
                Fails(ErrorCode::kUnsupported, HasSubstr("not that")))
        << event;
  }
}

TEST(ParseJson, MakesATree) {
  const auto root = parse_json(R"({"a": "x", "b": [1, -1, 2.5, true, null], "c": {"d": {}}})");
  ASSERT_THAT(root, IsOk());
  ASSERT_NE(root->object(), nullptr);
  EXPECT_EQ(*root->find("a")->string(), "x");
  const JsonValue::Array& items = *root->find("b")->array();
  EXPECT_EQ(*items[0].unsigned_integer(), 1);
  EXPECT_EQ(*items[1].negative_integer(), -1);
  EXPECT_EQ(*items[2].real(), 2.5);
  EXPECT_TRUE(*items[3].boolean());
  EXPECT_TRUE(items[4].is_null());
  EXPECT_TRUE(root->find("c")->find("d")->object()->empty());
  EXPECT_EQ(root->find("z"), nullptr);
  EXPECT_EQ(items[0].find("z"), nullptr);
}

TEST(ParseJson, GivesNoValueAsAnotherKind) {
  const auto number = parse_json("3");
  ASSERT_THAT(number, IsOk());
  EXPECT_FALSE(number->is_null());
  EXPECT_EQ(number->string(), nullptr);
  EXPECT_EQ(number->array(), nullptr);
  EXPECT_EQ(number->object(), nullptr);
  EXPECT_EQ(number->boolean(), nullptr);
  EXPECT_EQ(number->negative_integer(), nullptr);
  EXPECT_EQ(number->real(), nullptr);
  EXPECT_NE(number->unsigned_integer(), nullptr);
}

TEST(ParseJson, KeepsTheOrderOfKeys) {
  const auto root = parse_json(R"({"z": 1, "a": 2, "m": 3})");
  ASSERT_THAT(root, IsOk());
  std::string keys;
  for (const auto& [key, value] : *root->object()) keys += key;
  EXPECT_EQ(keys, "zam");
}

TEST(ParseJson, TakesIntegersBeyondSixtyFourBitsForReal) {
  const auto root = parse_json("[18446744073709551616, 18446744073709551615]");
  ASSERT_THAT(root, IsOk());
  EXPECT_EQ(root->array()->at(0).unsigned_integer(), nullptr);
  EXPECT_EQ(*root->array()->at(0).real(), 18446744073709551616.0);
  EXPECT_EQ(*root->array()->at(1).unsigned_integer(), UINT64_MAX);
}

TEST(ParseJson, ReadsPythonsNonFiniteNumbersAsNull) {
  const auto root = parse_json(R"([NaN, Infinity, -Infinity, {"a":NaN}, "NaN -Infinity \" NaN"])");
  ASSERT_THAT(root, IsOk());
  const JsonValue::Array& items = *root->array();
  ASSERT_EQ(items.size(), 5);
  EXPECT_TRUE(items[0].is_null());
  EXPECT_TRUE(items[1].is_null());
  EXPECT_TRUE(items[2].is_null());
  EXPECT_TRUE(items[3].find("a")->is_null());
  EXPECT_EQ(*items[4].string(), "NaN -Infinity \" NaN");
}

TEST(ParseJson, RefusesWhatOnlyLooksLikeThem) {
  for (const char* text : {"[nan]", "[-NaN]", "[NaN1]", "[+Infinity]", "[Inf]", "[1NaN]"}) {
    EXPECT_THAT(parse_json(text), Fails(ErrorCode::kCorrupt, HasSubstr("not valid JSON"))) << text;
  }
}

TEST(ParseJson, GivesPositionsOfTheTextAsGiven) {
  EXPECT_THAT(parse_json("[NaN, NaN, Infinity, x]"),
              Fails(ErrorCode::kCorrupt, HasSubstr("byte 21:")));
  EXPECT_THAT(parse_json("[x, NaN]"), Fails(ErrorCode::kCorrupt, HasSubstr("byte 1:")));
  EXPECT_THAT(parse_json("[NaN"), Fails(ErrorCode::kCorrupt, HasSubstr("byte 4:")));
  EXPECT_THAT(parse_json(std::string_view("[NaN, \0]", 8)),
              Fails(ErrorCode::kCorrupt, HasSubstr("byte 6: a NUL")));
}

TEST(ParseJson, AppliesTheLimits) {
  EXPECT_THAT(parse_json("[[1]]", {.max_depth = 1}), Fails(ErrorCode::kLimit, HasSubstr("nested")));
  EXPECT_THAT(parse_json("[1]", {.max_bytes = 2}), Fails(ErrorCode::kLimit, HasSubstr("3 bytes")));
  EXPECT_THAT(parse_json(R"({"a": 1, "a": 1})"),
              Fails(ErrorCode::kCorrupt, HasSubstr("duplicate key")));
}

// A set that compares each key with all others, or loses some, would show here.
TEST(ReadJson, FindsOneDuplicateAmongManyKeys) {
  std::string text = "{";
  for (int i = 0; i < 50'000; ++i) text += "\"layers." + std::to_string(i) + "\": 0, ";
  EXPECT_THAT(read(text + "\"last\": 0}"), IsOk());
  EXPECT_THAT(read(text + "\"layers.12345\": 0}"),
              Fails(ErrorCode::kCorrupt, HasSubstr("duplicate key \"layers.12345\"")));
}

}  // namespace
}  // namespace gridscope
