#pragma once

// Time as an interface, so that retries and expiry are tested without waiting.

#include <chrono>
#include <stop_token>

#include "gridscope/core/result.hpp"

namespace gridscope {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic, for durations.
  [[nodiscard]] virtual std::chrono::steady_clock::time_point now() const = 0;
  // Of day, for expiry dates that a server wrote.
  [[nodiscard]] virtual std::chrono::system_clock::time_point wall_now() const = 0;
  // Waits; kCancelled as soon as `stop` is requested.
  [[nodiscard]] virtual Status sleep_for(std::chrono::milliseconds duration,
                                         const std::stop_token& stop) = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] std::chrono::steady_clock::time_point now() const override;
  [[nodiscard]] std::chrono::system_clock::time_point wall_now() const override;
  [[nodiscard]] Status sleep_for(std::chrono::milliseconds duration,
                                 const std::stop_token& stop) override;
};

}  // namespace gridscope
