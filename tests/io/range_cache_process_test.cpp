// The range cache under several processes at once, and under kill -9 in the middle of writing:
// every read must be right or a miss.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "gridscope/io/range_cache.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::io {
namespace {

namespace fs = std::filesystem;
using test::IsOk;

constexpr std::uint64_t kObjects = 6;
constexpr std::uint64_t kPieces = 8;
constexpr std::uint64_t kPieceBytes = 5000;
constexpr std::uint64_t kMaxBytes = 120'000;  // half of all pieces

std::string key_of(std::uint64_t object) {
  return "object " + std::to_string(object);
}

// Any stretch of an object, the same in every process; it does not shrink well.
std::vector<std::byte> content(std::uint64_t object, std::uint64_t offset, std::uint64_t length) {
  std::vector<std::byte> bytes(length);
  for (std::uint64_t i = 0; i < length; ++i) {
    const std::uint64_t mixed = (offset + i + object * 1'000'003) * 0x9E3779B97F4A7C15;
    bytes[i] = static_cast<std::byte>(mixed >> 56);
  }
  return bytes;
}

class Worker {
 public:
  Worker(const fs::path& directory, std::uint32_t seed) : random_(seed) {
    auto cache = RangeCache::open({.directory = directory, .max_bytes = kMaxBytes}, observer_);
    cache_ = *std::move(cache);
  }

  void write() {
    const std::uint64_t object = below(kObjects);
    const std::uint64_t offset = below(kPieces) * kPieceBytes;
    cache_->put(key_of(object), offset, content(object, offset, kPieceBytes));
  }

  // False when the cache served something wrong.
  bool read() {
    const std::uint64_t object = below(kObjects);
    const std::uint64_t offset = below(kPieces * kPieceBytes);
    return is_right_or_missing(object, offset, 1 + below(2 * kPieceBytes));
  }

  bool is_right_or_missing(std::uint64_t object, std::uint64_t offset, std::uint64_t length) {
    std::vector<std::byte> bytes(length);
    if (!cache_->get(key_of(object), offset, bytes)) return true;
    ++hits_;
    return bytes == content(object, offset, length);
  }

  [[nodiscard]] std::uint64_t hits() const { return hits_; }
  [[nodiscard]] RangeCache& cache() { return *cache_; }

 private:
  std::uint64_t below(std::uint64_t limit) {
    return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(random_);
  }

  NullObserver observer_;
  std::unique_ptr<RangeCache> cache_;
  std::mt19937 random_;
  std::uint64_t hits_ = 0;
};

// Runs `work` in a child process, which ends with 0 when it returns true.
template <typename Work>
pid_t start(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work() ? 0 : 1);
  return child;
}

// How the child ended: its exit code, or the negative number of its signal.
int end_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool everything_is_right_or_missing(Worker& worker) {
  for (std::uint64_t object = 0; object < kObjects; ++object) {
    for (std::uint64_t piece = 0; piece < kPieces; ++piece) {
      if (!worker.is_right_or_missing(object, piece * kPieceBytes, kPieceBytes)) return false;
    }
  }
  return true;
}

TEST(RangeCacheProcesses, WriteReadAndEvictAtOnce) {
  const test::TempDir directory;
  std::vector<pid_t> children;
  for (std::uint32_t seed = 0; seed < 6; ++seed) {
    children.push_back(start([&] {
      Worker worker(directory.path(), seed);
      bool right = true;
      for (int i = 0; i < 400 && right; ++i) {
        if (i % 2 == 0) worker.write();
        right = worker.read();
      }
      return right && worker.hits() > 0;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(end_of(child), 0);
  Worker after(directory.path(), 99);
  EXPECT_TRUE(everything_is_right_or_missing(after));
  EXPECT_GT(after.hits(), 0);
  after.write();
  EXPECT_LE(after.cache().usage().bytes, kMaxBytes);
}

TEST(RangeCacheProcesses, ClearWhileOthersWrite) {
  const test::TempDir directory;
  std::vector<pid_t> children;
  for (std::uint32_t seed = 0; seed < 2; ++seed) {
    children.push_back(start([&] {
      Worker worker(directory.path(), seed);
      bool right = true;
      for (int i = 0; i < 300 && right; ++i) {
        worker.write();
        right = worker.read();
      }
      return right;
    }));
  }
  Worker cleaner(directory.path(), 7);
  for (int i = 0; i < 50; ++i) EXPECT_THAT(cleaner.cache().clear(), IsOk());
  for (const pid_t child : children) EXPECT_EQ(end_of(child), 0);
}

TEST(RangeCacheProcesses, SurviveBeingKilledInTheMiddleOfWrites) {
  const test::TempDir directory;
  std::mt19937 random(1);
  std::uint64_t hits = 0;
  for (std::uint32_t round = 0; round < 25; ++round) {
    const pid_t writer = start([&] {
      for (Worker worker(directory.path(), round);;) worker.write();
      return false;
    });
    std::this_thread::sleep_for(std::chrono::microseconds(2000 + random() % 15'000));
    ASSERT_EQ(::kill(writer, SIGKILL), 0);
    EXPECT_EQ(end_of(writer), -SIGKILL);
    Worker reader(directory.path(), round);
    ASSERT_TRUE(everything_is_right_or_missing(reader)) << "after round " << round;
    hits += reader.hits();
  }
  EXPECT_GT(hits, 0);
}

}  // namespace
}  // namespace gridscope::io
