#include "support/process.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

extern char** environ;

namespace gridscope::test {
namespace {

// Output goes to files: no pipe can fill up, and no thread is needed to drain one.
class Actions {
 public:
  Actions() { ::posix_spawn_file_actions_init(&actions_); }
  ~Actions() { ::posix_spawn_file_actions_destroy(&actions_); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;

  void open(int descriptor, const std::string& path, int flags) {
    ::posix_spawn_file_actions_addopen(&actions_, descriptor, path.c_str(), flags, 0600);
  }
  void change_directory(const std::string& path) {
    ::posix_spawn_file_actions_addchdir_np(&actions_, path.c_str());
  }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

std::chrono::duration<double> seconds_of(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> merged_environment(const ProcessOptions& options) {
  std::vector<std::string> merged;
  const auto overridden = [&](std::string_view entry) {
    return std::any_of(options.environment.begin(), options.environment.end(),
                       [&](const auto& v) { return entry.substr(0, entry.find('=')) == v.first; });
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!overridden(*entry)) merged.emplace_back(*entry);
  }
  for (const auto& [name, value] : options.environment) {
    if (!value.empty()) merged.push_back(name + '=' + value);
  }
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// A child's peak memory begins at that of the process it is spawned from: at what this one holds
// now, then, not at the most it ever held.
void forget_peak_memory() {
  ::malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
}

}  // namespace

RunningProcess::RunningProcess(const std::vector<std::string>& arguments,
                               const ProcessOptions& options) {
  Actions actions;
  actions.open(STDIN_FILENO, "/dev/null", O_RDONLY);
  actions.open(STDOUT_FILENO, output_ / "out", O_WRONLY | O_CREAT | O_TRUNC);
  actions.open(STDERR_FILENO, output_ / "err", O_WRONLY | O_CREAT | O_TRUNC);
  if (!options.directory.empty()) actions.change_directory(options.directory);
  std::vector<std::string> words = arguments;
  std::vector<std::string> variables = merged_environment(options);

  forget_peak_memory();
  begin_ = std::chrono::steady_clock::now();
  const int error = ::posix_spawnp(&child_, words.front().c_str(), actions.get(), nullptr,
                                   pointers(words).data(), pointers(variables).data());
  if (error != 0) throw std::runtime_error(words.front() + ": " + std::strerror(error));
}

RunningProcess::~RunningProcess() {
  if (child_ == 0) return;
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
}

void RunningProcess::send(int signal) const {
  ::kill(child_, signal);
}

bool RunningProcess::has_ended() const {
  // WNOWAIT leaves it for wait(), so that its number is not given to another process meanwhile.
  siginfo_t state{};
  return ::waitid(P_PID, static_cast<id_t>(child_), &state, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         state.si_pid == child_;
}

ProcessResult RunningProcess::wait() {
  int status = 0;
  rusage usage{};
  if (::wait4(child_, &status, 0, &usage) != child_) throw std::runtime_error("wait4 failed");
  child_ = 0;

  ProcessResult result;
  result.wall = std::chrono::steady_clock::now() - begin_;
  result.cpu = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.peak_rss_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  result.out = read_text(output_ / "out");
  result.err = read_text(output_ / "err");
  return result;
}

ProcessResult run_process(const std::vector<std::string>& arguments,
                          const ProcessOptions& options) {
  return RunningProcess(arguments, options).wait();
}

}  // namespace gridscope::test
