#pragma once

// Runs a program to its end and keeps what it said and what it cost.

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gridscope::test {

struct ProcessOptions {
  // Added to this process's environment, or taken from it where the value is empty.
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::string directory = {};  // to run in; empty: this process's
};

struct ProcessResult {
  int exit_code = 0;  // 128 + the signal when one ended it, as shells count
  std::string out;
  std::string err;
  std::chrono::duration<double> wall{0};
  std::chrono::duration<double> cpu{0};  // of all its threads, in user mode and in the kernel
  // Linux counts what this process held when the program started in it: never less than the peak
  // of this process, so measure from a small one.
  std::uint64_t peak_rss_bytes = 0;
};

// `arguments[0]` is the program, looked up in PATH when it has no slash. Standard input is empty.
// Throws std::runtime_error when it cannot be started.
[[nodiscard]] ProcessResult run_process(const std::vector<std::string>& arguments,
                                        const ProcessOptions& options = {});

}  // namespace gridscope::test
