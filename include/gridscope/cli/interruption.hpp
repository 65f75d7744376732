#pragma once

// SIGINT, SIGTERM and SIGHUP as a stop request. The signals are blocked and taken up by a thread of
// their own, so that what follows is ordinary code and not a signal handler.

#include <atomic>
#include <chrono>
#include <functional>
#include <stop_token>
#include <string_view>
#include <thread>

#include "gridscope/core/result.hpp"

namespace gridscope::cli {

// Make it before any other thread (they inherit the blocked signals) and once at a time. Signals
// that are ignored when it is made stay ignored. The others stay blocked when it is gone: what is
// left to do then, saying how it ended, is not worth interrupting.
class Interruption {
 public:
  // Work that does not end within this time after a signal is abandoned.
  static constexpr std::chrono::milliseconds kGrace{700};

  // `give_up` is called on the signal thread after kGrace; it is expected to end the process.
  explicit Interruption(std::function<void(std::string_view signal)> give_up);
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption();

  [[nodiscard]] std::stop_token token() const { return stop_.get_token(); }
  // "SIGINT"; empty when no signal has come.
  [[nodiscard]] std::string_view signal_name() const;

 private:
  void watch();

  std::function<void(std::string_view)> give_up_;
  std::stop_source stop_;
  std::atomic<int> signal_ = 0;
  int signals_ = -1;   // signalfd
  int finished_ = -1;  // eventfd, readable when the destructor runs
  std::thread thread_;
};

// The error that an interrupted command ends with.
[[nodiscard]] Error interrupted_by(std::string_view signal);

}  // namespace gridscope::cli
