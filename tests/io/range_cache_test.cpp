#include "gridscope/io/range_cache.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>

#include "gridscope/core/parallel.hpp"
#include "support/fakes.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::io {
namespace {

namespace fs = std::filesystem;
using test::bytes_of;
using test::Fails;
using test::IsOk;
using test::to_bytes;
using test::to_text;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Bytes that do not shrink.
std::vector<std::byte> noise(std::size_t length, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(length);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

std::vector<fs::path> files_in(const fs::path& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file() && entry.path().filename() != "lock") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

void set_age(const fs::path& path, std::chrono::seconds age) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - age);
}

class RangeCacheTest : public ::testing::Test {
 protected:
  std::unique_ptr<RangeCache> open(std::uint64_t max_bytes = 1 << 30) {
    auto cache = RangeCache::open({.directory = root_, .max_bytes = max_bytes}, observer_);
    EXPECT_THAT(cache, IsOk());
    return *std::move(cache);
  }

  // What the cache gives for that range; empty when it has nothing.
  static std::string get(RangeCache& cache, const std::string& key, std::uint64_t offset,
                         std::size_t length) {
    std::vector<std::byte> bytes(length);
    return cache.get(key, offset, bytes) ? to_text(bytes) : "";
  }

  fs::path only_file() const {
    const auto files = files_in(root_);
    EXPECT_THAT(files, SizeIs(1));
    return files.front();
  }

  const test::TempDir directory_;
  const fs::path root_ = directory_ / "made" / "cache";
  test::CollectingObserver observer_;
};

TEST_F(RangeCacheTest, GivesBackWhatItKeeps) {
  const auto cache = open();
  EXPECT_EQ(get(*cache, "key", 100, 6), "");
  cache->put("key", 100, bytes_of("abcdef"));
  EXPECT_EQ(get(*cache, "key", 100, 6), "abcdef");
  EXPECT_EQ(get(*cache, "key", 102, 3), "cde");
  EXPECT_EQ(get(*cache, "key", 99, 2), "");
  EXPECT_EQ(get(*cache, "key", 105, 2), "");
  EXPECT_EQ(get(*cache, "other", 100, 6), "");
}

TEST_F(RangeCacheTest, KeepsAcrossRuns) {
  open()->put("key", 0, bytes_of("abc"));
  EXPECT_EQ(get(*open(), "key", 0, 3), "abc");
}

TEST_F(RangeCacheTest, PutsAdjoiningEntriesTogether) {
  const auto cache = open();
  cache->put("key", 0, bytes_of("abcd"));
  cache->put("key", 4, bytes_of("efgh"));
  cache->put("key", 6, bytes_of("ghij"));
  cache->put("key", 12, bytes_of("mn"));
  EXPECT_EQ(get(*cache, "key", 0, 10), "abcdefghij");
  EXPECT_EQ(get(*cache, "key", 3, 5), "defgh");
  EXPECT_EQ(get(*cache, "key", 8, 5), "");
}

TEST_F(RangeCacheTest, PrefersNothingToRangesBeyondTheNumbers) {
  const auto cache = open();
  cache->put("key", 0, bytes_of("abc"));
  std::vector<std::byte> bytes(8);
  EXPECT_FALSE(cache->get("key", UINT64_MAX - 2, bytes));
}

TEST_F(RangeCacheTest, KeepsDocumentsBesideRanges) {
  const auto cache = open();
  EXPECT_EQ(cache->get_document("key"), std::nullopt);
  cache->put("key", 0, bytes_of("range"));
  cache->put_document("key", bytes_of("first text"));
  cache->put_document("key", bytes_of("second"));
  cache->put_document("empty", {});
  EXPECT_EQ(cache->get_document("key"), to_bytes("second"));
  EXPECT_EQ(cache->get_document("empty"), to_bytes(""));
  EXPECT_EQ(get(*cache, "key", 0, 5), "range");
  EXPECT_EQ(cache->usage().entries, 3);
}

TEST_F(RangeCacheTest, KeepsNoRangeAboveTheEntryLimit) {
  auto cache = RangeCache::open({.directory = root_, .max_entry_bytes = 4}, observer_);
  ASSERT_THAT(cache, IsOk());
  (*cache)->put("key", 0, bytes_of("abcde"));
  (*cache)->put("key", 0, {});
  (*cache)->put_document("key", bytes_of("abcde"));
  EXPECT_EQ((*cache)->usage().entries, 0);
  (*cache)->put("key", 0, bytes_of("abcd"));
  EXPECT_EQ(get(**cache, "key", 0, 4), "abcd");
}

TEST_F(RangeCacheTest, IsForItsOwnerOnly) {
  open()->put("key", 0, bytes_of("abc"));
  const auto mode = [](const fs::path& path) {
    struct stat state{};
    EXPECT_EQ(::stat(path.c_str(), &state), 0);
    return state.st_mode & 0777U;
  };
  EXPECT_EQ(mode(root_.parent_path()), 0700);
  EXPECT_EQ(mode(root_), 0700);
  EXPECT_EQ(mode(only_file()), 0600);
  EXPECT_EQ(mode(only_file().parent_path()), 0700);
}

TEST_F(RangeCacheTest, MakesNoDirectoryBeforeItKeepsSomething) {
  const auto cache = open();
  EXPECT_EQ(get(*cache, "key", 0, 1), "");
  EXPECT_EQ(cache->usage().entries, 0);
  EXPECT_FALSE(fs::exists(root_));
}

TEST_F(RangeCacheTest, RemovesADamagedEntryAndNeverServesIt) {
  const auto cache = open();
  cache->put("key", 0, noise(1000, 1));
  const fs::path path = only_file();
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(500);
    const int before = file.get();
    file.seekp(500);
    file.put(static_cast<char>(before ^ 1));
  }
  std::vector<std::byte> bytes(1000);
  EXPECT_FALSE(cache->get("key", 0, bytes));
  EXPECT_FALSE(fs::exists(path));
  EXPECT_THAT(observer_.details(), ElementsAre(HasSubstr("removed a damaged entry")));
  cache->put("key", 0, noise(1000, 1));
  EXPECT_TRUE(cache->get("key", 0, bytes));
  EXPECT_EQ(bytes, noise(1000, 1));
}

TEST_F(RangeCacheTest, RemovesEntriesThatAreNotWhatTheirNameSays) {
  const auto cache = open();
  cache->put("key", 0, bytes_of("abcd"));
  const fs::path directory = only_file().parent_path();
  fs::rename(directory / "0-4.zst", directory / "4-4.zst");
  EXPECT_EQ(get(*cache, "key", 4, 4), "");
  cache->put("key", 0, bytes_of("abcd"));
  fs::rename(directory / "0-4.zst", directory / "0-5.zst");
  EXPECT_EQ(get(*cache, "key", 0, 4), "");
  cache->put("key", 0, bytes_of("abcd"));
  fs::rename(directory / "0-4.zst", directory / "document.zst");
  EXPECT_EQ(get(*cache, "key", 0, 4), "");
}

// As if the hashes of two keys were the same.
TEST_F(RangeCacheTest, ComparesTheWholeKey) {
  const auto cache = open();
  cache->put("one", 0, bytes_of("abcd"));
  const fs::path one = only_file();
  cache->put("two", 0, bytes_of("efgh"));
  for (const fs::path& file : files_in(root_)) {
    if (file != one) fs::copy_file(file, one, fs::copy_options::overwrite_existing);
  }
  EXPECT_EQ(get(*cache, "one", 0, 4), "");
  EXPECT_EQ(get(*cache, "two", 0, 4), "efgh");
}

TEST_F(RangeCacheTest, LooksAtNoForeignNames) {
  const auto cache = open();
  cache->put("key", 0, bytes_of("abcd"));
  const fs::path directory = only_file().parent_path();
  for (const char* name :
       {"0-8", "0-8.zst.bak", "00-8.zst", "+0-8.zst", "0-08.zst", "-8.zst", "0-.zst",
        "0-18446744073709551616.zst", "1-18446744073709551615.zst", "notes.txt"}) {
    std::ofstream(directory / name) << "x";
  }
  std::ofstream(root_ / "readme") << "x";
  fs::create_directory(root_ / "zz");
  EXPECT_EQ(get(*cache, "key", 0, 8), "");
  EXPECT_EQ(cache->usage().entries, 1);
  EXPECT_THAT(cache->clear(), IsOk());
  EXPECT_TRUE(fs::exists(directory / "notes.txt"));
  EXPECT_TRUE(fs::exists(root_ / "readme"));
}

TEST_F(RangeCacheTest, FollowsNoLinksOutOfItsDirectory) {
  const auto cache = open();
  cache->put("key", 0, bytes_of("abcd"));
  const fs::path entry = only_file();
  fs::rename(entry, directory_ / "outside");
  fs::create_symlink(directory_ / "outside", entry);
  EXPECT_EQ(get(*cache, "key", 0, 4), "");
  EXPECT_EQ(cache->usage().entries, 0);
}

TEST_F(RangeCacheTest, EvictsTheLeastRecentlyUsed) {
  const auto cache = open(5000);
  for (const char* key : {"a", "b", "c", "d"}) {
    cache->put(key, 0, noise(1000, 1));
  }
  ASSERT_EQ(cache->usage().entries, 4);
  std::vector<std::byte> bytes(1000);
  for (const fs::path& file : files_in(root_)) set_age(file, std::chrono::hours(1));
  EXPECT_TRUE(cache->get("b", 0, bytes));
  cache->put("e", 0, noise(1000, 2));
  EXPECT_LE(cache->usage().bytes, 5000);
  EXPECT_TRUE(cache->get("b", 0, bytes));
  EXPECT_TRUE(cache->get("e", 0, bytes));
  EXPECT_FALSE(cache->get("a", 0, bytes) && cache->get("c", 0, bytes) && cache->get("d", 0, bytes));
}

TEST_F(RangeCacheTest, StaysWithinItsSizeOverManyPuts) {
  const auto cache = open(50'000);
  for (std::uint32_t i = 0; i < 150; ++i) {
    cache->put("key " + std::to_string(i % 30), i * 1000ULL, noise(1000, i));
    ASSERT_LE(cache->usage().bytes, 50'000);
  }
  EXPECT_GT(cache->usage().bytes, 40'000);
}

TEST_F(RangeCacheTest, TakesNoEntryLargerThanTheWhole) {
  const auto cache = open(500);
  cache->put("small", 0, noise(100, 1));
  cache->put("large", 0, noise(1000, 1));
  EXPECT_EQ(cache->usage().entries, 1);
}

TEST_F(RangeCacheTest, SweepsTemporariesOfACrash) {
  open()->put("key", 0, bytes_of("abcd"));
  const fs::path directory = only_file().parent_path();
  std::ofstream(directory / "old.tmp") << "half";
  std::ofstream(directory / "young.tmp") << "half";
  set_age(directory / "old.tmp", std::chrono::hours(2));
  open()->put("key", 4, bytes_of("efgh"));
  EXPECT_FALSE(fs::exists(directory / "old.tmp"));
  EXPECT_TRUE(fs::exists(directory / "young.tmp"));
}

TEST_F(RangeCacheTest, LeavesSweepingToWhoeverHoldsTheLock) {
  const auto cache = open(2000);
  cache->put("a", 0, noise(1000, 1));
  const int lock = ::open((root_ / "lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(lock, 0);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  cache->put("b", 0, noise(1000, 2));
  EXPECT_EQ(cache->usage().entries, 2);
  ASSERT_EQ(::close(lock), 0);
  cache->put("c", 0, noise(1000, 3));
  EXPECT_LE(cache->usage().bytes, 2000);
}

TEST_F(RangeCacheTest, ClearsEverything) {
  const auto cache = open();
  cache->put("a", 0, bytes_of("abcd"));
  cache->put("b", 0, bytes_of("abcd"));
  cache->put_document("c", bytes_of("abcd"));
  const RangeCacheUsage before = cache->usage();
  EXPECT_EQ(before.entries, 3);
  EXPECT_GT(before.bytes, 0);
  const auto removed = cache->clear();
  ASSERT_THAT(removed, IsOk());
  EXPECT_EQ(removed->entries, before.entries);
  EXPECT_EQ(removed->bytes, before.bytes);
  EXPECT_EQ(cache->usage().entries, 0);
  EXPECT_THAT(files_in(root_), IsEmpty());
  EXPECT_EQ(get(*cache, "a", 0, 4), "");
  cache->put("a", 0, bytes_of("abcd"));
  EXPECT_EQ(get(*cache, "a", 0, 4), "abcd");
}

TEST_F(RangeCacheTest, ClearsADirectoryThatIsNotThere) {
  const auto removed = open()->clear();
  ASSERT_THAT(removed, IsOk());
  EXPECT_EQ(removed->entries, 0);
}

TEST_F(RangeCacheTest, RefusesAPathThatIsNoDirectory) {
  std::ofstream(directory_ / "file") << "x";
  EXPECT_THAT(RangeCache::open({.directory = directory_ / "file"}, observer_),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("is not a directory")));
}

TEST_F(RangeCacheTest, WarnsOnceWhenItCannotBeWritten) {
  std::ofstream(directory_ / "file") << "x";
  auto cache = RangeCache::open({.directory = directory_ / "file" / "cache"}, observer_);
  ASSERT_THAT(cache, IsOk());
  (*cache)->put("a", 0, bytes_of("abcd"));
  (*cache)->put("b", 0, bytes_of("abcd"));
  (*cache)->put_document("c", bytes_of("abcd"));
  EXPECT_EQ(get(**cache, "a", 0, 4), "");
  const auto warnings = observer_.warnings();
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings.front().code, "CACHE_UNWRITABLE");
  EXPECT_THAT(warnings.front().message, HasSubstr("cannot be written: making"));
  EXPECT_FALSE(warnings.front().remedy.empty());
}

// A limit on file sizes stands in for a full disk: the write fails in its middle.
TEST_F(RangeCacheTest, LeavesNothingBehindWhenTheDiskIsFull) {
  const auto cache = open();
  cache->put("before", 0, bytes_of("abcd"));
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 500, .rlim_max = old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  cache->put("key", 0, noise(1000, 1));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, previous);
  EXPECT_THAT(observer_.warnings(), SizeIs(1));
  EXPECT_THAT(files_in(root_), SizeIs(1));
  EXPECT_EQ(get(*cache, "before", 0, 4), "abcd");
}

TEST_F(RangeCacheTest, ServesManyThreads) {
  const auto cache = open(100'000);
  const auto body = [&](std::size_t i) -> Status {
    const auto seed = static_cast<std::uint32_t>(i % 40);
    const std::string key = "key " + std::to_string(seed);
    std::vector<std::byte> bytes(4000);
    if (!cache->get(key, 0, bytes)) {
      cache->put(key, 0, noise(4000, seed));
    } else if (bytes != noise(4000, seed)) {
      return fail(ErrorCode::kInternal, "wrong bytes for " + key);
    }
    return {};
  };
  EXPECT_THAT(parallel_chunks(1000, 8, body), IsOk());
  EXPECT_THAT(observer_.warnings(), IsEmpty());
}

class CacheDirectory : public ::testing::Test {
 protected:
  ~CacheDirectory() override {
    restore("XDG_CACHE_HOME", cache_);
    restore("HOME", home_);
  }

  static std::optional<std::string> variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }
  static void restore(const char* name, const std::optional<std::string>& value) {
    value ? ::setenv(name, value->c_str(), 1) : ::unsetenv(name);
  }

  const std::optional<std::string> cache_ = variable("XDG_CACHE_HOME");
  const std::optional<std::string> home_ = variable("HOME");
};

TEST_F(CacheDirectory, IsWhereTheUserKeepsCaches) {
  restore("XDG_CACHE_HOME", "/var/tmp/caches");
  restore("HOME", "/home/someone");
  EXPECT_EQ(default_cache_directory(), "/var/tmp/caches/gridscope");
  restore("XDG_CACHE_HOME", "");
  EXPECT_EQ(default_cache_directory(), "/home/someone/.cache/gridscope");
  restore("XDG_CACHE_HOME", "relative");
  EXPECT_EQ(default_cache_directory(), "/home/someone/.cache/gridscope");
  restore("HOME", std::nullopt);
  EXPECT_THAT(default_cache_directory(), Fails(ErrorCode::kNotFound, HasSubstr("HOME")));
}

}  // namespace
}  // namespace gridscope::io
