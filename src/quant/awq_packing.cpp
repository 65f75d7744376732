#include "awq_packing.hpp"

#include <algorithm>
#include <cstring>

#include "gridscope/core/checked.hpp"

// GEMM: eight words of eight inputs, all of the same eight outputs, are an 8 by 8 matrix of
// nibbles. Its transpose swaps halves, then bytes, then nibbles between words 4, 2 and 1 apart, and
// is a word of eight inputs for each output. Several matrices side by side go through at once, so
// that the compiler can use vectors. A strip of 16 such matrices, one below the other, fills a
// cache line of every output.

namespace gridscope::quant {
namespace {

constexpr std::uint64_t kWordBytes = 4;
constexpr std::uint64_t kLanes = 8;
constexpr std::uint64_t kStrip = 16;

using Words = std::array<std::uint32_t, kLanes>;
using Matrix = std::array<Words, kAwqWord>;  // word i of every lane

void swap_parts(Matrix& matrix, unsigned apart, unsigned shift, std::uint32_t mask) {
  for (unsigned i = 0; i < kAwqWord; ++i) {
    if ((i & apart) != 0) continue;
    Words& upper = matrix[i];
    Words& lower = matrix[i + apart];
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::uint32_t change = ((upper[lane] >> shift) ^ lower[lane]) & mask;
      lower[lane] ^= change;
      upper[lane] ^= change << shift;
    }
  }
}

void transpose(Matrix& matrix) {
  swap_parts(matrix, 4, 16, 0x0000ffff);
  swap_parts(matrix, 2, 8, 0x00ff00ff);
  swap_parts(matrix, 1, 4, 0x0f0f0f0f);
}

// Words [height][width] of a GEMM weight, and the rows they become.
struct GemmCodes {
  std::span<const std::byte> codes;
  std::uint64_t width = 0;
  std::uint64_t height = 0;
  std::span<std::byte> out;

  [[nodiscard]] std::uint64_t row_bytes() const { return ceil_div(height, kAwqWord) * kWordBytes; }
};

// One matrix of each of `lanes` neighbouring words, starting at input `top`; `row` is the output
// row that the first of them becomes.
void order_matrices(const GemmCodes& gemm, std::uint64_t top, RowRange words, std::uint64_t row) {
  Matrix matrix = {};
  const std::uint64_t inputs = std::min(kAwqWord, gemm.height - top);
  for (std::uint64_t i = 0; i < inputs; ++i) {
    const std::uint64_t first = ((top + i) * gemm.width + words.first) * kWordBytes;
    std::memcpy(matrix[i].data(), &gemm.codes[first], words.count * kWordBytes);
  }
  transpose(matrix);
  const std::uint64_t row_bytes = gemm.row_bytes();
  for (std::uint64_t lane = 0; lane < words.count; ++lane) {
    for (std::uint64_t n = 0; n < kAwqWord; ++n) {
      const std::uint64_t place = (row + lane * kAwqWord + n) * row_bytes + top / 2;
      std::memcpy(&gemm.out[place], &matrix[kAwqNibble[n]][lane], kWordBytes);
    }
  }
}

}  // namespace

void order_awq_gemm(std::span<const std::byte> codes, std::uint64_t width, RowRange words,
                    std::span<std::byte> out) {
  const GemmCodes gemm = {
      .codes = codes, .width = width, .height = codes.size() / (width * kWordBytes), .out = out};
  for (std::uint64_t strip = 0; strip < gemm.height; strip += kStrip * kAwqWord) {
    const std::uint64_t end = std::min(strip + kStrip * kAwqWord, gemm.height);
    for (std::uint64_t word = 0; word < words.count; word += kLanes) {
      const RowRange lanes = {.first = words.first + word,
                              .count = std::min(kLanes, words.count - word)};
      for (std::uint64_t top = strip; top < end; top += kAwqWord) {
        order_matrices(gemm, top, lanes, word * kAwqWord);
      }
    }
  }
}

// The reference packer permutes the inputs in 32s twice, then weaves four outputs in blocks of 64
// inputs and packs four codes to a word: input 8a + 2c + e of 32 comes to place 8c + 2a + e, and of
// that place, as 8a' + 2c' + e', to 8a' + 4e' + c'.
NibblePlace awq_fast_place(std::uint64_t output, std::uint64_t input) {
  const std::uint64_t j = input % 32;
  const std::uint64_t p = j / 2 % 4 * 8 + j / 8 * 2 + j % 2;
  const std::uint64_t within = input % kAwqFastBlock / 32 * 32 + p / 8 * 8 + p % 2 * 4 + p / 2 % 4;
  const std::uint64_t code = output % kAwqFastRows * kAwqFastBlock + within;
  return {.word = input / kAwqFastBlock * kAwqFastBlock + code / 4,
          .shift = static_cast<unsigned>(code % 4 * 4)};
}

std::uint64_t awq_padded_groups(std::uint64_t groups, std::uint64_t group_size) {
  const std::uint64_t multiple = group_size >= 128 ? 1 : group_size == 64 ? 2 : 4;
  return ceil_div(ceil_div(groups, kAwqWord), multiple) * multiple * kAwqWord;
}

}  // namespace gridscope::quant
