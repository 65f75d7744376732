#pragma once

#include <string>

namespace gridscope::cli {

// A bash script that completes verbs, options, choices and file names. It needs bash alone.
[[nodiscard]] std::string bash_completion();

}  // namespace gridscope::cli
