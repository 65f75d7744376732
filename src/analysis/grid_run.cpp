// The idea: the unit of work is a tile, so that one large weight keeps every thread as busy as many
// small ones. More threads read than may compute, which is what lets reading, decoding and adding
// up overlap; each holds one tile at a time, and takes the memory for it before it reads, so what
// is in memory is bounded and nobody waits while holding. Items are opened by whoever comes first
// and put together by whoever finishes the last tile.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "gridscope/analysis/grid_check.hpp"
#include "gridscope/analysis/item_comparison.hpp"
#include "gridscope/core/parallel.hpp"

namespace gridscope::analysis {
namespace {

// Threads for each that computes; the others wait for bytes.
std::size_t readers_per_job(io::Distance distance) {
  switch (distance) {
    case io::Distance::kLocal:
      return 2;
    case io::Distance::kNear:
      return 3;
    case io::Distance::kFar:
      return 6;
  }
  return 1;
}

// Bytes of a tile whose memory is kept for the next one.
constexpr std::uint64_t kKeptBytes = 16ULL * 1024 * 1024;

io::Distance distance_of(const GridSide& side) {
  io::Distance farthest = io::Distance::kLocal;
  for (const auto& file : side.checkpoint->files) {
    farthest = std::max(farthest, file.source->uncached().distance());
  }
  return farthest;
}

io::Distance distance_of(const GridPlan& plan) {
  io::Distance farthest = distance_of(plan.source);
  for (const GridBuildSide& build : plan.builds) {
    farthest = std::max(farthest, distance_of(build.side));
  }
  return farthest;
}

// The memory of the tiles under way, so many bytes at once. A tile that is larger than all of it
// waits until it is alone.
class TileMemories {
 public:
  explicit TileMemories(std::uint64_t bytes) : total_(bytes), left_(bytes) {}

  [[nodiscard]] std::unique_ptr<TileMemory> take(std::uint64_t bytes) {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [&] { return left_ >= std::min(bytes, total_); });
    left_ -= std::min(bytes, total_);
    if (idle_.empty()) return std::make_unique<TileMemory>();
    auto memory = std::move(idle_.back());  // the one that may still be in a cache
    idle_.pop_back();
    return memory;
  }

  void give_back(std::unique_ptr<TileMemory> memory, std::uint64_t bytes) {
    {
      const std::scoped_lock lock(mutex_);
      left_ += std::min(bytes, total_);
      if (bytes <= kKeptBytes) idle_.push_back(std::move(memory));
    }
    freed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  const std::uint64_t total_;
  std::uint64_t left_;
  std::vector<std::unique_ptr<TileMemory>> idle_;
};

struct OpenItem {
  std::uint32_t item = 0;
  std::uint64_t tiles = 0;
  std::uint64_t tile_bytes = 0;
  std::mutex mutex;  // of opening
  bool opened = false;
  std::optional<Error> fault;  // the build breaks its format
  std::unique_ptr<ItemComparison> comparison;
  std::atomic<std::uint64_t> left = 0;
};

class Run {
 public:
  Run(const GridPlan& plan, std::span<const std::uint32_t> items, const GridRunOptions& options,
      Observer& observer, const GridItemSink& sink)
      : plan_(plan),
        options_(options),
        observer_(observer),
        sink_(sink),
        slots_(options.jobs),
        memories_(options.jobs * kGridBytesPerJob),
        items_(items.size()) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      const GridItem& item = plan.items[items[i]];
      const model::WeightPair& pair = pair_of(plan, item);
      const TilePlan tiles = plan_tiles(plan.source.weights[pair.source],
                                        plan.builds[item.build].side.weights[pair.build], pair);
      items_[i].item = items[i];
      items_[i].tiles = tiles.tiles();
      items_[i].tile_bytes = tiles.tile_bytes();
      items_[i].left = items_[i].tiles;
      total_bytes_ += tiles.rows * tiles.bytes_per_row;
      for (std::uint64_t t = 0; t < items_[i].tiles; ++t) work_.emplace_back(i, t);
    }
  }

  Status run() {
    return parallel_chunks(
        work_.size(), options_.jobs * readers_per_job(distance_of(plan_)),
        [this](std::size_t i) { return do_tile(items_[work_[i].first], work_[i].second); },
        options_.stop);
  }

 private:
  Status do_tile(OpenItem& item, std::uint64_t tile) {
    auto memory = memories_.take(item.tile_bytes);
    Status status = open(item);
    if (status && item.comparison != nullptr) {
      status = note_fault(item, item.comparison->compare_tile(tile, slots_, *memory));
    }
    memories_.give_back(std::move(memory), item.tile_bytes);
    GRIDSCOPE_CHECK(status);
    report_progress(item);
    if (item.left.fetch_sub(1) > 1) return {};
    return finish(item);
  }

  Status open(OpenItem& item) {
    const std::scoped_lock lock(item.mutex);
    if (item.opened) return {};
    auto comparison = open_comparison(plan_, plan_.items[item.item]);
    if (!comparison) {
      GRIDSCOPE_CHECK(keep_fault(item, comparison.error()));
    } else {
      item.comparison = *std::move(comparison);
    }
    item.opened = true;
    return {};
  }

  // A build that breaks its format's rules is an answer, everything else ends the run.
  static Status keep_fault(OpenItem& item, const Error& error) {
    if (error.code != ErrorCode::kCorrupt && error.code != ErrorCode::kUnsupported) {
      return tl::make_unexpected(error);
    }
    if (!item.fault || error.message < item.fault->message) item.fault = error;
    return {};
  }
  static Status note_fault(OpenItem& item, const Status& status) {
    if (status) return {};
    const std::scoped_lock lock(item.mutex);
    return keep_fault(item, status.error());
  }

  Status finish(OpenItem& item) {
    auto memory = memories_.take(item.tile_bytes);
    Result<GridItemResult> result = conclude(item, *memory);
    memories_.give_back(std::move(memory), item.tile_bytes);
    item.comparison.reset();
    GRIDSCOPE_CHECK(result);
    const std::scoped_lock lock(sink_mutex_);
    return sink_(item.item, *result);
  }

  Result<GridItemResult> conclude(OpenItem& item, TileMemory& memory) {
    const GridItem& planned = plan_.items[item.item];
    if (item.fault) return corrupt_result(plan_, planned, *item.fault);
    return item.comparison->finish(slots_, memory);
  }

  void report_progress(const OpenItem& item) {
    const std::uint64_t done = done_bytes_ += item.tile_bytes;
    observer_.on_event(Progress{.stage = "comparing",
                                .done = std::min(done, total_bytes_),
                                .total = total_bytes_,
                                .unit = Progress::Unit::kBytes});
  }

  const GridPlan& plan_;
  const GridRunOptions& options_;
  Observer& observer_;
  const GridItemSink& sink_;
  ComputeSlots slots_;
  TileMemories memories_;
  std::vector<OpenItem> items_;
  std::vector<std::pair<std::size_t, std::uint64_t>> work_;  // into items_, tile
  std::uint64_t total_bytes_ = 0;
  std::atomic<std::uint64_t> done_bytes_ = 0;
  std::mutex sink_mutex_;
};

}  // namespace

Status run_grid_items(const GridPlan& plan, std::span<const std::uint32_t> items,
                      const GridRunOptions& options, Observer& observer, const GridItemSink& sink) {
  return Run(plan, items, options, observer, sink).run();
}

}  // namespace gridscope::analysis
