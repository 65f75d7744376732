#include "bench/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <functional>
#include <vector>

#include "bench/measure.hpp"
#include "gridscope/quant/cpu_target.hpp"
#include "gridscope/quant/grid.hpp"
#include "gridscope/quant/level_moves.hpp"
#include "quant/int4_pair.hpp"

namespace gridscope::bench {
namespace {

// Of 2816 columns: 256 MiB of source, far more than any cache.
constexpr std::uint64_t kRows = 64;
constexpr std::uint64_t kCopies = 744;
constexpr std::uint64_t kColumns = 2816;
constexpr double kBandwidthGoal = 0.8;

template <typename T>
std::vector<T> repeated(const std::vector<T>& values) {
  std::vector<T> all;
  all.reserve(values.size() * kCopies);
  for (std::uint64_t i = 0; i < kCopies; ++i) all.insert(all.end(), values.begin(), values.end());
  return all;
}

// A pair of tensors of which every row is one of kRows.
struct Workload {
  std::vector<std::byte> source;
  quant::Int4Rows build;

  [[nodiscard]] quant::SourceRows source_rows() const {
    return {.dtype = Dtype::kBF16, .bytes = source};
  }
  [[nodiscard]] std::uint64_t groups_of_32() const { return source.size() / 64; }
  [[nodiscard]] std::uint64_t bytes() const {
    return source.size() + build.own.size() + build.scales.size() * sizeof(float);
  }
};

Workload make_workload(test::Build kind) {
  const auto pair = test::make_pair({.rows = kRows, .columns = kColumns, .build = kind}, 1);
  quant::Int4Rows build = pair.int4_rows();
  build.rows = kRows * kCopies;
  build.own = repeated(build.own);
  build.codes = build.own;
  build.scales = repeated(build.scales);
  return {.source = repeated(pair.source_bytes()), .build = std::move(build)};
}

// Reads all of it in a way that cannot be left out: several independent chains of xor, in the
// widest vectors that there are.
[[gnu::target_clones("avx512f", "avx2", "default")]] std::uint64_t read_all(
    std::span<const std::byte> bytes) {
  std::array<std::uint64_t, 32> lanes = {};
  std::array<std::uint64_t, 32> words = {};
  for (std::size_t i = 0; i + sizeof(words) <= bytes.size(); i += sizeof(words)) {
    std::memcpy(words.data(), &bytes[i], sizeof(words));
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) lanes[lane] ^= words[lane];
  }
  std::uint64_t all = 0;
  for (const std::uint64_t lane : lanes) all ^= lane;
  return all;
}

// Medians of several runs on one thread.
struct Seconds {
  double wall = 0.0;
  double cpu = 0.0;  // of the thread: without what else the machine does meanwhile
};

double thread_seconds() {
  std::timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Seconds median_seconds(int runs, const std::function<void()>& body) {
  std::vector<double> wall;
  std::vector<double> cpu;
  for (int run = 0; run < runs; ++run) {
    const auto start = std::chrono::steady_clock::now();
    const double cpu_start = thread_seconds();
    body();
    cpu.push_back(thread_seconds() - cpu_start);
    wall.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return {.wall = median(wall), .cpu = median(cpu)};
}

double gigabytes_per_second(std::uint64_t bytes, double seconds) {
  return static_cast<double>(bytes) / seconds / 1e9;
}

void bench_fused(const std::string& name, test::Build kind, int runs) {
  const Workload work = make_workload(kind);
  volatile std::uint64_t sink = 0;
  const Seconds reading = median_seconds(runs, [&] {
    sink = sink ^ read_all(work.source) ^ read_all(work.build.own) ^
           read_all(std::as_bytes(std::span(work.build.scales)));
  });
  quant::ErrorSums sums;
  const Seconds comparing = median_seconds(
      runs, [&] { sums = quant::compare_int4_bf16(work.build, work.source_rows()); });
  print_ratio(fmt::format("fused int4 kernel, one thread, {}", name),
              fmt::format("{:.1f} GB/s, reading {:.1f} GB/s",
                          gigabytes_per_second(work.bytes(), comparing.wall),
                          gigabytes_per_second(work.bytes(), reading.wall)),
              reading.wall / comparing.wall, kBandwidthGoal,
              fmt::format("{:.2f} by CPU time of the thread; {:.0f} % of groups identical",
                          reading.cpu / comparing.cpu,
                          100.0 * static_cast<double>(sums.groups_identical) /
                              static_cast<double>(sums.groups)));
}

std::string group_rate(std::uint64_t groups, const Seconds& seconds) {
  return fmt::format("{:.1f} M groups/s", static_cast<double>(groups) / seconds.wall / 1e6);
}

std::string cpu_per_group(std::uint64_t groups, const Seconds& seconds) {
  return fmt::format("{:.1f} ns of CPU time per group",
                     seconds.cpu / static_cast<double>(groups) * 1e9);
}

// In tiles of kRows, as a comparison takes them: their fits stay in the caches.
void bench_grid(int runs) {
  const Workload work = make_workload(test::Build::kRequantized);
  const std::uint64_t groups = work.groups_of_32();
  quant::Int4Rows build = work.build;
  build.rows = kRows;
  const quant::SourceRows source = work.source_rows();
  const std::size_t source_bytes = source.bytes.size() / kCopies;
  const std::size_t code_bytes = work.build.codes.size() / kCopies;
  std::vector<quant::GridFit> fits(groups / kCopies);
  const Seconds fitting = median_seconds(runs, [&] {
    for (std::uint64_t i = 0; i < kCopies; ++i) {
      quant::fit_grids(source.bytes.subspan(i * source_bytes, source_bytes), 32, {}, fits);
    }
  });
  print_ratio("fit of the grid, groups of 32, one thread", group_rate(groups, fitting), 0.0, 0.0,
              cpu_per_group(groups, fitting));
  quant::LevelMoves moves;
  const Seconds counting = median_seconds(runs, [&] {
    for (std::uint64_t i = 0; i < kCopies; ++i) {
      build.codes = work.build.codes.subspan(i * code_bytes, code_bytes);
      moves.add(quant::count_level_moves(
          build,
          {.dtype = source.dtype, .bytes = source.bytes.subspan(i * source_bytes, source_bytes)},
          {.group_size = 32, .fits = fits}));
    }
  });
  print_ratio("level moves, groups of 32, one thread", group_rate(groups, counting), 0.0, 0.0,
              fmt::format("{}, {:.1f} % moved", cpu_per_group(groups, counting),
                          100.0 * (1.0 - static_cast<double>(moves.of(0)) /
                                             static_cast<double>(moves.weights()))));
}

}  // namespace

void bench_kernels(int runs) {
  fmt::print("kernels for {}\n", quant::cpu_targets().front());
  bench_fused("repack", test::Build::kRepack, runs);
  bench_fused("requantized", test::Build::kRequantized, runs);
  bench_grid(runs);
}

}  // namespace gridscope::bench
