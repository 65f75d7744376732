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
  const std::string stage = printable(progress.stage);
  draw(progress.total == 0 ? fmt::format("{} {}", stage, with_thousands(progress.done))
                           : fmt::format("{} {}/{}", stage, with_thousands(progress.done),
                                         with_thousands(progress.total)));
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
