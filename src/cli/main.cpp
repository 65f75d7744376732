// Every exception ends here; none is expected.

#include <cstdint>
#include <span>

#include "gridscope/cli/run.hpp"

// The library of Highway measures the machine's timer whenever it is loaded, for benchmarks, which
// takes more than a third of this program's start. This definition stands before its own.
namespace hwy::platform {
std::uint64_t TimerResolution();
std::uint64_t TimerResolution() {
  return 1;
}
}  // namespace hwy::platform

int main(int argc, char** argv) {
  try {
    const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
    return gridscope::cli::run(words.subspan(words.empty() ? 0 : 1));
  } catch (...) {
    return gridscope::cli::report_exception();
  }
}
