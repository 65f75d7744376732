#pragma once

// The frame around every verb: parse, open the output, run, write, say what went wrong.

#include <span>

namespace gridscope::cli {

// Returns the exit code: 0 clean; 1 a check failed; 2 wrong usage; 3 no verdict.
// `words` is argv without the program's name.
[[nodiscard]] int run(std::span<const char* const> words);

// Reports an exception that nobody expected; returns the exit code. Call it in a handler.
[[nodiscard]] int report_exception() noexcept;

}  // namespace gridscope::cli
