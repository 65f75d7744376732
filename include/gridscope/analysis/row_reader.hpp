#pragma once

// One side of a pair of weights, by the rows of the pair: the bytes of a tile, and its decoded rows
// in the order in which they correspond to the other side's.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gridscope/core/buffer.hpp"
#include "gridscope/core/result.hpp"
#include "gridscope/io/byte_source.hpp"
#include "gridscope/model/checkpoint.hpp"
#include "gridscope/model/weight_matching.hpp"
#include "gridscope/model/weights.hpp"
#include "gridscope/quant/weight_decoder.hpp"

namespace gridscope::analysis {

// Bytes of a tile. The buffer may be larger: it is kept from one tile to the next.
struct LoadedTile {
  quant::Tile tile = {};
  Buffer buffer = {};
};

class RowReader {
 public:
  // Opens the weight's decoder, for rows of `columns` weights: what the pair says, because headers
  // alone do not tell every weight's shape. `checkpoint` and `weight` must outlive the reader.
  // Errors: those of model::open_weight; kCorrupt for a weight that decodes to another shape;
  // kUnsupported for scale blocks over the ends of rows that are not read in order.
  [[nodiscard]] static Result<RowReader> open(const model::Checkpoint& checkpoint,
                                              const model::Weight& weight,
                                              const model::RowSelection& rows,
                                              std::uint64_t columns);

  [[nodiscard]] const quant::WeightDecoder& decoder() const { return *decoder_; }
  [[nodiscard]] const model::Weight& weight() const { return *weight_; }
  // Whether the rows of the pair are neighbours here, in order.
  [[nodiscard]] bool is_contiguous() const;
  [[nodiscard]] std::uint64_t first_row() const { return is_contiguous() ? rows_.first : 0; }
  // The rows of the weight that hold rows [first, first + count) of the pair, and no others when
  // contiguous.
  [[nodiscard]] quant::RowRange covering(quant::RowRange pair_rows) const;
  [[nodiscard]] std::uint64_t tile_bytes(quant::RowRange pair_rows) const;

  // Reads past any cache, into the buffer of `loaded`. Errors: those of the source.
  [[nodiscard]] Status load(quant::RowRange pair_rows, LoadedTile& loaded) const;
  // Several at once, which takes no longer than one where a read is a round trip. Requires: as many
  // of both.
  [[nodiscard]] Status load(std::span<const quant::RowRange> ranges,
                            std::span<LoadedTile> loaded) const;
  // Reads rows of the pair, `block_rows` at a time (fewer at the end), and calls `use` with each
  // block in turn: its rows are then in `loaded`, and a part of them may have stood in its memory
  // before. What lies in one strip goes through memory for one block, which stays in the CPU's
  // caches; anything else is read whole first. Errors: those of the source and of `use`.
  using UseRows = std::function<Status(quant::RowRange)>;
  [[nodiscard]] Status stream(quant::RowRange pair_rows, std::uint64_t block_rows,
                              LoadedTile& loaded, const UseRows& use) const;
  // Decodes rows of the pair, from a tile that load() gave for a range that holds them. `scratch`
  // is working memory. Row i of the pair has number i + first_row() in `out`.
  [[nodiscard]] Status decode(const quant::Tile& tile, quant::RowRange pair_rows,
                              quant::RowBlock& out, quant::RowBlock& scratch) const;

 private:
  RowReader(const model::Checkpoint& checkpoint, const model::Weight& weight,
            const model::RowSelection& rows, std::unique_ptr<const quant::WeightDecoder> decoder);

  using RequestsByFile = std::map<std::uint32_t, std::vector<io::ReadRequest>>;
  void prepare(quant::RowRange pair_rows, LoadedTile& loaded, RequestsByFile& requests) const;

  // All the bytes of some rows, where they are one companion's, row after row and nothing between.
  struct Strip {
    std::size_t companion = 0;
    std::uint32_t file = 0;
    std::uint64_t offset = 0;  // in the file
    std::uint64_t length = 0;
  };
  [[nodiscard]] std::optional<Strip> strip_of(quant::RowRange pair_rows) const;

  const model::Checkpoint* checkpoint_;
  const model::Weight* weight_;
  model::RowSelection rows_;
  std::unique_ptr<const quant::WeightDecoder> decoder_;
};

}  // namespace gridscope::analysis
