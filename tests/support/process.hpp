#pragma once

// Runs a program to its end, or to a signal, and keeps what it said and what it cost.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/temp_dir.hpp"

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

// A program that runs until it ends or is made to.
class RunningProcess {
 public:
  // `arguments[0]` is the program, looked up in PATH when it has no slash. Standard input is empty.
  // Throws std::runtime_error when it cannot be started.
  explicit RunningProcess(const std::vector<std::string>& arguments,
                          const ProcessOptions& options = {});
  // Kills it, unless somebody waited for its end.
  ~RunningProcess();
  RunningProcess(const RunningProcess&) = delete;
  RunningProcess& operator=(const RunningProcess&) = delete;

  void send(int signal) const;
  [[nodiscard]] bool has_ended() const;
  // Once. Throws std::runtime_error when the system does not tell.
  [[nodiscard]] ProcessResult wait();

 private:
  TempDir output_;
  std::chrono::steady_clock::time_point begin_;
  pid_t child_ = 0;  // 0: waited for
};

// A RunningProcess that nobody disturbs.
[[nodiscard]] ProcessResult run_process(const std::vector<std::string>& arguments,
                                        const ProcessOptions& options = {});

}  // namespace gridscope::test
