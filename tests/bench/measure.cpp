#include "bench/measure.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gridscope::bench {
namespace {

// The unit in which a figure has digits worth reading.
std::string duration(double seconds) {
  return seconds < 0.1 ? fmt::format("{:.1f} ms", seconds * 1e3) : fmt::format("{:.3f} s", seconds);
}

std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{} MiB", bytes >> 20);
}

void print_line(const std::string& name, const std::string& figure, const std::string& goal,
                const std::string& note) {
  fmt::print("{:<44} {:<34} {:<22} {}\n", name, figure, goal, note);
  std::fflush(stdout);
}

std::string verdict(const std::string& goal, bool met) {
  return fmt::format("goal {:<9} {}", goal, met ? "OK" : "MISSED");
}

}  // namespace

std::optional<Sample> measure(int runs, const std::vector<std::string>& command,
                              const test::ProcessOptions& options) {
  std::vector<double> seconds;
  Sample sample;
  for (int run = 0; run < runs; ++run) {
    const test::ProcessResult result = test::run_process(command, options);
    if (result.exit_code != 0) {
      fmt::print("{}: exit {}\n{}", fmt::join(command, " "), result.exit_code, result.err);
      return std::nullopt;
    }
    seconds.push_back(result.wall.count());
    sample.peak_rss_bytes = std::max(sample.peak_rss_bytes, result.peak_rss_bytes);
    sample.out = result.out;
  }
  std::sort(seconds.begin(), seconds.end());
  sample.median_seconds = seconds[seconds.size() / 2];
  sample.fastest_seconds = seconds.front();
  sample.slowest_seconds = seconds.back();
  return sample;
}

void print_time(const std::string& name, const Sample& sample, double goal_seconds,
                const std::string& note) {
  const std::string figure =
      fmt::format("{} ({} to {})", duration(sample.median_seconds),
                  duration(sample.fastest_seconds), duration(sample.slowest_seconds));
  const bool met = sample.median_seconds <= goal_seconds;
  print_line(name, figure, goal_seconds > 0 ? verdict(duration(goal_seconds), met) : "", note);
}

void print_ratio(const std::string& name, const std::string& figure, double ratio, double goal,
                 const std::string& note) {
  const std::string compared =
      goal > 0
          ? fmt::format("{:.2f}  {}", ratio, verdict(fmt::format("{:.2f}", goal), ratio >= goal))
          : "";
  print_line(name, figure, compared, note);
}

void print_memory(const std::string& name, const Sample& sample, std::uint64_t goal_bytes) {
  print_line(name, mebibytes(sample.peak_rss_bytes) + " at the most",
             verdict(mebibytes(goal_bytes), sample.peak_rss_bytes <= goal_bytes), "");
}

}  // namespace gridscope::bench
