#include "gridscope/analysis/weight_stream.hpp"

#include <algorithm>

#include "gridscope/analysis/row_reader.hpp"
#include "gridscope/analysis/tile_plan.hpp"

namespace gridscope::analysis {

Status stream_weight(const model::Checkpoint& checkpoint, const model::Weight& weight,
                     const RowBlockSink& sink) {
  if (weight.rows() == 0 || weight.columns() == 0) return {};
  // Read as a pair with itself would be.
  model::WeightPair pair;
  pair.source_rows = pair.build_rows = {.first = 0, .count = weight.rows()};
  pair.columns = weight.columns();
  GRIDSCOPE_TRY(const RowReader reader,
                RowReader::open(checkpoint, weight, pair.source_rows, pair.columns));
  const TilePlan plan = plan_tiles(weight, weight, pair);
  LoadedTile loaded;
  quant::RowBlock block;
  quant::RowBlock scratch;
  for (std::uint64_t i = 0; i < plan.tiles(); ++i) {
    const quant::RowRange tile = plan.tile(i);
    GRIDSCOPE_CHECK(reader.load(tile, loaded));
    for (const quant::RowRange rows : plan.blocks(tile)) {
      GRIDSCOPE_CHECK(reader.decode(loaded.tile, rows, block, scratch));
      GRIDSCOPE_CHECK(sink(block));
    }
  }
  return {};
}

}  // namespace gridscope::analysis
