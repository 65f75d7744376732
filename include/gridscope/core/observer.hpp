#pragma once

// The one way out of the library besides return values. The library never prints; it tells an
// Observer what happens, and the command line turns that into progress, warnings and the count of
// what was read.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace gridscope {

// Where bytes came from.
enum class Origin : std::uint8_t { kDisk, kNetwork, kCache };

// Bytes were read from a source; one event per read operation (per coalesced range).
struct RangeRead {
  std::string_view source;  // printable, without query string
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  Origin origin = Origin::kDisk;
};

// A request went out over the network (a redirect hop and a retry each count).
struct RequestSent {
  std::string_view method;
  std::string_view url;  // printable, without query string
};

struct RetryScheduled {
  std::string_view what;
  std::string_view reason;
  int attempt = 1;  // the attempt that failed, from 1
  std::chrono::milliseconds wait{0};
};

// Something the user should know although the work goes on. `code` is stable, upper case.
struct Warning {
  std::string_view code;
  std::string_view message;
  std::string_view remedy;
};

// A choice made on the user's behalf; shown with -v.
struct Detail {
  std::string_view message;
};

struct Progress {
  std::string_view stage;
  std::uint64_t done = 0;
  std::uint64_t total = 0;  // 0: not known
  enum class Unit : std::uint8_t { kCount, kBytes };
  Unit unit = Unit::kCount;
};

using Event = std::variant<RangeRead, RequestSent, RetryScheduled, Warning, Detail, Progress>;

// Thread-safe: any thread may report at any time. Views are valid during the call only.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_event(const Event& event) = 0;
};

// Ignores everything.
class NullObserver final : public Observer {
 public:
  void on_event(const Event& event) override;
};

// What a run has read so far.
struct ReadTotals {
  std::uint64_t requests = 0;    // sent over the network, plus read operations on local files
  std::uint64_t bytes = 0;       // from network and disk, not from the range cache
  std::uint64_t cache_hits = 0;  // ranges that the range cache served

  friend bool operator==(const ReadTotals&, const ReadTotals&) = default;
};

// Counts reads and passes every event on. Thread-safe.
class ReadCounter final : public Observer {
 public:
  explicit ReadCounter(Observer& next) : next_(next) {}
  void on_event(const Event& event) override;
  [[nodiscard]] ReadTotals totals() const;

 private:
  Observer& next_;
  std::atomic<std::uint64_t> requests_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<std::uint64_t> cache_hits_ = 0;
};

}  // namespace gridscope
