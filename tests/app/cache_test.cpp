#include "gridscope/app/cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "app/support.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::app {
namespace {

using ::testing::_;

class CacheUseCase : public ::testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<Context> context_with_cache() {
    Settings settings = settings_with({});
    settings.cache = Settings::Cache::kUse;
    settings.cache_directory = directory_ / "cache";
    settings.cache_bytes = 12345;
    return Context::make(settings, observer_).value();
  }

  test::TempDir directory_;
  NullObserver observer_;
};

TEST_F(CacheUseCase, TellsWhereWhatAndHowMuch) {
  const auto context = context_with_cache();
  const auto empty = cache_info(*context);
  ASSERT_THAT(empty, test::IsOk());
  EXPECT_EQ(empty->directory, directory_ / "cache");
  EXPECT_EQ(empty->usage.entries, 0U);
  EXPECT_EQ(empty->max_bytes, 12345U);
  context->cache().value()->put("key", 0, test::bytes_of("bytes"));
  const auto filled = cache_info(*context);
  ASSERT_THAT(filled, test::IsOk());
  EXPECT_EQ(filled->usage.entries, 1U);
  EXPECT_GT(filled->usage.bytes, 0U);
}

TEST_F(CacheUseCase, ClearsAndTellsWhatWasThere) {
  const auto context = context_with_cache();
  context->cache().value()->put("key", 0, test::bytes_of("bytes"));
  const auto removed = clear_cache(*context);
  ASSERT_THAT(removed, test::IsOk());
  EXPECT_EQ(removed->usage.entries, 1U);
  const auto after = cache_info(*context);
  ASSERT_THAT(after, test::IsOk());
  EXPECT_EQ(after->usage.entries, 0U);
}

TEST_F(CacheUseCase, MindsNoVariableOfTheHub) {
  Settings settings = settings_with({{"HF_HUB_ETAG_TIMEOUT", "abc"}, {"HF_TOKEN", "${HF_TOKEN}"}});
  settings.cache = Settings::Cache::kUse;
  settings.cache_directory = directory_ / "cache";
  EXPECT_THAT(cache_info(*Context::make(settings, observer_).value()), test::IsOk());
}

TEST_F(CacheUseCase, NeedsACache) {
  const auto context = Context::make(settings_with({}), observer_);
  ASSERT_THAT(context, test::IsOk());
  EXPECT_THAT(cache_info(**context), test::Fails(ErrorCode::kNotFound, _));
  EXPECT_THAT(clear_cache(**context), test::Fails(ErrorCode::kNotFound, _));
}

}  // namespace
}  // namespace gridscope::app
