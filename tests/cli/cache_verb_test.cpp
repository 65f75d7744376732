#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/support.hpp"
#include "gridscope/cli/verb_list.hpp"
#include "gridscope/io/range_cache.hpp"
#include "report/json_schema.hpp"
#include "support/checkpoints.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class CacheVerb : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return (directory_ / "a \"cache\"").string(); }

  void keep_something() {
    const auto cache = io::RangeCache::open({.directory = path()}, observer_);
    ASSERT_THAT(cache, test::IsOk());
    (*cache)->put("key", 0, test::bytes_of("some bytes"));
  }

  Result<Answer> run(const std::string& action, const std::string& format) {
    return run_cache(arguments_of({"cache", action, "--cache-dir", path(), "--format", format}),
                     {.observer = observer_});
  }

  NullObserver observer_;

 private:
  test::TempDir directory_;
};

TEST_F(CacheVerb, SaysWhatIsKept) {
  keep_something();
  const auto answer = run("info", "text");
  ASSERT_THAT(answer, test::IsOk());
  EXPECT_THAT(answer->text, StartsWith(path() + ": 1 entry, "));
  EXPECT_THAT(answer->text, HasSubstr(" of at most 2.000 GiB\n"));
}

TEST_F(CacheVerb, WritesJson) {
  keep_something();
  const auto answer = run("info", "json");
  ASSERT_THAT(answer, test::IsOk());
  const auto json = nlohmann::json::parse(answer->text);
  EXPECT_EQ(json["schema"], "gridscope.cache/1");
  EXPECT_EQ(json["action"], "info");
  EXPECT_EQ(json["directory"], path());
  EXPECT_EQ(json["entries"], 1);
  EXPECT_GT(json["bytes"], 0);
  EXPECT_EQ(json["max_bytes"], 2147483648);
  const auto schema = nlohmann::json::parse(
      test::to_text(test::read_file(GRIDSCOPE_SOURCE_DIR "/reports/schema/cache-1.schema.json")));
  EXPECT_THAT(test::schema_errors(schema, json), IsEmpty());
}

TEST_F(CacheVerb, ClearsAndSaysWhatWasThere) {
  keep_something();
  const auto cleared = run("clear", "text");
  ASSERT_THAT(cleared, test::IsOk());
  EXPECT_THAT(cleared->text, StartsWith("removed 1 entry, "));
  const auto after = run("info", "text");
  ASSERT_THAT(after, test::IsOk());
  EXPECT_THAT(after->text, HasSubstr(": 0 entries, 0 B of"));
}

TEST_F(CacheVerb, RefusesWhatHasNoEffect) {
  EXPECT_THAT(parse_words({"cache", "info", "--no-cache"}),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("--no-cache has no effect")));
  keep_something();
  EXPECT_THAT(
      run_cache(arguments_of({"cache", "clear", "--cache-dir", path(), "--cache-size", "1MB"}),
                {.observer = observer_}),
      test::Fails(ErrorCode::kInvalidArgument, HasSubstr("--cache-size has no effect")));
  const auto kept = run("info", "text");
  ASSERT_THAT(kept, test::IsOk());
  EXPECT_THAT(kept->text, StartsWith(path() + ": 1 entry, "));
}

}  // namespace
}  // namespace gridscope::cli
