#include "gridscope/cli/verbs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "gridscope/cli/option_value.hpp"

namespace gridscope::cli {
namespace {

TEST(Verbs, AreFoundByName) {
  ASSERT_NE(find_verb("inspect"), nullptr);
  EXPECT_EQ(find_verb("inspect")->name, "inspect");
  EXPECT_EQ(find_verb("Inspect"), nullptr);
  EXPECT_EQ(find_verb(""), nullptr);
}

TEST(Verbs, DeclareNoNameAndNoLetterTwice) {
  for (const VerbSpec& verb : program().verbs) {
    std::set<std::string_view> names;
    std::set<char> letters;
    for_each_option(verb, [&](const OptionSpec& option) {
      EXPECT_TRUE(names.insert(option.name).second) << verb.name << ' ' << option.name;
      EXPECT_TRUE(option.letter == 0 || letters.insert(option.letter).second)
          << verb.name << ' ' << option.letter;
    });
  }
}

TEST(Verbs, DeclareEveryOptionWhole) {
  for (const VerbSpec& verb : program().verbs) {
    for_each_option(verb, [&](const OptionSpec& option) {
      SCOPED_TRACE(std::string(verb.name) + ' ' + std::string(option.name));
      const bool takes_value = option.kind != ValueKind::kFlag;
      EXPECT_EQ(takes_value && !option.is_positional(), !option.value_name.empty());
      EXPECT_EQ(option.kind == ValueKind::kChoice, !option.choices.empty());
      EXPECT_FALSE(option.help.empty() || option.help.ends_with('.'));
    });
  }
}

TEST(Verbs, HaveDefaultsThatWouldBeAccepted) {
  for (const VerbSpec& verb : program().verbs) {
    for_each_option(verb, [&](const OptionSpec& option) {
      if (option.fallback.empty()) return;
      EXPECT_TRUE(check_value(option, option.fallback).has_value()) << option.name;
    });
  }
}

TEST(Verbs, MeanOnlyWhatExists) {
  for (const VerbSpec& verb : program().verbs) {
    for (const OptionSpec& option : verb.options) {
      if (option.means_option.empty()) continue;
      const auto target = std::ranges::find(verb.options, option.means_option, &OptionSpec::name);
      ASSERT_NE(target, verb.options.end()) << option.name;
      EXPECT_TRUE(check_value(*target, option.means_value).has_value()) << option.name;
    }
  }
}

TEST(Verbs, AreDescribedAndHaveExamplesOfThemselves) {
  for (const VerbSpec& verb : program().verbs) {
    SCOPED_TRACE(verb.name);
    EXPECT_FALSE(verb.summary.empty() || verb.summary.ends_with('.'));
    EXPECT_TRUE(verb.description.ends_with('.'));
    EXPECT_FALSE(verb.examples.empty());
    for (const Example& example : verb.examples) {
      EXPECT_THAT(std::string(example.command),
                  ::testing::HasSubstr("gridscope " + std::string(verb.name)));
    }
    EXPECT_FALSE(verb.exit_codes.empty());
    EXPECT_NE(verb.run, nullptr);
  }
}

TEST(Spelling, ShowsLetterAndValue) {
  EXPECT_EQ(spelling({.name = "output", .letter = 'o', .value_name = "FILE", .help = ""}),
            "-o, --output FILE");
  EXPECT_EQ(spelling({.name = "tensors", .help = ""}), "--tensors");
  EXPECT_EQ(spelling({.name = "MODEL", .help = ""}), "MODEL");
}

TEST(Explained, AddsChoicesAndDefault) {
  constexpr std::string_view kChoices[] = {"a", "b"};
  EXPECT_EQ(explained({.name = "x", .help = "does it"}), "does it");
  EXPECT_EQ(explained({.name = "x", .help = "does it", .choices = kChoices}), "does it (a, b)");
  EXPECT_EQ(explained({.name = "x", .help = "does it", .choices = kChoices, .fallback = "b"}),
            "does it (a, b; default: b)");
  EXPECT_EQ(explained({.name = "x", .help = "does it", .fallback = "3"}), "does it (default: 3)");
}

}  // namespace
}  // namespace gridscope::cli
