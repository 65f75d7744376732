// gridscope_bench [--brief]
// gridscope_bench --parse-index FILE     what the first form runs to measure the index alone
//
// What a user waits for, in one run on one machine: the built command line as a process, next to
// what the same user would run instead. Medians of five runs at least; --brief makes one run of
// each, to show that everything still works.

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/grid_check.hpp"
#include "bench/kernels.hpp"
#include "bench/measure.hpp"
#include "bench/workloads.hpp"
#include "gridscope/format/safetensors_index.hpp"
#include "support/checkpoints.hpp"
#include "support/hub_server.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::bench {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// The goal is twice a floor of 15 round trips. One read for each of 282 shards over 16 connections
// is 18 already, and pinning, listing and the index come before: the ratio cannot fall to 1.
constexpr auto kLatency = 50ms;
constexpr double kFloorSeconds = 15 * 0.050;
constexpr ShardedShape kManyShards{.shards = 282, .tensors_per_shard = 100};
constexpr ShardedShape kManyTensors{.shards = 163, .tensors_per_shard = 3'068};
constexpr const char* kRepository = "bench/many-shards";

enum class Extent : std::uint8_t { kBrief, kFull };

struct Bench {
  int runs = 5;
  bool rivals = true;
  test::TempDir directory = {};
  bool complete = true;  // no case has failed to run

  void report(bool ran) { complete = complete && ran; }
};

void print_machine() {
  std::string model = "unknown CPU";
  std::ifstream cpu("/proc/cpuinfo");
  for (std::string line; std::getline(cpu, line);) {
    if (!line.starts_with("model name")) continue;
    model = line.substr(line.find(':') + 2);
    break;
  }
  const std::time_t now = std::time(nullptr);
  std::array<char, 32> date{};
  std::strftime(date.data(), date.size(), "%Y-%m-%d", std::gmtime(&now));
  fmt::print("{}, {} threads, {}, gridscope {} ({})\n\n", model,
             std::thread::hardware_concurrency(), date.data(), GRIDSCOPE_VERSION,
             GRIDSCOPE_BUILD_TYPE);
}

void bench_start(Bench& bench) {
  const auto sample = measure(4 * bench.runs + 1, {GRIDSCOPE_PROGRAM, "--version"});
  if (sample) print_time("process start to --version", *sample, 0.010);
  bench.report(sample.has_value());
}

int parse_index(const fs::path& path) {
  const auto index = format::parse_safetensors_index(test::read_file(path));
  if (!index) fmt::print(stderr, "{}\n", describe(index.error()));
  return index ? 0 : 1;
}

void bench_many_tensors_step(Bench& bench, const std::string& name,
                             const std::vector<std::string>& command) {
  const auto sample = measure(bench.runs, command);
  if (sample) {
    print_time(name, *sample, 1.5);
    print_memory("  peak memory", *sample, 400ULL << 20);
  }
  bench.report(sample.has_value());
}

// The index alone, and the whole inspection, which reads as many tensors from headers again.
void bench_many_tensors(Bench& bench) {
  const fs::path checkpoint = bench.directory / "many-tensors";
  const auto made = write_sharded_checkpoint(checkpoint, kManyTensors);
  bench_many_tensors_step(
      bench, fmt::format("index of {} entries, {} MB", made.tensors, made.index_bytes / 1'000'000),
      {fs::read_symlink("/proc/self/exe"), "--parse-index",
       checkpoint / "model.safetensors.index.json"});
  bench_many_tensors_step(bench,
                          fmt::format("inspect all of that, with {} headers", kManyTensors.shards),
                          {GRIDSCOPE_PROGRAM, "inspect", checkpoint});
}

// A fresh home for each tool, and no cache: every run reads everything.
test::ProcessOptions to_hub(const test::HubServer& hub, const Bench& bench) {
  const std::string home = (bench.directory / "home").string();
  return {.environment = {{"HF_ENDPOINT", hub.endpoint()},
                          {"HF_HOME", home},
                          {"XDG_CACHE_HOME", home},
                          {"HF_TOKEN", ""},
                          {"HF_HUB_DISABLE_XET", "1"},
                          {"HF_HUB_DISABLE_PROGRESS_BARS", "1"},
                          {"HF_HUB_DISABLE_TELEMETRY", "1"}}};
}

void bench_rival(Bench& bench, const test::HubServer& hub, const std::string& rival) {
  const fs::path python = fs::path(GRIDSCOPE_VENV) / "bin/python";
  const auto sample =
      measure(bench.runs, {python, GRIDSCOPE_RIVALS, rival, kRepository}, to_hub(hub, bench));
  if (sample) print_time("  the same by " + rival, *sample, 0.0, sample->outs.back());
  bench.report(sample.has_value());
}

void bench_many_shards(Bench& bench) {
  const fs::path checkpoint = bench.directory / "many-shards";
  write_sharded_checkpoint(checkpoint, kManyShards);
  const test::HubServer hub({test::hub_repo_from_directory(kRepository, checkpoint)},
                            {.server = {.latency = kLatency}});
  const auto sample = measure(
      bench.runs, {GRIDSCOPE_PROGRAM, "inspect", fmt::format("hf://{}", kRepository), "--no-cache"},
      to_hub(hub, bench));
  if (sample) {
    print_time(fmt::format("{} shards, {} ms away", kManyShards.shards, kLatency.count()), *sample,
               2 * kFloorSeconds,
               fmt::format("{:.2f} times the floor of 15 round trips",
                           sample->median_seconds / kFloorSeconds));
  }
  bench.report(sample.has_value());
  if (!bench.rivals) return;
  if (!fs::exists(fs::path(GRIDSCOPE_VENV) / "complete")) {
    fmt::print("  no reference clients here; `make venv` fetches them from PyPI\n");
    return;
  }
  for (const char* rival : {"huggingface_hub", "hf_mem"}) bench_rival(bench, hub, rival);
}

// The large pair has 8.3 GB.
GridCheckCases grid_check_cases(const Bench& bench, Extent extent) {
  const fs::path directory = bench.directory / "grid-check";
  if (extent == Extent::kBrief) return {.directory = directory, .runs = bench.runs, .layers = 2};
  return {.directory = directory, .runs = bench.runs, .layers_of_large = 280};
}

int run(Extent extent) {
  Bench bench{.runs = extent == Extent::kFull ? 5 : 1, .rivals = extent == Extent::kFull};
  print_machine();
  bench_start(bench);
  bench_many_tensors(bench);
  bench_many_shards(bench);
  bench.report(bench_grid_check(grid_check_cases(bench, extent)));
  bench_kernels(bench.runs);
  return bench.complete ? 0 : 1;
}

}  // namespace
}  // namespace gridscope::bench

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  try {
    if (arguments.empty()) return gridscope::bench::run(gridscope::bench::Extent::kFull);
    if (arguments.size() == 1 && arguments[0] == "--brief") {
      return gridscope::bench::run(gridscope::bench::Extent::kBrief);
    }
    if (arguments.size() == 2 && arguments[0] == "--parse-index") {
      return gridscope::bench::parse_index(arguments[1]);
    }
    fmt::print(stderr, "usage: gridscope_bench [--brief]\n");
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "gridscope_bench: {}\n", error.what());
    return 1;
  }
}
