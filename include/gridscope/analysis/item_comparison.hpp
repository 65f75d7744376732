#pragma once

// One item of a grid check while it is under way: a pair of weights, tile by tile. Tiles may be
// compared in any order and at once; what they gave is put together in order at the end.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "gridscope/analysis/grid_check.hpp"
#include "gridscope/analysis/grid_plan.hpp"
#include "gridscope/analysis/row_reader.hpp"
#include "gridscope/analysis/source_lattice.hpp"
#include "gridscope/analysis/tile_plan.hpp"
#include "gridscope/core/result.hpp"
#include "gridscope/quant/row_block.hpp"
#include "gridscope/quant/weight_decoder.hpp"

namespace gridscope::analysis {

// What a block is compared in, kept from one block to the next: fresh pages would cost as much as
// the comparison. Decoded rows are many times what is read of them.
struct BlockMemory {
  quant::RowBlock source_rows;
  quant::RowBlock build_rows;
  quant::RowBlock scratch;
  quant::Int4Rows codes;
  quant::KeptLevels kept;
  std::vector<std::byte> source_bytes;  // of decoded rows, rounded to the source's type
  SourceLattice lattice;
};

// As many blocks as may be computed at once, each in memory of its own; reading is not counted.
// Thread-safe.
class ComputeSlots {
 public:
  explicit ComputeSlots(std::size_t count);

  // Waits for a slot, and calls `use` with its memory.
  [[nodiscard]] Status with_slot(const std::function<Status(BlockMemory&)>& use);

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::unique_ptr<BlockMemory>> free_;
};

// What the parts of a tile are read into, kept likewise.
struct TileMemory {
  LoadedTile source;
  LoadedTile build;
};

class ItemComparison {
 public:
  virtual ~ItemComparison() = default;

  [[nodiscard]] virtual const TilePlan& tiles() const = 0;
  // Reads a tile of both sides, and compares each block of it in a slot. Thread-safe for different
  // tiles. Errors: those of reading; kCorrupt for what breaks the build's format.
  [[nodiscard]] virtual Status compare_tile(std::uint64_t tile, ComputeSlots& slots,
                                            TileMemory& memory) = 0;
  // Once every tile is done. May read again (columns that look smoothed). Errors: as compare_tile.
  [[nodiscard]] virtual Result<GridItemResult> finish(ComputeSlots& slots, TileMemory& memory) = 0;
};

// Both sides of an item's pair.
struct PairReaders {
  RowReader source;
  RowReader build;
};
[[nodiscard]] Result<PairReaders> open_readers(const GridPlan& plan, const GridItem& item);

// Errors: those of opening the weights; kCorrupt for companions that do not fit each other. The
// plan must outlive the comparison.
[[nodiscard]] Result<std::unique_ptr<ItemComparison>> open_comparison(const GridPlan& plan,
                                                                      const GridItem& item);
// plain_comparison.cpp and pair_comparison.cpp.
[[nodiscard]] Result<std::unique_ptr<ItemComparison>> open_plain_comparison(const GridPlan& plan,
                                                                            const GridItem& item);
[[nodiscard]] Result<std::unique_ptr<ItemComparison>> open_pair_comparison(const GridPlan& plan,
                                                                           const GridItem& item);

// The result of an item that cannot be compared because the build breaks its format.
[[nodiscard]] GridItemResult corrupt_result(const GridPlan& plan, const GridItem& item,
                                            const Error& error);

}  // namespace gridscope::analysis
