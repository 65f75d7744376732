#include "gridscope/cli/parse.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/support.hpp"
#include "support/matchers.hpp"

namespace gridscope::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

// "message; remedy" of what must be wrong usage.
std::string refusal(const Words& words) {
  const auto command = parse_words(words);
  if (command) return "accepted";
  EXPECT_EQ(exit_code(command.error().code), 2);
  return describe(command.error());
}

TEST(ParseCommandLine, ReadsAVerbWithItsOptions) {
  const Arguments arguments = arguments_of(
      {"inspect", "org/name", "--revision", "v1", "--by=layer", "--tensors", "-o", "out", "-v"});
  EXPECT_EQ(arguments.verb().name, "inspect");
  EXPECT_EQ(arguments.text("MODEL"), "org/name");
  EXPECT_EQ(arguments.text("revision"), "v1");
  EXPECT_EQ(arguments.text("by"), "layer");
  EXPECT_TRUE(arguments.flag("tensors"));
  EXPECT_EQ(arguments.text("output"), "out");
  EXPECT_TRUE(arguments.flag("verbose"));
  EXPECT_FALSE(arguments.flag("quiet"));
}

TEST(ParseCommandLine, TakesSharedOptionsOnEitherSideOfTheVerb) {
  for (const Words& words :
       {Words{"--connections", "3", "inspect", "x"}, Words{"inspect", "--connections", "3", "x"},
        Words{"inspect", "x", "--connections=3"}}) {
    EXPECT_EQ(arguments_of(words).number("connections"), 3U);
  }
}

TEST(ParseCommandLine, RefusesSharedOptionsThatHaveNoEffect) {
  EXPECT_TRUE(arguments_of({"cache", "info", "--cache-dir", "/c", "--quiet"}).flag("quiet"));
  EXPECT_EQ(refusal({"cache", "info", "--connections", "3"}),
            "cache: --connections has no effect on this command; see gridscope cache --help");
  EXPECT_EQ(refusal({"--max-rank", "3", "cache", "info"}),
            "cache: --max-rank has no effect on this command; see gridscope cache --help");
  EXPECT_EQ(refusal({"man", "--no-cache"}),
            "man: --no-cache has no effect on this command; see gridscope man --help");
}

TEST(ParseCommandLine, TakesJsonAsAFormat) {
  EXPECT_EQ(arguments_of({"inspect", "x", "--json"}).text("format"), "json");
  EXPECT_EQ(arguments_of({"inspect", "x", "--json", "--format", "json"}).text("format"), "json");
  EXPECT_EQ(refusal({"inspect", "x", "--json", "--format", "text"}),
            "inspect: --json and --format text exclude each other; see gridscope inspect --help");
}

TEST(ParseCommandLine, TakesAVerbsNameAsAModel) {
  EXPECT_EQ(arguments_of({"inspect", "cache"}).text("MODEL"), "cache");
}

TEST(ParseCommandLine, TakesWordsAfterTheDoubleDashAsTheyAre) {
  EXPECT_EQ(arguments_of({"inspect", "--", "--help"}).text("MODEL"), "--help");
  EXPECT_EQ(arguments_of({"inspect", "--json", "--", "-x"}).text("MODEL"), "-x");
}

TEST(ParseCommandLine, TakesOddModelsAsTheyAre) {
  for (const char* model : {"", " ", "{}", "[a,b]", "a=b", "a,b", "%%", "\"q\"", "$HOME"}) {
    EXPECT_EQ(arguments_of({"inspect", model}).text("MODEL"), model);
  }
}

TEST(ParseCommandLine, PutsHelpAboveEverything) {
  for (const Words& words : {Words{"--help"}, Words{"-h"}, Words{"-h", "--bogus"}}) {
    const auto command = parse_words(words);
    ASSERT_TRUE(command.has_value());
    EXPECT_EQ(std::get<HelpRequest>(*command).verb, nullptr);
  }
  for (const Words& words : {Words{"inspect", "--help"}, Words{"--help", "inspect"},
                             Words{"inspect", "a", "b", "c", "-h", "--bogus"}}) {
    const auto command = parse_words(words);
    ASSERT_TRUE(command.has_value());
    EXPECT_EQ(std::get<HelpRequest>(*command).verb, find_verb("inspect"));
  }
}

TEST(ParseCommandLine, TakesHelpForACommand) {
  const auto help_for = [](const Words& words) {
    return std::get<HelpRequest>(parse_words(words).value()).verb;
  };
  EXPECT_EQ(help_for({"help"}), nullptr);
  EXPECT_EQ(help_for({"help", "-v"}), nullptr);
  EXPECT_EQ(help_for({"help", "cache"}), find_verb("cache"));
  EXPECT_EQ(help_for({"help", "cache", "--json"}), find_verb("cache"));
  EXPECT_EQ(refusal({"help", "cahce"}),
            "unknown command \"cahce\"; did you mean cache? see gridscope --help");
  EXPECT_EQ(refusal({"help", "cache", "info"}),
            "cache: unexpected argument \"info\"; see gridscope cache --help");
  EXPECT_EQ(arguments_of({"inspect", "help"}).text("MODEL"), "help");
}

TEST(ParseCommandLine, KnowsTheVersionFlag) {
  EXPECT_TRUE(std::holds_alternative<VersionRequest>(parse_words({"--version"}).value()));
}

TEST(ParseCommandLine, SuggestsTheNearestVerb) {
  EXPECT_EQ(refusal({"inspct", "x"}),
            "unknown command \"inspct\"; did you mean inspect? see gridscope --help");
  EXPECT_EQ(refusal({"quantize"}), "unknown command \"quantize\"; see gridscope --help");
  EXPECT_EQ(refusal({"-v"}), "there is no command; see gridscope --help");
}

TEST(ParseCommandLine, SuggestsTheNearestOption) {
  EXPECT_EQ(refusal({"inspect", "x", "--fromat", "json"}),
            "inspect: unknown option \"--fromat\"; did you mean --format? "
            "see gridscope inspect --help");
  EXPECT_EQ(refusal({"inspect", "x", "-z"}),
            "inspect: unknown option \"-z\"; see gridscope inspect --help");
  EXPECT_EQ(refusal({"--json", "inspect", "x"}),
            "inspect: --json goes after the command; see gridscope inspect --help");
}

TEST(ParseCommandLine, SaysThatNothingIsAnOptionAfterTheDoubleDash) {
  EXPECT_EQ(refusal({"inspect", "--", "x", "--json"}),
            "inspect: unexpected argument \"--json\": after -- nothing is an option; "
            "see gridscope inspect --help");
  EXPECT_EQ(refusal({"inspect", "--", "x", "--json=secret"}),
            "inspect: unexpected argument \"--json\": after -- nothing is an option; "
            "see gridscope inspect --help");
  EXPECT_EQ(refusal({"inspect", "--bogus", "--", "x"}),
            "inspect: unknown option \"--bogus\"; see gridscope inspect --help");
}

TEST(ParseCommandLine, SuggestsTheNearestChoice) {
  EXPECT_EQ(refusal({"inspect", "x", "--format", "jsn"}),
            "inspect: --format: expected one of text, markdown, json, found \"jsn\"; did you mean "
            "json? see gridscope inspect --help");
}

TEST(ParseCommandLine, RefusesMissingAndSurplusWords) {
  EXPECT_EQ(refusal({"inspect"}), "inspect: MODEL is missing; see gridscope inspect --help");
  EXPECT_EQ(refusal({"inspect", "a", "b"}),
            "inspect: unexpected argument \"b\"; see gridscope inspect --help");
  EXPECT_EQ(refusal({"inspect", "a", "--output"}),
            "inspect: \"--output\" needs a value; see gridscope inspect --help");
  EXPECT_EQ(refusal({"inspect", "a", "--output", "--json"}),
            "inspect: --output needs a value (FILE) before the next option; "
            "see gridscope inspect --help");
  EXPECT_EQ(refusal({"inspect", "a", "--format=", "json"}),
            "\"--format\" has no value after =; see gridscope --help");
}

TEST(ParseCommandLine, TakesAnyNumberOfWhatMayRepeat) {
  const auto command =
      parse_words({"grid-check", "s", "--tensor", "a", "b1", "b2", "--tensor", "c"});
  ASSERT_THAT(command, test::IsOk());
  const auto& arguments = std::get<Arguments>(*command);
  EXPECT_EQ(arguments.text("SOURCE"), "s");
  EXPECT_EQ(arguments.texts("BUILD"), (std::vector<std::string>{"b1", "b2"}));
  EXPECT_EQ(arguments.texts("tensor"), (std::vector<std::string>{"a", "c"}));
  EXPECT_THAT(parse_words({"grid-check", "--merge", "part"}), test::IsOk());
  EXPECT_THAT(parse_words({"grid-check"}),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("SOURCE is missing")));
}

TEST(ParseCommandLine, RefusesContradictionsAndRepetitions) {
  EXPECT_EQ(refusal({"inspect", "a", "-qv"}),
            "inspect: --quiet and --verbose exclude each other; see gridscope inspect --help");
  EXPECT_EQ(refusal({"inspect", "a", "--by", "role", "--by", "part"}),
            "inspect: --by is given 2 times; see gridscope inspect --help");
  EXPECT_EQ(refusal({"inspect", "a", "--no-cache=0"}),
            "--no-cache takes no value; see gridscope --help");
}

TEST(ParseCommandLine, NeverRepeatsWhatMayBeSecret) {
  for (const Words& words :
       {Words{"inspect", "a", "--proxy", "ftp://u:secret@h"},
        Words{"inspect", "a", "--tokn=secret"}, Words{"https://u:secret@h/x?sig=secret"},
        Words{"inspect", "a", "https://u:secret@h/x?sig=secret"}}) {
    EXPECT_THAT(refusal(words), Not(HasSubstr("secret")));
  }
}

TEST(ParseCommandLine, NeutralisesTerminalEscapes) {
  for (const Words& words : {Words{"\x1b[2J"}, Words{"inspect", "a", "--\x1b[2J"},
                             Words{"inspect", "a", "--by", "\x1b[2J"},
                             Words{"inspect", "a", "\x1b[2J"}, Words{"--\x1b[2J="}}) {
    EXPECT_THAT(refusal(words), Not(HasSubstr("\x1b")));
  }
}

}  // namespace
}  // namespace gridscope::cli
