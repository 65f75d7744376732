#pragma once

// The block types of GGUF as data. A block is codes and what they are multiplied with. The codes of
// every type that is decoded here lie in one or two bit planes, so a table says all about them;
// only the factors need code of their own. Source: ggml's block structures and dequantization.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "gridscope/core/dtype.hpp"

namespace gridscope::quant {

// `width` bits of every code, in runs of `run` bytes. The lowest bits of a run's bytes belong to
// its first `run` elements, the next bits to the next, and so on: with 4 bits the halves of 16
// bytes are elements 0 to 15 and 16 to 31.
struct BitPlane {
  std::uint32_t offset = 0;  // in the block
  std::uint32_t width = 0;   // 0: no such plane
  std::uint32_t run = 0;
};

// What a code stands for, before it is multiplied with its scale.
enum class CodeValues : std::uint8_t {
  kSigned,     // code - middle
  kOffset,     // code; an offset is added to the product
  kIq4,        // the table of IQ4_NL
  kE2m1,       // sign and magnitude
  kPlusMinus,  // -1 or 1
};

// Of the groups of one block.
inline constexpr std::size_t kMostGroups = 16;
struct BlockTerms {
  std::array<double, kMostGroups> scales = {};
  std::array<double, kMostGroups> offsets = {};
};

struct BlockFormat {
  Dtype dtype = Dtype::kQ4_0;
  std::uint32_t bits = 0;
  std::uint32_t group_size = 0;
  CodeValues values = CodeValues::kSigned;
  int middle = 0;          // the code of level 0
  std::uint32_t flip = 0;  // bits in which the stored code differs: the sign of two's complement
  BitPlane low = {};
  BitPlane high = {};  // the bits above those
  Dtype scale_type = Dtype::kF16;
  // Fills in the scales of all groups, and their offsets if kOffset.
  void (*load_terms)(std::span<const std::byte> block, BlockTerms& terms) = nullptr;

  [[nodiscard]] std::uint32_t elements() const { return dtype_info(dtype).block_elements; }
  [[nodiscard]] std::uint32_t bytes() const { return dtype_info(dtype).block_bits / 8; }
  [[nodiscard]] std::uint32_t groups() const { return elements() / group_size; }
};

// Null when the type is not decoded: undecoded_reason() says why.
[[nodiscard]] const BlockFormat* find_block_format(Dtype dtype);
[[nodiscard]] std::string_view undecoded_reason(Dtype dtype);

// The codes of one block in the order of its elements.
// Requires: block.size() == format.bytes(), codes.size() == format.elements().
void load_codes(const BlockFormat& format, std::span<const std::byte> block,
                std::span<std::uint8_t> codes);
// The other direction; all other bytes are left as they are. Requires: codes < 2^bits.
void store_codes(const BlockFormat& format, std::span<const std::uint8_t> codes,
                 std::span<std::byte> block);

// The same codes as load_codes(), two to a byte, the first one in the low nibble.
// Requires: format.bits == 4, runs of whole 8 bytes; out.size() == format.elements() / 2.
void order_nibbles(const BlockFormat& format, std::span<const std::byte> block,
                   std::span<std::byte> out);

// Of types without evenly spaced levels, for each code: its value and its level.
struct CodeTable {
  std::array<double, 16> values = {};
  std::array<std::int16_t, 16> levels = {};  // in the order of the values
};
// Requires: kIq4, kE2m1 or kPlusMinus.
[[nodiscard]] const CodeTable& code_table(CodeValues values);

}  // namespace gridscope::quant
