#include "gridscope/core/clock.hpp"

#include <condition_variable>
#include <mutex>

namespace gridscope {

std::chrono::steady_clock::time_point SystemClock::now() const {
  return std::chrono::steady_clock::now();
}

std::chrono::system_clock::time_point SystemClock::wall_now() const {
  return std::chrono::system_clock::now();
}

Status SystemClock::sleep_for(std::chrono::milliseconds duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any wake;
  wake.wait_for(lock, stop, duration, [] { return false; });
  if (stop.stop_requested()) return fail(ErrorCode::kCancelled, "cancelled while waiting");
  return {};
}

}  // namespace gridscope
