#include "gridscope/cli/arguments.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/support.hpp"
#include "support/matchers.hpp"

namespace gridscope::cli {
namespace {

using ::testing::_;
using ::testing::HasSubstr;
using ::testing::Not;

const OptionSpec& option_of(const VerbSpec& verb, std::string_view name) {
  const OptionSpec* found = nullptr;
  for_each_option(verb, [&](const OptionSpec& option) {
    if (option.name == name) found = &option;
  });
  return *found;
}

TEST(Arguments, StartWithTheDefaults) {
  const Arguments arguments(*find_verb("inspect"));
  EXPECT_EQ(arguments.text("format"), "text");
  EXPECT_EQ(arguments.number("connections"), 16U);
  EXPECT_EQ(arguments.number("cache-size"), 2ULL << 30);
  EXPECT_FALSE(arguments.given("format"));
  EXPECT_FALSE(arguments.flag("tensors"));
  EXPECT_EQ(arguments.text("output"), "");
}

TEST(Arguments, KeepTextAndNumber) {
  const VerbSpec& verb = *find_verb("inspect");
  Arguments arguments(verb);
  ASSERT_THAT(arguments.set(option_of(verb, "cache-size"), "3KiB"), test::IsOk());
  ASSERT_THAT(arguments.set(option_of(verb, "timeout"), "1.5"), test::IsOk());
  EXPECT_TRUE(arguments.given("cache-size"));
  EXPECT_EQ(arguments.text("cache-size"), "3KiB");
  EXPECT_EQ(arguments.number("cache-size"), 3072U);
  EXPECT_EQ(arguments.duration("timeout"), std::chrono::milliseconds(1500));
}

TEST(Arguments, RefuseAValueByTheNameOfItsOption) {
  const VerbSpec& verb = *find_verb("cache");
  Arguments arguments(verb);
  const Status option = arguments.set(option_of(verb, "connections"), "many");
  ASSERT_THAT(option, test::Fails(ErrorCode::kInvalidArgument, _));
  EXPECT_EQ(option.error().message,
            "--connections: expected a whole number from 1 to 256, found \"many\"");
  const Status positional = arguments.set(option_of(verb, "ACTION"), "burn");
  ASSERT_THAT(positional, test::Fails(ErrorCode::kInvalidArgument, _));
  EXPECT_EQ(positional.error().message, "ACTION: expected one of info, clear, found \"burn\"");
  EXPECT_FALSE(arguments.given("connections"));
}

TEST(Arguments, KeepEveryValueOfWhatMayRepeat) {
  const VerbSpec& verb = *find_verb("grid-check");
  Arguments arguments(verb);
  EXPECT_TRUE(arguments.texts("tensor").empty());
  const auto spec = std::ranges::find(verb.options, "tensor", &OptionSpec::name);
  ASSERT_NE(spec, verb.options.end());
  EXPECT_THAT(arguments.set(*spec, "a*"), test::IsOk());
  EXPECT_THAT(arguments.set(*spec, "b*"), test::IsOk());
  EXPECT_EQ(arguments.texts("tensor"), (std::vector<std::string>{"a*", "b*"}));
  EXPECT_THAT(arguments.set(verb.positionals[1], "one"), test::IsOk());
  EXPECT_THAT(arguments.set(verb.positionals[1], "https://u:p@h/two?sig=3"), test::IsOk());
  EXPECT_THAT(arguments.set(verb.positionals[0], "source"), test::IsOk());
  EXPECT_EQ(arguments.subject(), "grid-check source one https://h/two");
}

TEST(Arguments, NameTheirSubject) {
  EXPECT_EQ(arguments_of({"inspect", "org/name@v1"}).subject(), "inspect org/name@v1");
  EXPECT_EQ(arguments_of({"inspect", ""}).subject(), "inspect \"\"");
  EXPECT_EQ(arguments_of({"cache", "info"}).subject(), "cache info");
  EXPECT_EQ(arguments_of({"man"}).subject(), "man");
}

TEST(WithoutSecrets, DropsQueryFragmentAndUser) {
  EXPECT_EQ(without_secrets("https://user:secret@host/a@b/c?sig=secret#secret"),
            "https://host/a@b/c");
  EXPECT_EQ(without_secrets("https://host?secret"), "https://host");
  EXPECT_EQ(without_secrets("hf://org/name@main/x"), "hf://org/name@main/x");
  EXPECT_EQ(without_secrets("./what?.safetensors"), "./what?.safetensors");
}

TEST(WithoutSecrets, NeutralisesTerminalEscapes) {
  EXPECT_THAT(without_secrets("https://host/\x1b[2J"), Not(HasSubstr("\x1b")));
  EXPECT_THAT(without_secrets("dir/\x1b[2J\n"), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace gridscope::cli
