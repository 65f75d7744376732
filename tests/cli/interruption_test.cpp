#include "gridscope/cli/interruption.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <future>
#include <mutex>
#include <string>

namespace gridscope::cli {
namespace {

using std::chrono::milliseconds;

void expect_no_giving_up(std::string_view signal) {
  ADD_FAILURE() << "gave up at " << signal;
}

// Waits until the token is stopped, at most as long as a slow machine may need.
bool is_stopped_soon(const std::stop_token& token) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, token, std::chrono::seconds(10), [&] { return token.stop_requested(); });
  return token.stop_requested();
}

TEST(Interruption, EndsQuietlyWhenNoSignalComes) {
  const Interruption interruption(expect_no_giving_up);
  EXPECT_FALSE(interruption.token().stop_requested());
  EXPECT_EQ(interruption.signal_name(), "");
}

TEST(Interruption, TurnsASignalIntoAStopRequest) {
  for (const auto& [number, name] :
       {std::pair(SIGINT, "SIGINT"), std::pair(SIGTERM, "SIGTERM"), std::pair(SIGHUP, "SIGHUP")}) {
    const Interruption interruption(expect_no_giving_up);
    ::kill(::getpid(), number);
    EXPECT_TRUE(is_stopped_soon(interruption.token()));
    EXPECT_EQ(interruption.signal_name(), name);
  }
}

TEST(Interruption, GivesUpOnWorkThatDoesNotEnd) {
  std::promise<std::string> given_up;
  const auto started = std::chrono::steady_clock::now();
  const Interruption interruption(
      [&](std::string_view signal) { given_up.set_value(std::string(signal)); });
  ::kill(::getpid(), SIGTERM);
  EXPECT_EQ(given_up.get_future().get(), "SIGTERM");
  EXPECT_GE(std::chrono::steady_clock::now() - started, Interruption::kGrace);
}

TEST(Interruption, LeavesIgnoredSignalsIgnored) {
  auto* const before = std::signal(SIGINT, SIG_IGN);
  {
    const Interruption interruption(expect_no_giving_up);
    ::kill(::getpid(), SIGINT);
    ::kill(::getpid(), SIGTERM);
    EXPECT_TRUE(is_stopped_soon(interruption.token()));
    EXPECT_EQ(interruption.signal_name(), "SIGTERM");
  }
  // A blocked signal waits even when it is ignored; take it away.
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  const timespec now = {};
  static_cast<void>(::sigtimedwait(&set, nullptr, &now));
  std::signal(SIGINT, before);
}

TEST(InterruptedBy, NamesTheSignal) {
  EXPECT_EQ(interrupted_by("SIGINT").message, "stopped by SIGINT");
  EXPECT_EQ(exit_code(interrupted_by("SIGINT").code), 3);
}

}  // namespace
}  // namespace gridscope::cli
