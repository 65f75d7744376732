#pragma once

// Standard error: warnings, details, one line of progress, and the error at the end.

#include <chrono>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "gridscope/core/clock.hpp"
#include "gridscope/core/observer.hpp"
#include "gridscope/core/result.hpp"

namespace gridscope::cli {

enum class Color : std::uint8_t { kPlain, kColored };
enum class ProgressLine : std::uint8_t { kHidden, kShown };
enum class Details : std::uint8_t { kHidden, kShown };
enum class Notices : std::uint8_t { kHidden, kShown };

struct ConsoleOptions {
  int descriptor = 2;
  Color color = Color::kPlain;
  ProgressLine progress = ProgressLine::kHidden;
  Details details = Details::kHidden;
  Notices notices = Notices::kShown;
};

// Thread-safe. Every line starts with "gridscope: ". Foreign strings are made printable.
class ConsoleObserver final : public Observer {
 public:
  ConsoleObserver(const ConsoleOptions& options, const Clock& clock);

  // A warning is shown once, however often it is reported. Progress is drawn after half a second
  // and then at most ten times a second. Without it, a notice says once for each host that it is
  // being tried again, so that a long wait is not taken for a hang.
  void on_event(const Event& event) override;

  // "gridscope: subject: message; remedy".
  void show_error(std::string_view subject, const Error& error);

  // Wipes the progress line.
  void finish();

 private:
  void show(const Warning& warning);
  void show(const Detail& detail);
  void show(const RequestSent& request);
  void show(const RetryScheduled& retry);
  void show_once(const RetryScheduled& retry);
  void show(const Progress& progress);
  [[nodiscard]] std::string pace(const Progress& progress);
  void show(const RangeRead& /*read*/) {}
  void print_line(std::string_view text);
  void draw(std::string_view text);
  void wipe();
  [[nodiscard]] std::string label(std::string_view text, std::string_view color_code) const;

  ConsoleOptions options_;
  const Clock& clock_;
  std::chrono::steady_clock::time_point next_drawing_;
  std::mutex mutex_;
  std::set<std::string, std::less<>> warned_;
  std::set<std::string, std::less<>> tried_again_;  // hosts
  bool drawn_ = false;
  // Of the stage that is under way: when it was first heard of, and how much was done by then.
  std::string stage_;
  std::chrono::steady_clock::time_point stage_began_;
  std::uint64_t done_before_ = 0;
};

}  // namespace gridscope::cli
