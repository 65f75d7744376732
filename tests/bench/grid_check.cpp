#include "bench/grid_check.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <memory>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure.hpp"
#include "bench/nginx.hpp"
#include "gridscope/core/endian.hpp"
#include "gridscope/core/parallel.hpp"
#include "gridscope/quant/error_sums.hpp"
#include "gridscope/quant/weight_decoder.hpp"
#include "support/checkpoints.hpp"
#include "support/grid_pair.hpp"

namespace gridscope::bench {
namespace {

namespace fs = std::filesystem;
using test::GridPair;
using test::GridPairShape;

constexpr double kCatGoal = 0.6;
constexpr double kCurlGoal = 0.9;
constexpr double kNumpyWallGoal = 20.0;
constexpr double kNumpyComputeGoal = 100.0;
constexpr std::uint64_t kMemoryGoal = 200ULL << 20;
// Of one weight, the one that the published check reads.
constexpr std::uint64_t kRows = 4096;
constexpr std::uint64_t kColumns = 2816;
constexpr std::uint64_t kGroup = 32;

std::string gigabytes(std::uint64_t bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

// "0.912 s, cat 0.531 s".
std::string beside(const Samples& samples, std::string_view other) {
  return fmt::format("{:.3f} s, {} {:.3f} s", samples.ours.median_seconds, other,
                     samples.theirs.median_seconds);
}

double ratio(const Samples& samples) {
  return samples.theirs.median_seconds / samples.ours.median_seconds;
}

std::string processor_note(const Sample& sample) {
  return fmt::format("{:.2f} s of processor time", sample.cpu_seconds);
}

Command check(const std::string& source, const std::string& build) {
  return {.words = {GRIDSCOPE_PROGRAM, "grid-check", source, build, "--no-cache", "--jobs", "2"}};
}

Command check(const GridPair& pair) {
  return check(pair.source.parent_path(), pair.build.parent_path());
}

// ---- from disk ----------------------------------------------------------------------------------

bool bench_disk(const std::string& name, const GridPair& pair, int runs) {
  const Command cat{
      .words = {"sh", "-c", R"(cat "$@" > /dev/null)", "cat", pair.source, pair.build}};
  const auto samples = measure_by_turns(runs, check(pair), cat);
  if (!samples) return false;
  print_ratio(fmt::format("grid-check, {}, warm files, {}", gigabytes(pair.bytes), name),
              beside(*samples, "cat"), ratio(*samples), kCatGoal, processor_note(samples->ours));
  return true;
}

// Every page of it is read for the first time here, and kept by the system where it has room.
bool bench_memory(const GridCheckCases& cases) {
  const fs::path directory = cases.directory / "large";
  const GridPair pair = test::write_grid_pair(directory, {.layers = cases.layers_of_large});
  const auto sample = measure(cases.runs, check(pair).words);
  fs::remove_all(directory);
  if (!sample) return false;
  const std::string name = fmt::format("grid-check, {}, two jobs", gigabytes(pair.bytes));
  print_time(name, *sample, 0.0, processor_note(*sample));
  print_memory("  peak memory", *sample, kMemoryGoal);
  return true;
}

// ---- over HTTP ----------------------------------------------------------------------------------

std::size_t connections_of(const std::vector<Nginx::Request>& requests) {
  std::set<std::string> connections;
  for (const Nginx::Request& request : requests) connections.insert(request.connection);
  return connections.size();
}

// What curl has to be told to ask for the same ranges.
std::string curl_configuration(const Nginx& server, const std::vector<Nginx::Request>& requests) {
  std::string text =
      fmt::format("parallel\nparallel-immediate\nparallel-max = {}\n", connections_of(requests));
  for (const Nginx::Request& request : requests) {
    text += fmt::format(
        "url = \"{}\"\nrange = \"{}\"\noutput = \"/dev/null\"\nfail\nno-progress-meter\nnext\n",
        server.url(request.path), request.range);
  }
  text.resize(text.size() - std::string_view("next\n").size());
  return text;
}

bool bench_http(Nginx& server, const GridPair& pair, const GridCheckCases& cases) {
  const Command ours = check(server.url("/repack/source/model.safetensors"),
                             server.url("/repack/build/model.safetensors"));
  static_cast<void>(server.take_ranges());
  if (!measure(1, ours.words)) return false;
  const auto requests = server.take_ranges();
  const fs::path configuration = cases.directory / "curl.conf";
  test::write_file(configuration, curl_configuration(server, requests));
  const auto samples = measure_by_turns(
      cases.runs, ours, {.words = {"curl", "--disable", "--config", configuration}});
  if (!samples) return false;
  print_ratio(fmt::format("grid-check, {}, loopback HTTP", gigabytes(pair.bytes)),
              beside(*samples, "curl"), ratio(*samples), kCurlGoal,
              fmt::format("{} ranges, {} connections; {}", requests.size(),
                          connections_of(requests), processor_note(samples->ours)));
  return true;
}

// ---- next to numpy ------------------------------------------------------------------------------

// What the published check counts, and how long the arithmetic alone took.
struct Published {
  double seconds = 0.0;
  std::uint64_t groups_identical = 0;
  std::uint64_t values_identical = 0;
  std::uint64_t moved = 0;

  [[nodiscard]] bool same_counts(const Published& other) const {
    return groups_identical == other.groups_identical &&
           values_identical == other.values_identical && moved == other.moved;
  }
};

// Of several runs.
Published read_published(const std::vector<std::string>& texts) {
  std::vector<double> seconds;
  Published found;
  for (const std::string& text : texts) {
    std::istringstream in(text);
    in >> found.seconds >> found.groups_identical >> found.values_identical >> found.moved;
    if (!in) throw std::runtime_error("numpy's answer is not understood: " + text);
    seconds.push_back(found.seconds);
  }
  found.seconds = median(std::move(seconds));
  return found;
}

test::Bytes data_of(const fs::path& path) {
  test::Bytes file = test::read_file(path);
  const auto header = load_le<std::uint64_t>(std::span(file).first(8));
  file.erase(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(8 + header));
  return file;
}

// The weight of a pair of one layer, in memory.
class OneWeight {
 public:
  explicit OneWeight(const GridPair& pair)
      : source_(data_of(pair.source)), build_(data_of(pair.build)) {
    constexpr std::uint64_t kShapeBytes = 16;
    constexpr std::uint64_t kCodeBytes = kRows * kColumns / 2;
    quant::WeightSpec spec{.name = "q_proj", .scheme = quant::Scheme::kCtPackQuantized};
    const auto all = std::span<const std::byte>(build_);
    spec[quant::Companion::kShape] = quant::StoredTensor{
        .dtype = Dtype::kI64, .shape = {2}, .data = {all.begin(), all.begin() + kShapeBytes}};
    spec[quant::Companion::kCodes] =
        quant::StoredTensor{.dtype = Dtype::kI32, .shape = {kRows, kColumns / 8}};
    spec[quant::Companion::kScale] =
        quant::StoredTensor{.dtype = Dtype::kBF16, .shape = {kRows, kColumns / kGroup}};
    tile_.rows = {.first = 0, .count = kRows};
    tile_.bytes.at(static_cast<std::size_t>(quant::Companion::kCodes)) =
        all.subspan(kShapeBytes, kCodeBytes);
    tile_.bytes.at(static_cast<std::size_t>(quant::Companion::kScale)) =
        all.subspan(kShapeBytes + kCodeBytes);
    auto decoder = quant::make_decoder(std::move(spec));
    if (!decoder) throw std::runtime_error(decoder.error().message);
    decoder_ = *std::move(decoder);
  }

  // In tiles, as a grid check does, each a few rows at a time.
  [[nodiscard]] quant::ErrorSums compare(std::size_t threads) const {
    constexpr std::uint64_t kTileRows = 256;
    std::array<quant::ErrorSums, kRows / kTileRows> tiles;
    const auto compare_one = [&](std::size_t i) -> Status {
      tiles[i] = compare({.first = i * kTileRows, .count = kTileRows});
      return {};
    };
    const Status status = parallel_chunks(tiles.size(), threads, compare_one);
    if (!status) throw std::runtime_error(status.error().message);
    quant::ErrorSums sums;
    for (const quant::ErrorSums& tile : tiles) sums.add(tile);
    return sums;
  }

 private:
  [[nodiscard]] quant::ErrorSums compare(quant::RowRange tile) const {
    constexpr std::uint64_t kBlockRows = 16;
    quant::ErrorSums sums;
    quant::Int4Rows codes;
    quant::KeptLevels kept;
    for (std::uint64_t row = tile.first; row < tile.end(); row += kBlockRows) {
      const auto fits = decoder_->decode_int4(tile_, {.first = row, .count = kBlockRows}, codes);
      if (!fits || !*fits) throw std::runtime_error("the fused kernel does not take this weight");
      const auto rows = std::span<const std::byte>(source_).subspan(row * kColumns * 2,
                                                                    kBlockRows * kColumns * 2);
      sums.add(quant::compare_int4_bf16(codes, {.dtype = Dtype::kBF16, .bytes = rows},
                                        sums.worst.error, kept));
    }
    return sums;
  }

  test::Bytes source_;
  test::Bytes build_;
  quant::Tile tile_;
  std::unique_ptr<const quant::WeightDecoder> decoder_;
};

Published published_check(const OneWeight& weight, std::size_t threads, int runs) {
  std::vector<double> seconds;
  quant::ErrorSums sums;
  for (int run = 0; run < runs; ++run) {
    const auto start = std::chrono::steady_clock::now();
    sums = weight.compare(threads);
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return {.seconds = median(std::move(seconds)),
          .groups_identical = sums.groups_identical,
          .values_identical = sums.values_identical,
          .moved = sums.moved};
}

Command by_numpy(const std::string& source, const std::string& build) {
  const fs::path python = fs::path(GRIDSCOPE_VENV) / "bin/python";
  // These would slow numpy down on some processors; an older version needed them.
  return {.words = {python, GRIDSCOPE_RIVALS, "numpy", source, build},
          .options = {.environment = {{"OPENBLAS_CORETYPE", ""}, {"OPENBLAS_L2_SIZE", ""}}}};
}

void print_arithmetic(const std::string& name, const Published& ours, const Published& theirs,
                      double goal) {
  print_ratio(name,
              fmt::format("{:.2f} ms, numpy {:.0f} ms", ours.seconds * 1e3, theirs.seconds * 1e3),
              theirs.seconds / ours.seconds, goal,
              ours.same_counts(theirs) ? "the same counts" : "THE COUNTS DIFFER");
}

bool bench_numpy(const Nginx& server, const GridPair& pair, int runs) {
  const std::string source = server.url("/one/source/model.safetensors");
  const std::string build = server.url("/one/build/model.safetensors");
  const auto samples = measure_by_turns(runs, check(source, build), by_numpy(source, build));
  if (!samples) return false;
  const auto fetching =
      measure(runs, {"curl", "--disable", "--silent", "--parallel", "--parallel-immediate",
                     "--output", "/dev/null", source, "--output", "/dev/null", build});
  if (!fetching) return false;
  const Published theirs = read_published(samples->theirs.outs);
  print_ratio("published check of 11.5 M weights over HTTP", beside(*samples, "numpy"),
              ratio(*samples), kNumpyWallGoal,
              fmt::format("curl alone fetches both files in {:.3f} s", fetching->median_seconds));
  const OneWeight weight(pair);
  const Published alone = published_check(weight, 1, 4 * runs + 1);
  const Published together = published_check(weight, 2, 4 * runs + 1);
  print_arithmetic("  its arithmetic, two threads as above", together, theirs, kNumpyComputeGoal);
  print_arithmetic("  its arithmetic, one thread as numpy", alone, theirs, 0.0);
  return alone.same_counts(theirs) && together.same_counts(theirs);
}

bool bench_server(const GridPair& repack, const GridCheckCases& cases) {
  if (!Nginx::is_installed()) {
    fmt::print("  no nginx here; the package nginx-light has it\n");
    return true;
  }
  Nginx server(cases.directory, cases.directory / "nginx");
  const bool ran = bench_http(server, repack, cases);
  if (!fs::exists(fs::path(GRIDSCOPE_VENV) / "complete")) {
    fmt::print("  no numpy here; `make venv` fetches it from PyPI\n");
    return ran;
  }
  const GridPair one = test::write_grid_pair(cases.directory / "one", {});
  return bench_numpy(server, one, cases.runs) && ran;
}

}  // namespace

bool bench_grid_check(const GridCheckCases& cases) {
  const GridPair repack =
      test::write_grid_pair(cases.directory / "repack", {.layers = cases.layers});
  bool ran = bench_disk("repack", repack, cases.runs);
  const GridPair requantized =
      test::write_grid_pair(cases.directory / "requantized",
                            {.layers = cases.layers, .build = GridPairShape::Build::kRequantized});
  ran = bench_disk("requantized", requantized, cases.runs) && ran;
  fs::remove_all(cases.directory / "requantized");
  ran = bench_server(repack, cases) && ran;
  fs::remove_all(cases.directory / "repack");
  if (cases.layers_of_large > 0) ran = bench_memory(cases) && ran;
  return ran;
}

}  // namespace gridscope::bench
