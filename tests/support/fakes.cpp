#include "support/fakes.hpp"

namespace gridscope::test {
namespace {

constexpr std::chrono::sys_days kFirstDay =
    std::chrono::year(2026) / std::chrono::January / std::chrono::day(1);

}  // namespace

std::chrono::steady_clock::time_point ManualClock::now() const {
  const std::scoped_lock lock(mutex_);
  return std::chrono::steady_clock::time_point(passed_);
}

std::chrono::system_clock::time_point ManualClock::wall_now() const {
  const std::scoped_lock lock(mutex_);
  return kFirstDay + passed_;
}

Status ManualClock::sleep_for(std::chrono::milliseconds duration, const std::stop_token& stop) {
  if (stop.stop_requested()) return fail(ErrorCode::kCancelled, "cancelled while waiting");
  const std::scoped_lock lock(mutex_);
  sleeps_.push_back(duration);
  passed_ += duration;
  return {};
}

void ManualClock::advance(std::chrono::milliseconds duration) {
  const std::scoped_lock lock(mutex_);
  passed_ += duration;
}

std::vector<std::chrono::milliseconds> ManualClock::sleeps() const {
  const std::scoped_lock lock(mutex_);
  return sleeps_;
}

void CollectingObserver::on_event(const Event& event) {
  struct Keep {
    Kept operator()(const RangeRead& e) const {
      return Read{std::string(e.source), e.offset, e.bytes, e.origin};
    }
    Kept operator()(const RequestSent& e) const {
      return Request{std::string(e.method), std::string(e.url)};
    }
    Kept operator()(const RetryScheduled& e) const {
      return Retry{std::string(e.what), std::string(e.reason), e.attempt, e.wait};
    }
    Kept operator()(const Warning& e) const {
      return Notice{std::string(e.code), std::string(e.message), std::string(e.remedy)};
    }
    Kept operator()(const Detail& e) const { return std::string(e.message); }
    Kept operator()(const Progress& e) const { return Step{std::string(e.stage), e.done, e.total}; }
  };
  const std::scoped_lock lock(mutex_);
  events_.push_back(std::visit(Keep{}, event));
}

void CollectingObserver::clear() {
  const std::scoped_lock lock(mutex_);
  events_.clear();
}

Status RecordingSource::read_at(std::uint64_t offset, std::span<std::byte> into) const {
  {
    const std::scoped_lock lock(mutex_);
    single_reads_.push_back({.offset = offset, .length = into.size()});
  }
  return source_->read_at(offset, into);
}

Status RecordingSource::read_many(std::span<const io::ReadRequest> requests) const {
  std::vector<io::ByteRange> batch;
  for (const io::ReadRequest& request : requests) {
    batch.push_back({.offset = request.offset, .length = request.into.size()});
  }
  {
    const std::scoped_lock lock(mutex_);
    batches_.push_back(std::move(batch));
  }
  return source_->read_many(requests);
}

std::vector<io::ByteRange> RecordingSource::single_reads() const {
  const std::scoped_lock lock(mutex_);
  return single_reads_;
}

std::vector<std::vector<io::ByteRange>> RecordingSource::batches() const {
  const std::scoped_lock lock(mutex_);
  return batches_;
}

Status FaultySource::read_at(std::uint64_t offset, std::span<std::byte> into) const {
  if (!strikes(offset, into.size())) return source_->read_at(offset, into);
  switch (plan_.fault) {
    case Fault::kShortRead:
      GRIDSCOPE_CHECK(source_->read_at(offset, into.first(into.size() / 2)));
      return fail(ErrorCode::kUnavailable, "the connection closed early");
    case Fault::kFlippedBit:
      GRIDSCOPE_CHECK(source_->read_at(offset, into));
      into[plan_.fault_at - offset] ^= std::byte{1};
      return {};
    case Fault::kChanged:
      break;
  }
  return fail(ErrorCode::kChanged, "the file is not the one that was opened");
}

bool FaultySource::strikes(std::uint64_t offset, std::uint64_t length) const {
  if (plan_.fault_at < offset || plan_.fault_at - offset >= length) return false;
  const std::uint64_t earlier = concerned_.fetch_add(1);
  return earlier >= plan_.spare && earlier - plan_.spare < plan_.times;
}

}  // namespace gridscope::test
