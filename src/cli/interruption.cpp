#include "gridscope/cli/interruption.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

namespace gridscope::cli {
namespace {

constexpr auto kSignals = std::to_array<std::pair<int, std::string_view>>(
    {{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}});

// Without those that the parent had us ignore: nohup means it, and so does `command &` in a script.
sigset_t heeded_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const auto& [number, name] : kSignals) {
    struct sigaction action = {};
    const bool known = ::sigaction(number, nullptr, &action) == 0;
    if (known && action.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  return set;
}

}  // namespace

Interruption::Interruption(std::function<void(std::string_view)> give_up)
    : give_up_(std::move(give_up)) {
  const sigset_t set = heeded_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC);
  finished_ = ::eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { watch(); });
}

Interruption::~Interruption() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(finished_, &one, sizeof one));
  thread_.join();
  ::close(signals_);
  ::close(finished_);
}

std::string_view Interruption::signal_name() const {
  const int received = signal_;
  for (const auto& [number, name] : kSignals) {
    if (number == received) return name;
  }
  return {};
}

void Interruption::watch() {
  constexpr int kForever = -1;
  std::array entries = {pollfd{.fd = finished_, .events = POLLIN, .revents = 0},
                        pollfd{.fd = signals_, .events = POLLIN, .revents = 0}};
  while (::poll(entries.data(), entries.size(), kForever) < 0 && errno == EINTR) continue;
  signalfd_siginfo info = {};
  if (entries[0].revents != 0 || ::read(signals_, &info, sizeof info) != sizeof info) return;
  signal_ = static_cast<int>(info.ssi_signo);
  stop_.request_stop();
  const bool abandoned = ::poll(entries.data(), 1, static_cast<int>(kGrace.count())) == 0;
  if (abandoned) give_up_(signal_name());
}

Error interrupted_by(std::string_view signal) {
  return {.code = ErrorCode::kCancelled, .message = fmt::format("stopped by {}", signal)};
}

}  // namespace gridscope::cli
