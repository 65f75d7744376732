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

// Empty, after a line on what went wrong, when it fails.
std::optional<test::ProcessResult> run_once(const Command& command) {
  test::ProcessResult result = test::run_process(command.words, command.options);
  if (result.exit_code == 0) return result;
  fmt::print("{}: exit {}\n{}", fmt::join(command.words, " "), result.exit_code, result.err);
  return std::nullopt;
}

Sample summary(const std::vector<test::ProcessResult>& results) {
  Sample sample;
  std::vector<double> wall;
  std::vector<double> cpu;
  for (const test::ProcessResult& result : results) {
    wall.push_back(result.wall.count());
    cpu.push_back(result.cpu.count());
    sample.peak_rss_bytes = std::max(sample.peak_rss_bytes, result.peak_rss_bytes);
    sample.outs.push_back(result.out);
  }
  sample.median_seconds = median(wall);
  sample.fastest_seconds = std::ranges::min(wall);
  sample.slowest_seconds = std::ranges::max(wall);
  sample.cpu_seconds = median(cpu);
  return sample;
}

}  // namespace

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::optional<Sample> measure(int runs, const std::vector<std::string>& command,
                              const test::ProcessOptions& options) {
  std::vector<test::ProcessResult> results;
  for (int run = 0; run < runs; ++run) {
    auto result = run_once({.words = command, .options = options});
    if (!result) return std::nullopt;
    results.push_back(*std::move(result));
  }
  return summary(results);
}

std::optional<Samples> measure_by_turns(int runs, const Command& ours, const Command& theirs) {
  std::vector<test::ProcessResult> of_ours;
  std::vector<test::ProcessResult> of_theirs;
  for (int run = 0; run < runs; ++run) {
    auto first = run_once(ours);
    auto second = first ? run_once(theirs) : std::nullopt;
    if (!second) return std::nullopt;
    of_ours.push_back(*std::move(first));
    of_theirs.push_back(*std::move(second));
  }
  return Samples{.ours = summary(of_ours), .theirs = summary(of_theirs)};
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
  std::string compared = ratio > 0 ? fmt::format("{:.2f}", ratio) : "";
  if (goal > 0) compared += "  " + verdict(fmt::format("{:.2f}", goal), ratio >= goal);
  print_line(name, figure, compared, note);
}

void print_memory(const std::string& name, const Sample& sample, std::uint64_t goal_bytes) {
  print_line(name, mebibytes(sample.peak_rss_bytes) + " at the most",
             verdict(mebibytes(goal_bytes), sample.peak_rss_bytes <= goal_bytes), "");
}

}  // namespace gridscope::bench
