#include "gridscope/cli/option_value.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "support/matchers.hpp"

namespace gridscope::cli {
namespace {

using ::testing::_;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ParseCount, TakesDigitsAndNothingElse) {
  EXPECT_EQ(parse_count("0"), 0U);
  EXPECT_EQ(parse_count("18446744073709551615"), 18446744073709551615U);
  for (const char* text : {"", " 1", "1 ", "+1", "-1", "1e3", "0x10", "1.0", "1,000", "1\n",
                           "18446744073709551616", "9999999999999999999999"}) {
    EXPECT_EQ(parse_count(text), std::nullopt) << text;
  }
}

TEST(ParseSize, KnowsDecimalAndBinaryUnits) {
  EXPECT_EQ(parse_size("4096"), 4096U);
  EXPECT_EQ(parse_size("7B"), 7U);
  EXPECT_EQ(parse_size("500MB"), 500'000'000U);
  EXPECT_EQ(parse_size("2GiB"), 2ULL << 30);
  EXPECT_EQ(parse_size("3KB"), 3'000U);
  EXPECT_EQ(parse_size("3KiB"), 3'072U);
  EXPECT_EQ(parse_size("16777215TiB"), 16777215ULL << 40);
}

TEST(ParseSize, RefusesWhatItCannotTakeWhole) {
  for (const char* text : {"", "GiB", "1.5GiB", "1 GiB", "1G", "1gib", "1GiBs", "-1", "1e3",
                           "16777216TiB", "18446744073709551616"}) {
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
  }
}

TEST(ParseSeconds, CountsMilliseconds) {
  EXPECT_EQ(parse_seconds("30"), 30'000U);
  EXPECT_EQ(parse_seconds("0.5"), 500U);
  EXPECT_EQ(parse_seconds("0.001"), 1U);
  EXPECT_EQ(parse_seconds("1.25"), 1'250U);
  for (const char* text : {"", ".", ".5", "1.", "1.2345", "1.-5", "1.+5", "-1", "1s", "1e1",
                           "1.2.3", "inf", "18446744073709552"}) {
    EXPECT_EQ(parse_seconds(text), std::nullopt) << text;
  }
}

TEST(ParseReal, TakesPlainDecimals) {
  EXPECT_EQ(parse_real("0"), 0.0);
  EXPECT_EQ(parse_real("17.5"), 17.5);
  EXPECT_EQ(parse_real("-3"), -3.0);
  for (const char* text :
       {"", "-", ".", ".5", "1.", "1e3", "inf", "nan", "+1", "--1", "1.2.3", " 1", "1,5"}) {
    EXPECT_EQ(parse_real(text), std::nullopt) << text;
  }
}

TEST(CheckValue, SaysWhatAFractionMustBe) {
  const OptionSpec fraction{.name = "f", .kind = ValueKind::kFraction, .help = ""};
  EXPECT_THAT(check_value(fraction, "0"), test::IsOk());
  EXPECT_THAT(check_value(fraction, "1"), test::IsOk());
  for (const char* text : {"1.01", "-0.1", "x"}) {
    EXPECT_THAT(check_value(fraction, text),
                test::Fails(ErrorCode::kInvalidArgument, HasSubstr("a number from 0 to 1")));
  }
  const OptionSpec real{.name = "r", .kind = ValueKind::kReal, .help = ""};
  EXPECT_THAT(check_value(real, "-30.5"), test::IsOk());
  EXPECT_THAT(check_value(real, "x"), test::Fails(ErrorCode::kInvalidArgument, _));
}

TEST(CheckValue, SaysWhatACountMustBe) {
  const OptionSpec option{.name = "n", .kind = ValueKind::kCount, .help = "", .maximum = 256};
  EXPECT_EQ(check_value(option, "1").value(), 1U);
  EXPECT_EQ(check_value(option, "256").value(), 256U);
  for (const char* text : {"0", "257", "x"}) {
    const auto refused = check_value(option, text);
    ASSERT_THAT(refused, test::Fails(ErrorCode::kInvalidArgument, _)) << text;
    EXPECT_EQ(refused.error().message,
              "expected a whole number from 1 to 256, found \"" + std::string(text) + '"');
  }
}

TEST(CheckValue, LeavesOutABoundThatNobodyMeets) {
  const auto refused =
      check_value({.name = "n", .kind = ValueKind::kCount, .help = "", .minimum = 2}, "1");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message, "expected a whole number, at least 2, found \"1\"");
}

TEST(CheckValue, NamesTheChoices) {
  constexpr std::array<std::string_view, 2> kChoices = {"text", "json"};
  const OptionSpec option{
      .name = "format", .kind = ValueKind::kChoice, .help = "", .choices = kChoices};
  EXPECT_TRUE(check_value(option, "json").has_value());
  const auto refused = check_value(option, "JSON");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message, "expected one of text, json, found \"JSON\"");
}

TEST(CheckValue, TakesProxiesAndNeverRepeatsThem) {
  const OptionSpec option{.name = "proxy", .kind = ValueKind::kProxy, .help = ""};
  for (const char* text : {"proxy:3128", "http://user:secret@proxy:3128", "socks5h://[::1]:1080"}) {
    EXPECT_TRUE(check_value(option, text).has_value()) << text;
  }
  for (const char* text : {"", "ftp://secret@proxy", "http://", "http:// secret", "http://:secret",
                           "http:///secret", "secret\n"}) {
    const auto refused = check_value(option, text);
    ASSERT_THAT(refused, test::Fails(ErrorCode::kInvalidArgument, _)) << text;
    EXPECT_THAT(refused.error().message, Not(HasSubstr("secret")));
  }
}

TEST(CheckValue, RefusesEmptyPathsAndShortSizes) {
  EXPECT_FALSE(check_value({.name = "f", .kind = ValueKind::kFile, .help = ""}, "").has_value());
  EXPECT_FALSE(check_value({.name = "s", .kind = ValueKind::kSize, .help = ""}, "0").has_value());
  EXPECT_FALSE(
      check_value({.name = "s", .kind = ValueKind::kSeconds, .help = ""}, "0.000").has_value());
  // An empty reference is judged by the grammar of references, which can say more about it.
  EXPECT_TRUE(check_value({.name = "M", .kind = ValueKind::kModel, .help = ""}, "").has_value());
}

}  // namespace
}  // namespace gridscope::cli
