#pragma once

// Stand-ins for the seams of core and io: a clock that is moved by hand, an observer that keeps
// what it was told, a source that keeps what it was asked, a source with one fault. All are
// thread-safe.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "gridscope/core/clock.hpp"
#include "gridscope/core/observer.hpp"
#include "gridscope/io/byte_source.hpp"

namespace gridscope::test {

// Stands still until it is moved; a sleep moves it at once and is written down. The wall clock
// starts at 2026-01-01 00:00:00 UTC.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] std::chrono::steady_clock::time_point now() const override;
  [[nodiscard]] std::chrono::system_clock::time_point wall_now() const override;
  [[nodiscard]] Status sleep_for(std::chrono::milliseconds duration,
                                 const std::stop_token& stop) override;

  void advance(std::chrono::milliseconds duration);
  [[nodiscard]] std::vector<std::chrono::milliseconds> sleeps() const;

 private:
  mutable std::mutex mutex_;
  std::chrono::milliseconds passed_{0};
  std::vector<std::chrono::milliseconds> sleeps_;
};

// Keeps every event, with its texts, in the order of arrival.
class CollectingObserver final : public Observer {
 public:
  struct Read {
    std::string source;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    Origin origin = Origin::kDisk;
    friend bool operator==(const Read&, const Read&) = default;
  };
  struct Request {
    std::string method;
    std::string url;
    friend bool operator==(const Request&, const Request&) = default;
  };
  struct Retry {
    std::string what;
    std::string reason;
    int attempt = 1;
    std::chrono::milliseconds wait{0};
    friend bool operator==(const Retry&, const Retry&) = default;
  };
  struct Notice {
    std::string code;
    std::string message;
    std::string remedy;
    friend bool operator==(const Notice&, const Notice&) = default;
  };
  struct Step {
    std::string stage;
    std::uint64_t done = 0;
    std::uint64_t total = 0;
    friend bool operator==(const Step&, const Step&) = default;
  };

  void on_event(const Event& event) override;

  [[nodiscard]] std::vector<Read> reads() const { return all<Read>(); }
  [[nodiscard]] std::vector<Request> requests() const { return all<Request>(); }
  [[nodiscard]] std::vector<Retry> retries() const { return all<Retry>(); }
  [[nodiscard]] std::vector<Notice> warnings() const { return all<Notice>(); }
  [[nodiscard]] std::vector<std::string> details() const { return all<std::string>(); }
  [[nodiscard]] std::vector<Step> steps() const { return all<Step>(); }
  void clear();

 private:
  using Kept = std::variant<Read, Request, Retry, Notice, std::string, Step>;

  template <typename T>
  [[nodiscard]] std::vector<T> all() const {
    const std::scoped_lock lock(mutex_);
    std::vector<T> found;
    for (const Kept& event : events_) {
      if (const T* one = std::get_if<T>(&event)) found.push_back(*one);
    }
    return found;
  }

  mutable std::mutex mutex_;
  std::vector<Kept> events_;
};

// Passes reads on and remembers them.
class RecordingSource final : public io::ByteSource {
 public:
  explicit RecordingSource(std::unique_ptr<io::ByteSource> source) : source_(std::move(source)) {}

  [[nodiscard]] std::uint64_t size() const override { return source_->size(); }
  [[nodiscard]] const io::SourceIdentity& identity() const override { return source_->identity(); }
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> into) const override;
  [[nodiscard]] Status read_many(std::span<const io::ReadRequest> requests) const override;

  // Of read_at, in order of arrival.
  [[nodiscard]] std::vector<io::ByteRange> single_reads() const;
  // The requests of each read_many.
  [[nodiscard]] std::vector<std::vector<io::ByteRange>> batches() const;

 private:
  const std::unique_ptr<io::ByteSource> source_;
  mutable std::mutex mutex_;
  mutable std::vector<io::ByteRange> single_reads_;
  mutable std::vector<std::vector<io::ByteRange>> batches_;
};

// What goes wrong with a FaultySource.
enum class Fault : std::uint8_t {
  kShortRead,   // kUnavailable after half of the bytes
  kFlippedBit,  // the lowest bit of the byte at fault_at is the other one; the read succeeds
  kChanged,     // kChanged, as if the file had been replaced
};

struct FaultPlan {
  Fault fault = Fault::kShortRead;
  std::uint64_t fault_at = 0;        // reads that include this byte are concerned
  std::uint64_t spare = 0;           // so many of them go well first
  std::uint64_t times = UINT64_MAX;  // so many then fail; later ones go well again
};

// Passes reads on, with a fault.
class FaultySource final : public io::ByteSource {
 public:
  FaultySource(std::unique_ptr<io::ByteSource> source, FaultPlan plan)
      : source_(std::move(source)), plan_(plan) {}

  [[nodiscard]] std::uint64_t size() const override { return source_->size(); }
  [[nodiscard]] const io::SourceIdentity& identity() const override { return source_->identity(); }
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> into) const override;

 private:
  [[nodiscard]] bool strikes(std::uint64_t offset, std::uint64_t length) const;

  const std::unique_ptr<io::ByteSource> source_;
  const FaultPlan plan_;
  mutable std::atomic<std::uint64_t> concerned_ = 0;
};

}  // namespace gridscope::test
