#include "json_parts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/matchers.hpp"

namespace gridscope::report {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr ReportKind kKind = {.name = "sample report", .remedy = "make it anew"};

class MembersTest : public ::testing::Test {
 protected:
  Members members(std::string_view text) {
    root_ = parse_json(text).value();
    error_.reset();
    return {root_, kKind, error_};
  }

  JsonValue root_;
  std::optional<Error> error_;
};

TEST_F(MembersTest, ReadEachKind) {
  const Members all = members(R"({"t": "x", "n": 3, "r": -1.5, "i": -2, "f": true, "z": null,
                                  "a": ["p", "q"], "c": [1, 2], "o": {"k": 7}})");
  EXPECT_EQ(all.text("t"), "x");
  EXPECT_EQ(all.count("n"), 3U);
  EXPECT_EQ(all.real("r"), -1.5);
  EXPECT_EQ(all.real("n"), 3.0);
  EXPECT_EQ(all.maybe_integer("i"), -2);
  EXPECT_EQ(all.maybe_flag("f"), true);
  EXPECT_EQ(all.maybe_flag("z"), std::nullopt);
  EXPECT_EQ(all.maybe_real("z"), std::nullopt);
  EXPECT_THAT(all.texts("a"), ElementsAre("p", "q"));
  EXPECT_THAT(all.counts("c"), ElementsAre(1, 2));
  EXPECT_EQ(all.object("o").count("k"), 7U);
  EXPECT_EQ(all.count_of_each("o").at("k"), 7U);
  EXPECT_TRUE(all.is_null("z"));
  EXPECT_FALSE(all.has("missing"));
  EXPECT_EQ(error_, std::nullopt);
}

TEST_F(MembersTest, TheFirstThatIsWrongIsNamedWithItsPath) {
  const Members all = members(R"({"o": {"list": [{"n": 1}, {"n": "x"}]}, "t": 5})");
  const auto read = [](const Members& element) { return element.count("n"); };
  EXPECT_THAT(all.object("o").objects("list", read), ElementsAre(1, 0));
  EXPECT_EQ(all.text("t"), "");
  ASSERT_TRUE(error_.has_value());
  EXPECT_EQ(error_->message, "sample report: \"o.list[1].n\" is not a non-negative integer");
  EXPECT_EQ(error_->remedy, "make it anew");
}

TEST_F(MembersTest, WhatIsMissingOrNullIsNoNumber) {
  static_cast<void>(members(R"({"z": null})").real("z"));
  ASSERT_TRUE(error_.has_value());
  EXPECT_THAT(error_->message, HasSubstr("is not a number"));
  static_cast<void>(members("{}").count("n"));
  ASSERT_TRUE(error_.has_value());
  EXPECT_THAT(error_->message, HasSubstr("is not present"));
}

TEST(JsonParts, TheSchemaDecides) {
  const auto check = [](std::string_view text) {
    return check_schema(parse_json(text).value(), kKind, "gridscope.sample/1");
  };
  EXPECT_THAT(check(R"({"schema": "gridscope.sample/1"})"), test::IsOk());
  EXPECT_THAT(check(R"({"schema": "gridscope.sample/2"})"),
              test::Fails(ErrorCode::kUnsupported, _));
  EXPECT_THAT(check("{}"), test::Fails(ErrorCode::kCorrupt, _));
}

TEST(JsonParts, NamesThatAreNoUtf8AreShownAllTheSame) {
  EXPECT_EQ(compact(Json("a\xFF")), "\"a\xEF\xBF\xBD\"");
  EXPECT_EQ(pretty(Json{{"a", 1}}), "{\n  \"a\": 1\n}\n");
}

}  // namespace
}  // namespace gridscope::report
