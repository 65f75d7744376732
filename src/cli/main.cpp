// Every exception ends here; none is expected.

#include <span>

#include "gridscope/cli/run.hpp"

int main(int argc, char** argv) {
  try {
    const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
    return gridscope::cli::run(words.subspan(words.empty() ? 0 : 1));
  } catch (...) {
    return gridscope::cli::report_exception();
  }
}
