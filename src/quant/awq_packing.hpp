#pragma once

// The orders in which AWQ writes 4-bit codes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gridscope/quant/row_block.hpp"

namespace gridscope::quant {

inline constexpr std::uint64_t kAwqWord = 8;  // codes in a word of 32 bits

// GEMM: which nibble of its word holds output n is kAwqNibble[n % 8].
inline constexpr std::array<unsigned, kAwqWord> kAwqNibble = {0, 4, 1, 5, 2, 6, 3, 7};

// GEMM codes [inputs][width words] of the chosen words -> a row of nibbles for each output, low
// nibble first, of ceil(inputs / 8) words; nibbles beyond the inputs are zero.
// Requires: out.size() == words.count * 8 * ceil(inputs / 8) * 4.
void order_awq_gemm(std::span<const std::byte> codes, std::uint64_t width, RowRange words,
                    std::span<std::byte> out);

// GEMV_FAST: four outputs share a row of 16-bit words, a word for each input of theirs.
inline constexpr std::uint64_t kAwqFastRows = 4;
inline constexpr std::uint64_t kAwqFastBlock = 64;  // inputs whose words lie together

struct NibblePlace {
  std::uint64_t word = 0;  // within the row of 16-bit words
  unsigned shift = 0;
};
[[nodiscard]] NibblePlace awq_fast_place(std::uint64_t output, std::uint64_t input);

// How many scales GEMV and GEMV_FAST keep for a row of `groups`: whole words of zero points, and
// the more of them the smaller the groups are.
[[nodiscard]] std::uint64_t awq_padded_groups(std::uint64_t groups, std::uint64_t group_size);

}  // namespace gridscope::quant
