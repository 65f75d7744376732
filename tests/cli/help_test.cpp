#include "gridscope/cli/help.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace gridscope::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

void expect_narrow(const std::string& text) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) EXPECT_THAT(line, SizeIs(Le(80)));
}

// On one line, with one blank between words.
std::string unwrapped(const std::string& text) {
  std::istringstream in(text);
  std::string out;
  for (std::string word; in >> word;) out += (out.empty() ? "" : " ") + word;
  return out;
}

TEST(Help, ShowsEveryVerb) {
  for (const VerbSpec& verb : program().verbs) {
    EXPECT_THAT(program_help(), HasSubstr("  " + std::string(verb.name) + " "));
    EXPECT_THAT(unwrapped(program_help()), HasSubstr(std::string(verb.summary)));
  }
}

TEST(Help, ShowsTheEnvironment) {
  for (const Term& variable : program().environment) {
    EXPECT_THAT(program_help(), HasSubstr("  " + std::string(variable.name)));
  }
}

TEST(Help, ShowsEveryOptionThatAVerbHeeds) {
  for (const VerbSpec& verb : program().verbs) {
    const std::string help = verb_help(verb);
    for (const OptionSpec& option : verb.options) EXPECT_THAT(help, HasSubstr(spelling(option)));
    for (const OptionGroup& group : verb.groups) {
      for (const OptionSpec& option : group.options) EXPECT_THAT(help, HasSubstr(spelling(option)));
    }
  }
  EXPECT_THAT(verb_help(*find_verb("man")), Not(HasSubstr("--cache-dir")));
  EXPECT_THAT(verb_help(*find_verb("cache")), HasSubstr("--cache-dir"));
  for (const char* useless : {"--connections", "--timeout", "--proxy", "--max-"}) {
    EXPECT_THAT(verb_help(*find_verb("cache")), Not(HasSubstr(useless)));
  }
}

TEST(Help, StaysWithinEightyColumns) {
  expect_narrow(program_help());
  for (const VerbSpec& verb : program().verbs) expect_narrow(verb_help(verb));
}

TEST(Help, ShowsWhatAVerbIsCalledWith) {
  EXPECT_EQ(usage(*find_verb("inspect")), "gridscope inspect [OPTIONS] MODEL");
  EXPECT_EQ(usage(*find_verb("cache")), "gridscope cache [OPTIONS] info|clear");
  EXPECT_EQ(usage(*find_verb("man")), "gridscope man [OPTIONS]");
}

TEST(Help, SaysTheVersion) {
  EXPECT_EQ(version_text(), "gridscope " GRIDSCOPE_VERSION "\n");
}

}  // namespace
}  // namespace gridscope::cli
