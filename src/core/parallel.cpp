#include "gridscope/core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace gridscope {
namespace {

// What the worker threads share: the next index to hand out, and the failure with the lowest index.
class Run {
 public:
  Run(std::size_t n, const std::function<Status(std::size_t)>& body, const std::stop_token& stop)
      : n_(n), body_(body), stop_(stop) {}

  void work() {
    while (!failed_.load(std::memory_order_relaxed) && !stop_.stop_requested()) {
      const std::size_t i = next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= n_) return;
      if (Status status = body_(i); !status) record(i, std::move(status).error());
    }
  }

  [[nodiscard]] Status outcome() {
    if (first_) return tl::make_unexpected(std::move(first_->error));
    if (next_ < n_ && stop_.stop_requested()) return fail(ErrorCode::kCancelled, "cancelled");
    return {};
  }

 private:
  struct Failure {
    std::size_t index;
    Error error;
  };

  void record(std::size_t index, Error error) {
    const std::scoped_lock lock(mutex_);
    failed_ = true;
    if (!first_ || index < first_->index) first_ = Failure{index, std::move(error)};
  }

  const std::size_t n_;
  const std::function<Status(std::size_t)>& body_;
  const std::stop_token& stop_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::optional<Failure> first_;
};

// Starts up to `count` helpers; a machine that has no more threads to give gets by with fewer.
std::vector<std::jthread> start_helpers(std::size_t count, Run& run) {
  std::vector<std::jthread> helpers;
  try {
    while (helpers.size() < count) helpers.emplace_back([&run] { run.work(); });
  } catch (const std::system_error&) {
    return helpers;
  }
  return helpers;
}

}  // namespace

Status parallel_chunks(std::size_t n, std::size_t threads,
                       const std::function<Status(std::size_t)>& body,
                       const std::stop_token& stop) {
  Run run(n, body, stop);
  {
    const std::vector<std::jthread> helpers =
        n == 0 ? std::vector<std::jthread>() : start_helpers(std::min(n, threads) - 1, run);
    run.work();
  }
  return run.outcome();
}

}  // namespace gridscope
