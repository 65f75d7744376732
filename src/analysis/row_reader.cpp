#include "gridscope/analysis/row_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "gridscope/analysis/tile_plan.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/io/byte_source.hpp"

namespace gridscope::analysis {
namespace {

// Copies row `from` of `block` to the end of `out`.
void append_row(const quant::RowBlock& block, std::uint64_t from, quant::RowBlock& out) {
  const auto copy = [from](const auto& all, std::uint64_t width, auto& into) {
    if (all.empty()) return;
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(from * width);
    into.insert(into.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
  };
  copy(block.values, block.columns, out.values);
  copy(block.levels, block.columns, out.levels);
  copy(block.scales, block.stride, out.scales);
  copy(block.zeros, block.stride, out.zeros);
}

// Whether groups start at other columns from row to row.
bool groups_shift(const quant::GroupLayout& groups) {
  return !groups.is_mapped() && groups.positions(0, 0) != groups.positions(1, 0);
}

void clear_rows(quant::RowBlock& block) {
  block.values.clear();
  block.levels.clear();
  block.scales.clear();
  block.zeros.clear();
}

}  // namespace

Result<RowReader> RowReader::open(const model::Checkpoint& checkpoint, const model::Weight& weight,
                                  const model::RowSelection& rows, std::uint64_t columns) {
  GRIDSCOPE_TRY(auto decoder, model::open_weight(checkpoint, weight));
  const quant::WeightLayout& layout = decoder->layout();
  const std::uint64_t last = rows.first + (rows.count - 1) * rows.stride;
  if (layout.columns != columns || last >= layout.rows) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("weight {} decodes to {} rows of {}, expected row {} of {} weights",
                            quote(weight.name), layout.rows, layout.columns, last, columns),
                "the checkpoint contradicts itself: export it again");
  }
  RowReader reader(checkpoint, weight, rows, std::move(decoder));
  if (!reader.is_contiguous() && groups_shift(reader.decoder_->layout().groups)) {
    return fail(ErrorCode::kUnsupported,
                "weight " + quote(weight.name) +
                    " has scale blocks that run over the ends of rows, and rows in another order",
                "leave the weight out with --tensor");
  }
  return reader;
}

RowReader::RowReader(const model::Checkpoint& checkpoint, const model::Weight& weight,
                     const model::RowSelection& rows,
                     std::unique_ptr<const quant::WeightDecoder> decoder)
    : checkpoint_(&checkpoint), weight_(&weight), rows_(rows), decoder_(std::move(decoder)) {}

bool RowReader::is_contiguous() const {
  return rows_.stride == 1 && rows_.rotary_head == 0;
}

quant::RowRange RowReader::covering(quant::RowRange pair_rows) const {
  std::uint64_t first = pair_rows.first;
  std::uint64_t last = pair_rows.end() - 1;
  if (rows_.rotary_head != 0) {
    first -= first % rows_.rotary_head;
    last = std::min(last - last % rows_.rotary_head + rows_.rotary_head, rows_.count) - 1;
  }
  const std::uint64_t begin = rows_.first + first * rows_.stride;
  return {.first = begin, .count = (last - first) * rows_.stride + 1};
}

std::uint64_t RowReader::tile_bytes(quant::RowRange pair_rows) const {
  std::uint64_t bytes = 0;
  for (const auto& strips : decoder_->needs(covering(pair_rows))) {
    if (strips) bytes += strips->bytes();
  }
  return bytes;
}

Status RowReader::load(quant::RowRange pair_rows, LoadedTile& loaded) const {
  return load(std::span(&pair_rows, 1), std::span(&loaded, 1));
}

Status RowReader::load(std::span<const quant::RowRange> ranges,
                       std::span<LoadedTile> loaded) const {
  RequestsByFile requests;
  for (std::size_t i = 0; i < ranges.size(); ++i) prepare(ranges[i], loaded[i], requests);
  for (const auto& [file, of_file] : requests) {
    GRIDSCOPE_CHECK(checkpoint_->files[file].source->uncached().read_many(of_file));
  }
  return {};
}

void RowReader::prepare(quant::RowRange pair_rows, LoadedTile& loaded,
                        RequestsByFile& requests) const {
  loaded.tile = {.rows = covering(pair_rows), .bytes = {}};
  const quant::TileNeeds needs = decoder_->needs(loaded.tile.rows);
  const std::uint64_t size = tile_bytes(pair_rows);
  std::span<std::byte> rest = loaded.buffer.get(size);
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const std::optional<quant::Strips>& strips = needs.at(i);
    const std::optional<model::StoredPlace>& place = weight_->places.at(i);
    if (!strips || !place) continue;
    loaded.tile.bytes.at(i) = rest.first(strips->bytes());
    for (std::uint64_t k = 0; k < strips->count; ++k) {
      requests[place->file].push_back(
          {.offset = place->offset + strips->offset + k * strips->stride,
           .into = rest.first(strips->length)});
      rest = rest.subspan(strips->length);
    }
  }
}

std::optional<RowReader::Strip> RowReader::strip_of(quant::RowRange pair_rows) const {
  if (!is_contiguous()) return std::nullopt;
  std::optional<Strip> found;
  const quant::TileNeeds needs = decoder_->needs(covering(pair_rows));
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const std::optional<quant::Strips>& strips = needs.at(i);
    if (!strips) continue;
    const std::optional<model::StoredPlace>& place = weight_->places.at(i);
    if (found || strips->count != 1 || !place) return std::nullopt;
    found = Strip{.companion = i,
                  .file = place->file,
                  .offset = place->offset + strips->offset,
                  .length = strips->length};
  }
  return found;
}

Status RowReader::stream(quant::RowRange pair_rows, std::uint64_t block_rows, LoadedTile& loaded,
                         const UseRows& use) const {
  const auto all = strip_of(pair_rows);
  const auto row = strip_of({.first = pair_rows.first, .count = 1});
  // Otherwise a block holds bytes of rows beyond its own, or rows are apart.
  const bool is_cut_by_rows = all && row && row->length * pair_rows.count == all->length;
  if (!is_cut_by_rows) {
    GRIDSCOPE_CHECK(load(pair_rows, loaded));
    for (const quant::RowRange block : cut(pair_rows, block_rows)) GRIDSCOPE_CHECK(use(block));
    return {};
  }
  const std::uint64_t window_bytes = std::min(block_rows, pair_rows.count) * row->length;
  std::uint64_t next = pair_rows.first;
  const auto use_block = [&](std::span<const std::byte> bytes) {
    const quant::RowRange block = {.first = next, .count = bytes.size() / row->length};
    next = block.end();
    loaded.tile = {.rows = covering(block), .bytes = {}};
    loaded.tile.bytes.at(all->companion) = bytes;
    return use(block);
  };
  return checkpoint_->files[all->file].source->uncached().read_through(
      {.offset = all->offset, .length = all->length},
      loaded.buffer.get(window_bytes).first(window_bytes), use_block);
}

Status RowReader::decode(const quant::Tile& tile, quant::RowRange pair_rows, quant::RowBlock& out,
                         quant::RowBlock& scratch) const {
  if (is_contiguous()) return decoder_->decode(tile, covering(pair_rows), out);
  const quant::RowRange wanted = covering(pair_rows);
  GRIDSCOPE_CHECK(decoder_->decode(tile, wanted, scratch));
  clear_rows(out);
  for (std::uint64_t i = pair_rows.first; i < pair_rows.end(); ++i) {
    append_row(scratch, rows_.row(i) - wanted.first, out);
  }
  out.first_row = pair_rows.first;
  out.rows = pair_rows.count;
  out.columns = scratch.columns;
  out.stride = scratch.stride;
  return {};
}

}  // namespace gridscope::analysis
