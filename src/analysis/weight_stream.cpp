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
  const auto decode_and_pass = [&](quant::RowRange rows) -> Status {
    GRIDSCOPE_CHECK(reader.decode(loaded.tile, rows, block, scratch));
    return sink(block);
  };
  for (std::uint64_t i = 0; i < plan.tiles(); ++i) {
    GRIDSCOPE_CHECK(reader.stream(plan.tile(i), plan.block_rows, loaded, decode_and_pass));
  }
  return {};
}

}  // namespace gridscope::analysis
