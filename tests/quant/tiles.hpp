#pragma once

// Tiles cut out of the data that a spec carries, as whoever reads a checkpoint would read them, and
// what has to hold for every decoder.

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "gridscope/quant/weight_decoder.hpp"
#include "support/matchers.hpp"

namespace gridscope::quant {

struct OwnedTile {
  Tile tile;
  std::array<std::vector<std::byte>, kCompanionCount> storage;
};

// The strips of `rows`, one after the other. A strip outside the data is an error of the decoder.
inline OwnedTile cut_tile(const WeightDecoder& decoder, const WeightSpec& spec, RowRange rows) {
  OwnedTile owned;
  owned.tile.rows = rows;
  const TileNeeds needs = decoder.needs(rows);
  for (std::size_t i = 0; i < kCompanionCount; ++i) {
    const std::optional<Strips>& strips = needs.at(i);
    if (!strips) continue;
    const std::optional<StoredTensor>& tensor = spec.tensors.at(i);
    EXPECT_TRUE(tensor.has_value()) << companion_name(static_cast<Companion>(i));
    if (!tensor) continue;
    auto& bytes = owned.storage.at(i);
    for (std::uint64_t piece = 0; piece < strips->count; ++piece) {
      const std::uint64_t first = strips->offset + piece * strips->stride;
      EXPECT_LE(first + strips->length, tensor->data.size());
      if (first + strips->length > tensor->data.size()) return owned;
      const auto part = std::span(tensor->data).subspan(first, strips->length);
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
    owned.tile.bytes.at(i) = bytes;
  }
  return owned;
}

inline std::unique_ptr<const WeightDecoder> decoder_of(const WeightSpec& spec) {
  auto decoder = make_decoder(spec);
  EXPECT_THAT(decoder, test::IsOk());
  return decoder ? *std::move(decoder) : nullptr;
}

// What decoding all rows at once says.
inline Result<RowBlock> decode_all(const WeightSpec& spec) {
  GRIDSCOPE_TRY(const auto decoder, make_decoder(spec));
  const RowRange all = {.first = 0, .count = decoder->layout().rows};
  const OwnedTile owned = cut_tile(*decoder, spec, all);
  RowBlock block;
  GRIDSCOPE_CHECK(decoder->decode(owned.tile, all, block));
  return block;
}

inline RowBlock decoded(const WeightSpec& spec) {
  auto block = decode_all(spec);
  EXPECT_THAT(block, test::IsOk());
  return block ? *std::move(block) : RowBlock{};
}

template <typename T>
std::vector<T> part_of(const std::vector<T>& whole, std::uint64_t width, RowRange rows) {
  if (whole.empty()) return {};
  const auto first = whole.begin() + static_cast<std::ptrdiff_t>(rows.first * width);
  return {first, first + static_cast<std::ptrdiff_t>(rows.count * width)};
}

// Every tile gives the same rows as the whole weight, whichever of them are decoded from it.
inline void expect_any_rows_agree(const WeightSpec& spec) {
  const RowBlock whole = decoded(spec);
  const auto decoder = decoder_of(spec);
  ASSERT_NE(decoder, nullptr);
  const std::uint64_t rows = decoder->layout().rows;
  RowBlock block;
  for (std::uint64_t first = 0; first < rows; ++first) {
    for (std::uint64_t end = first + 1; end <= rows; ++end) {
      const OwnedTile owned = cut_tile(*decoder, spec, {.first = first, .count = end - first});
      const RowRange part = {.first = first + (end - first) / 3,
                             .count = end - first - (end - first) / 3};
      ASSERT_THAT(decoder->decode(owned.tile, part, block), test::IsOk());
      ASSERT_EQ(block.first_row, part.first);
      ASSERT_EQ(block.rows, part.count);
      ASSERT_EQ(block.values, part_of(whole.values, whole.columns, part)) << first << ' ' << end;
      ASSERT_EQ(block.levels, part_of(whole.levels, whole.columns, part));
      ASSERT_EQ(block.scales, part_of(whole.scales, whole.stride, part));
      ASSERT_EQ(block.zeros, part_of(whole.zeros, whole.stride, part));
    }
  }
}

// All rows together are one piece of each companion: the whole of it.
inline void expect_whole_is_contiguous(const WeightSpec& spec) {
  const auto decoder = decoder_of(spec);
  ASSERT_NE(decoder, nullptr);
  const TileNeeds needs = decoder->needs({.first = 0, .count = decoder->layout().rows});
  for (std::size_t i = 0; i < kCompanionCount; ++i) {
    const auto& strips = needs.at(i);
    if (!strips) continue;
    EXPECT_EQ(strips->offset, 0) << companion_name(static_cast<Companion>(i));
    EXPECT_TRUE(strips->count == 1 || strips->stride == strips->length);
    EXPECT_EQ(strips->bytes(), spec.tensors.at(i).value().data.size());
  }
}

}  // namespace gridscope::quant
