// The test Hub as a program, for other programs to read from.
//
//   test_hub --root DIR [--port N] [--latency-ms N] [--token TOKEN]
//
// DIR holds org/name/ directories. Prints its endpoint, then serves until it is ended by a signal.

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "support/hub_server.hpp"

namespace {

namespace fs = std::filesystem;
using gridscope::test::HubRepo;
using gridscope::test::HubServer;
using gridscope::test::HubServerOptions;

std::vector<HubRepo> repos_below(const fs::path& root) {
  std::vector<HubRepo> repos;
  for (const auto& org : fs::directory_iterator(root)) {
    if (!org.is_directory()) continue;
    for (const auto& name : fs::directory_iterator(org.path())) {
      if (!name.is_directory()) continue;
      repos.push_back(gridscope::test::hub_repo_from_directory(
          fmt::format("{}/{}", org.path().filename().string(), name.path().filename().string()),
          name.path()));
    }
  }
  return repos;
}

int serve(const std::vector<std::string_view>& arguments) {
  HubServerOptions options;
  fs::path root;
  for (std::size_t i = 0; i + 1 < arguments.size(); i += 2) {
    const std::string value(arguments[i + 1]);
    if (arguments[i] == "--root") root = value;
    if (arguments[i] == "--port") options.server.port = std::stoi(value);
    if (arguments[i] == "--latency-ms") {
      options.server.latency = std::chrono::milliseconds(std::stoi(value));
    }
    if (arguments[i] == "--token") options.token = value;
  }
  if (root.empty() || arguments.size() % 2 != 0) {
    fmt::print(stderr, "usage: test_hub --root DIR [--port N] [--latency-ms N] [--token TOKEN]\n");
    return 2;
  }
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  // Blocked before the server's threads start, so that none of them takes the signal.
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const HubServer hub(repos_below(root), options);
  fmt::print("{}\n", hub.endpoint());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ends, &signal);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return serve(std::vector<std::string_view>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    fmt::print(stderr, "test_hub: {}\n", error.what());
    return 1;
  }
}
