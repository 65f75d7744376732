#include "gridscope/cli/console_observer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <variant>

#include "gridscope/cli/output.hpp"
#include "gridscope/core/text.hpp"

namespace gridscope::cli {
namespace {

constexpr std::chrono::milliseconds kFirstDrawing{500};
constexpr std::chrono::milliseconds kBetweenDrawings{100};
constexpr std::size_t kMessageBytes = 2'000;
constexpr std::size_t kProgressBytes = 76;  // stays on one line of a narrow terminal
constexpr std::string_view kRed = "31";
constexpr std::string_view kYellow = "33";

std::string seconds(std::chrono::milliseconds duration) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(duration).count());
}

// "42 s", "3 min 05 s", "2 h 03 min".
std::string time_left(std::uint64_t whole_seconds) {
  constexpr std::uint64_t kMinute = 60;
  constexpr std::uint64_t kHour = 60 * kMinute;
  if (whole_seconds < kMinute) return fmt::format("{} s", whole_seconds);
  if (whole_seconds < kHour) {
    return fmt::format("{} min {:02} s", whole_seconds / kMinute, whole_seconds % kMinute);
  }
  return fmt::format("{} h {:02} min", whole_seconds / kHour, whole_seconds % kHour / kMinute);
}

std::string with_remedy(std::string_view message, std::string_view remedy) {
  std::string line = printable(message, kMessageBytes);
  if (!remedy.empty()) line += "; " + printable(remedy, kMessageBytes);
  return line;
}

// "host:port" of "GET https://host:port/path"; all of what is no such thing.
std::string_view host_in(std::string_view what) {
  const std::size_t scheme = what.find("://");
  if (scheme == std::string_view::npos) return what;
  what.remove_prefix(scheme + 3);
  return what.substr(0, what.find('/'));
}

}  // namespace

ConsoleObserver::ConsoleObserver(const ConsoleOptions& options, const Clock& clock)
    : options_(options), clock_(clock), next_drawing_(clock.now() + kFirstDrawing) {}

void ConsoleObserver::on_event(const Event& event) {
  const std::lock_guard lock(mutex_);
  std::visit([this](const auto& one) { show(one); }, event);
}

void ConsoleObserver::show_error(std::string_view subject, const Error& error) {
  const std::lock_guard lock(mutex_);
  const std::string prefix = subject.empty() ? "" : fmt::format("{}: ", subject);
  print_line(fmt::format("{} {}{}", label("gridscope:", kRed), prefix,
                         with_remedy(error.message, error.remedy)));
}

void ConsoleObserver::finish() {
  const std::lock_guard lock(mutex_);
  wipe();
}

void ConsoleObserver::show(const Warning& warning) {
  if (!warned_.insert(fmt::format("{}\n{}", warning.code, warning.message)).second) return;
  print_line(fmt::format("gridscope: {} {}: {}", label("warning:", kYellow),
                         printable(warning.code), with_remedy(warning.message, warning.remedy)));
}

void ConsoleObserver::show(const Detail& detail) {
  if (options_.details == Details::kHidden) return;
  print_line(fmt::format("gridscope: {}", printable(detail.message, kMessageBytes)));
}

void ConsoleObserver::show(const RequestSent& request) {
  if (options_.details == Details::kHidden) return;
  print_line(fmt::format("gridscope: {} {}", printable(request.method),
                         printable(request.url, kMessageBytes)));
}

void ConsoleObserver::show(const RetryScheduled& retry) {
  const std::string text = fmt::format("trying {} again in {}: {}", printable(retry.what),
                                       seconds(retry.wait), printable(retry.reason));
  if (options_.details == Details::kShown) {
    print_line(fmt::format("gridscope: {} (attempt {} failed)", text, retry.attempt));
  } else if (options_.progress == ProgressLine::kShown) {
    draw(text);
  } else if (options_.notices == Notices::kShown) {
    show_once(retry);
  }
}

void ConsoleObserver::show_once(const RetryScheduled& retry) {
  const std::string host = printable(host_in(retry.what));
  if (!tried_again_.insert(host).second) return;
  print_line(
      fmt::format("gridscope: {} cannot be read for now ({}); trying again for "
                  "a while",
                  host, printable(retry.reason)));
}

void ConsoleObserver::show(const Progress& progress) {
  if (options_.progress == ProgressLine::kHidden) return;
  const auto amount = [&](std::uint64_t n) {
    return progress.unit == Progress::Unit::kBytes ? format_bytes(n) : with_thousands(n);
  };
  std::string text = fmt::format("{} {}", printable(progress.stage), amount(progress.done));
  if (progress.total != 0) text += '/' + amount(progress.total);
  draw(text + pace(progress));
}

// ", 412.3 MiB/s, 1 min 02 s left", once there is something to go by.
std::string ConsoleObserver::pace(const Progress& progress) {
  constexpr std::chrono::seconds kEnough{1};
  const auto now = clock_.now();
  if (stage_ != progress.stage) {
    stage_ = progress.stage;
    stage_began_ = now;
    done_before_ = progress.done;
  }
  const bool in_bytes = progress.unit == Progress::Unit::kBytes;
  if (!in_bytes || now - stage_began_ < kEnough || progress.done <= done_before_) return {};
  const double took = std::chrono::duration<double>(now - stage_began_).count();
  const double rate = static_cast<double>(progress.done - done_before_) / took;
  const double left = static_cast<double>(progress.total - progress.done) / rate;
  return fmt::format(", {}/s, {} left", format_bytes(static_cast<std::uint64_t>(rate)),
                     time_left(static_cast<std::uint64_t>(left)));
}

void ConsoleObserver::print_line(std::string_view text) {
  wipe();
  // Nobody is left to tell when standard error does not take it.
  static_cast<void>(write_all(options_.descriptor, fmt::format("{}\n", text), {}));
}

void ConsoleObserver::draw(std::string_view text) {
  const auto now = clock_.now();
  if (options_.progress == ProgressLine::kHidden || now < next_drawing_) return;
  next_drawing_ = now + kBetweenDrawings;
  drawn_ = true;
  static_cast<void>(write_all(options_.descriptor,
                              fmt::format("\r\x1b[K{}", printable(text, kProgressBytes)), {}));
}

void ConsoleObserver::wipe() {
  if (!drawn_) return;
  drawn_ = false;
  static_cast<void>(write_all(options_.descriptor, "\r\x1b[K", {}));
}

std::string ConsoleObserver::label(std::string_view text, std::string_view color_code) const {
  if (options_.color == Color::kPlain) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", color_code, text);
}

}  // namespace gridscope::cli
