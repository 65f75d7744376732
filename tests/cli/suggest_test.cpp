#include "gridscope/cli/suggest.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace gridscope::cli {
namespace {

constexpr std::array<std::string_view, 4> kVerbs = {"inspect", "cache", "completion", "man"};

TEST(Nearest, FindsASlipOfTheFingers) {
  EXPECT_EQ(nearest("inspct", kVerbs), "inspect");
  EXPECT_EQ(nearest("insepct", kVerbs), "inspect");
  EXPECT_EQ(nearest("inspects", kVerbs), "inspect");
  EXPECT_EQ(nearest("cahce", kVerbs), "cache");
  EXPECT_EQ(nearest("mn", kVerbs), "man");
  EXPECT_EQ(nearest("cache", kVerbs), "cache");
}

TEST(Nearest, DoesNotGuessWildly) {
  EXPECT_EQ(nearest("deploy", kVerbs), "");
  EXPECT_EQ(nearest("x", kVerbs), "");
  EXPECT_EQ(nearest("", kVerbs), "");
  EXPECT_EQ(nearest(std::string(1'000'000, 'i'), kVerbs), "");
}

TEST(Nearest, TakesTheFirstAmongEquals) {
  constexpr std::array<std::string_view, 2> kTwins = {"bat", "cat"};
  EXPECT_EQ(nearest("rat", kTwins), "bat");
}

}  // namespace
}  // namespace gridscope::cli
