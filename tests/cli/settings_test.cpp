#include "gridscope/cli/settings.hpp"

#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace gridscope::cli {
namespace {

void expect_equal(const format::Limits& a, const format::Limits& b) {
  EXPECT_EQ(a.header_bytes, b.header_bytes);
  EXPECT_EQ(a.index_bytes, b.index_bytes);
  EXPECT_EQ(a.shards, b.shards);
  EXPECT_EQ(a.tensors, b.tensors);
  EXPECT_EQ(a.name_bytes, b.name_bytes);
  EXPECT_EQ(a.json_depth, b.json_depth);
  EXPECT_EQ(a.rank, b.rank);
}

// The table writes the defaults out for --help; they must be those of the library.
TEST(MakeSettings, HasTheLibrarysDefaults) {
  const app::Settings made = make_settings(arguments_of({"inspect", "x"}));
  const app::Settings plain;
  EXPECT_EQ(made.connections, plain.connections);
  EXPECT_EQ(made.timeout, plain.timeout);
  EXPECT_EQ(made.proxy, plain.proxy);
  EXPECT_EQ(made.cache, plain.cache);
  EXPECT_EQ(made.cache_directory, plain.cache_directory);
  EXPECT_EQ(made.cache_bytes, plain.cache_bytes);
  expect_equal(made.limits, plain.limits);
}

TEST(MakeSettings, TakesEveryOption) {
  const app::Settings made = make_settings(arguments_of({"inspect",
                                                         "x",
                                                         "--connections",
                                                         "3",
                                                         "--timeout",
                                                         "0.5",
                                                         "--proxy",
                                                         "http://p:1",
                                                         "--no-cache",
                                                         "--cache-dir",
                                                         "/c",
                                                         "--cache-size",
                                                         "1MB",
                                                         "--max-header-bytes",
                                                         "1KiB",
                                                         "--max-index-bytes",
                                                         "2KiB",
                                                         "--max-shards",
                                                         "3",
                                                         "--max-tensors",
                                                         "4",
                                                         "--max-name-bytes",
                                                         "5",
                                                         "--max-json-depth",
                                                         "6",
                                                         "--max-rank",
                                                         "7"}));
  EXPECT_EQ(made.connections, 3U);
  EXPECT_EQ(made.timeout, std::chrono::milliseconds(500));
  EXPECT_EQ(made.proxy, "http://p:1");
  EXPECT_EQ(made.cache, app::Settings::Cache::kBypass);
  EXPECT_EQ(made.cache_directory, "/c");
  EXPECT_EQ(made.cache_bytes, 1'000'000U);
  expect_equal(made.limits, {.header_bytes = 1024,
                             .index_bytes = 2048,
                             .shards = 3,
                             .tensors = 4,
                             .name_bytes = 5,
                             .json_depth = 6,
                             .rank = 7});
}

// What errors advise is an option that there is.
TEST(MakeSettings, KnowsEveryLimitByItsName) {
  for (const auto& [name, limit] : format::kNamedLimits) {
    const std::string option = "--" + std::string(name);
    const app::Settings made = make_settings(arguments_of({"inspect", "x", option, "9"}));
    EXPECT_EQ(made.limits.*limit, 9U) << name;
  }
}

}  // namespace
}  // namespace gridscope::cli
