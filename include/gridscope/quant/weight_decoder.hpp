#pragma once

// From the stored bytes of one weight to its rows. Pure: a decoder says which bytes it needs for
// which rows, somebody else reads them, in tiles of bounded size. Layouts that run down the input
// axis (GPTQ, AWQ) need a strip of every packed row; the strips of all rows together are one
// contiguous range.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gridscope/core/dtype.hpp"
#include "gridscope/core/result.hpp"
#include "gridscope/quant/row_block.hpp"
#include "gridscope/quant/weight_spec.hpp"

namespace gridscope::quant {

// `count` pieces of `length` bytes, the starts `stride` bytes apart, within one stored tensor.
struct Strips {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t stride = 0;
  std::uint64_t count = 1;

  [[nodiscard]] std::uint64_t bytes() const { return length * count; }
  friend bool operator==(const Strips&, const Strips&) = default;
};

// Which bytes of each companion; empty for those that are not read by tile.
using TileNeeds = std::array<std::optional<Strips>, kCompanionCount>;
// The bytes themselves: the pieces of each companion one after the other, without gaps.
using TileBytes = std::array<std::span<const std::byte>, kCompanionCount>;

// What was read for some rows. Any of its rows can be decoded from it, a few at a time: bytes come
// in large pieces, decoded rows should fit the caches.
struct Tile {
  RowRange rows;
  TileBytes bytes;
};

struct WeightLayout {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  GroupLayout groups;      // of one group for the whole row when plain
  std::uint32_t bits = 0;  // of one code
  // The lowest and highest level that a code can mean; equal (0) when plain.
  std::int16_t lowest_level = 0;
  std::int16_t highest_level = 0;
  std::optional<Dtype> scale_dtype = {};
  // What was odd but could be read ("g_idx is not k / group although desc_act is false").
  std::vector<std::string> remarks = {};
};

// Rows of 4-bit codes in natural order with evenly spaced levels: what the fused kernels take.
// value = (level - zero) * scale, level = code - 8, groups of `group_size` columns.
struct Int4Rows {
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  std::span<const std::byte> codes;  // two a byte, the low nibble first
  std::uint64_t row_bytes = 0;       // from one row to the next
  std::uint64_t group_size = 0;
  std::uint64_t groups = 0;        // of a row
  std::vector<float> scales;       // rows x groups; exact
  std::vector<std::int8_t> zeros;  // rows x groups; empty when all are 0
  std::vector<std::byte> own;      // holds the codes where they had to be put into order
  std::vector<double> terms = {};  // what the decoder works in, kept for the next rows
};

// Immutable after it is made; any number of threads may decode at once.
class WeightDecoder {
 public:
  virtual ~WeightDecoder() = default;

  [[nodiscard]] virtual const WeightLayout& layout() const = 0;

  // What decoding these rows reads. Any range of rows is allowed; it need not be aligned to words
  // or blocks. Requires: rows.end() <= layout().rows, rows.count > 0.
  [[nodiscard]] virtual TileNeeds needs(RowRange rows) const = 0;

  // Decodes some rows of a tile into `out`, reusing its memory.
  // Requires: tile.bytes as needs(tile.rows) asked for; `rows` within tile.rows, at least one.
  // Errors: kCorrupt for codes, scales or zero points that the format rules out, with their place.
  [[nodiscard]] virtual Status decode(const Tile& tile, RowRange rows, RowBlock& out) const = 0;

  // What is odd about the bytes of a tile although they can be read: what only the bytes tell, and
  // layout().remarks therefore do not. Empty when there is nothing. Requires: tile.bytes as in
  // decode.
  [[nodiscard]] virtual std::string remark_on(const Tile& tile) const;

  // The same rows for the fused kernels, or false where the layout does not allow it (another
  // width, groups that are mapped or ragged or no multiple of 16, scales that a float cannot hold,
  // offsets, column factors). Nothing is written unless true. Errors: as decode.
  [[nodiscard]] virtual Result<bool> decode_int4(const Tile& tile, RowRange rows,
                                                 Int4Rows& out) const;
};

// Errors, each naming the weight: kUnsupported for schemes that are only identified, unknown bits
// or dtypes; kCorrupt for missing companions and shapes, dtypes or whole-read values that
// contradict each other or the format. Requires: data where is_read_whole().
[[nodiscard]] Result<std::unique_ptr<const WeightDecoder>> make_decoder(WeightSpec spec);

}  // namespace gridscope::quant
