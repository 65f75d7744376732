#pragma once

// Repeated runs of a program, and the line that says how it did.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/process.hpp"

namespace gridscope::bench {

struct Sample {
  double median_seconds = 0.0;
  double fastest_seconds = 0.0;
  double slowest_seconds = 0.0;
  double cpu_seconds = 0.0;          // the median, of all threads
  std::uint64_t peak_rss_bytes = 0;  // the largest
  std::vector<std::string> outs;     // of all runs
};

// Requires: values is not empty.
[[nodiscard]] double median(std::vector<double> values);

// Requires: runs > 0. Empty, after a line on what went wrong, when a run fails.
[[nodiscard]] std::optional<Sample> measure(int runs, const std::vector<std::string>& command,
                                            const test::ProcessOptions& options = {});

// Two programs by turns, so that what else the machine does falls on both. Requires and returns as
// above.
struct Samples {
  Sample ours;
  Sample theirs;
};
struct Command {
  std::vector<std::string> words;
  test::ProcessOptions options = {};
};
[[nodiscard]] std::optional<Samples> measure_by_turns(int runs, const Command& ours,
                                                      const Command& theirs);

// "name   0.912 s (0.890 to 0.951)   goal 1.500 s   OK", with `note` at the end. A goal of 0: none.
void print_time(const std::string& name, const Sample& sample, double goal_seconds,
                const std::string& note = "");
// The same with a figure in words, and "0.85   goal 0.80   OK" for what it is of something else. A
// goal of 0: none; a ratio of 0: not printed.
void print_ratio(const std::string& name, const std::string& figure, double ratio, double goal,
                 const std::string& note = "");
void print_memory(const std::string& name, const Sample& sample, std::uint64_t goal_bytes);

}  // namespace gridscope::bench
