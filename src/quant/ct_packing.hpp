#pragma once

// How compressed-tensors writes codes into 32-bit words, along the columns of a weight and down the
// rows of its zero points. Before version 0.17 no code crossed the end of a word; since then they
// are dense. Widths that divide 32 look the same either way.

#include <cstddef>
#include <cstdint>
#include <span>

#include "gridscope/core/result.hpp"
#include "gridscope/quant/weight_spec.hpp"

namespace gridscope::quant {

using CtPacking = WeightSpec::CtPacking;

// Words that `codes` codes take. Requires: 1 <= bits <= 8; packing is known.
[[nodiscard]] std::uint64_t ct_words(CtPacking packing, std::uint32_t bits, std::uint64_t codes);
// The bit, counted over all words, at which a code starts.
[[nodiscard]] std::uint64_t ct_bit(CtPacking packing, std::uint32_t bits, std::uint64_t index);

// The first out.size() codes of a row of words.
void unpack_ct(CtPacking packing, std::uint32_t bits, std::span<const std::byte> row,
               std::span<std::uint8_t> out);
// Requires: every code < 2^bits; ct_words() words.
void pack_ct(CtPacking packing, std::uint32_t bits, std::span<const std::uint8_t> codes,
             std::span<std::byte> row);

// Codes and the words that they were found in.
struct CtWords {
  Companion companion = Companion::kCodes;
  std::uint64_t codes = 0;
  std::uint64_t words = 0;
};

// The packing that all runs of words agree with: what the shapes say, and where they fit both what
// the specification does. kCorrupt when neither fits, or both and nothing tells.
[[nodiscard]] Result<CtPacking> solve_ct_packing(const WeightSpec& spec, std::uint32_t bits,
                                                 std::span<const CtWords> runs);

}  // namespace gridscope::quant
