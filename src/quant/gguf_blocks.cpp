#include "gguf_blocks.hpp"

#include <algorithm>

#include "gridscope/core/endian.hpp"
#include "gridscope/quant/codec.hpp"

namespace gridscope::quant {
namespace {

using Block = std::span<const std::byte>;

unsigned byte_at(Block block, std::size_t offset) {
  return std::to_integer<unsigned>(block[offset]);
}

double f16_at(Block block, std::size_t offset) {
  return f16_value(load_le<std::uint16_t>(block.subspan(offset)));
}

// ---- factors ------------------------------------------------------------------------------------

template <std::size_t kOffset>
void one_scale(Block block, BlockTerms& terms) {
  terms.scales[0] = f16_at(block, kOffset);
}

void scale_and_minimum(Block block, BlockTerms& terms) {
  one_scale<0>(block, terms);
  terms.offsets[0] = f16_at(block, 2);
}

// Scale and minimum of a group are four bits each.
void q2_k_terms(Block block, BlockTerms& terms) {
  const double scale = f16_at(block, 80);
  const double minimum = f16_at(block, 82);
  for (std::size_t g = 0; g < 16; ++g) {
    const unsigned both = byte_at(block, g);
    terms.scales[g] = scale * (both & 0xfU);
    terms.offsets[g] = -minimum * (both >> 4U);
  }
}

// Sixteen scales of six bits in twelve bytes: four bits each in the first eight, two in the others.
void q3_k_terms(Block block, BlockTerms& terms) {
  const Block packed = block.subspan(96, 12);
  const double scale = f16_at(block, 108);
  for (unsigned g = 0; g < 16; ++g) {
    const unsigned low = byte_at(packed, g % 8) >> (g / 8 * 4) & 0xfU;
    const unsigned high = byte_at(packed, 8 + g % 4) >> (g / 4 * 2) & 3U;
    terms.scales[g] = scale * (static_cast<int>(low | high << 4U) - 32);
  }
}

// Eight scales and eight minima of six bits in twelve bytes. Those of the first four groups are
// bytes of their own; the others are split between the last bytes and what is free of the first.
void q4_k_terms(Block block, BlockTerms& terms) {
  const Block packed = block.subspan(4, 12);
  const double scale = f16_at(block, 0);
  const double minimum = f16_at(block, 2);
  for (std::size_t g = 0; g < 4; ++g) {
    const unsigned first = byte_at(packed, g);
    const unsigned second = byte_at(packed, g + 4);
    const unsigned third = byte_at(packed, g + 8);
    terms.scales[g] = scale * (first & 63U);
    terms.offsets[g] = -minimum * (second & 63U);
    terms.scales[g + 4] = scale * ((third & 0xfU) | first >> 6U << 4U);
    terms.offsets[g + 4] = -minimum * (third >> 4U | second >> 6U << 4U);
  }
}

void q6_k_terms(Block block, BlockTerms& terms) {
  const double scale = f16_at(block, 208);
  for (std::size_t g = 0; g < 16; ++g) {
    terms.scales[g] = scale * load_le<std::int8_t>(block.subspan(192 + g));
  }
}

void iq4_xs_terms(Block block, BlockTerms& terms) {
  const double scale = f16_at(block, 0);
  const auto high = load_le<std::uint16_t>(block.subspan(2));
  for (unsigned g = 0; g < 8; ++g) {
    const unsigned low = byte_at(block, 4 + g / 2) >> (g % 2 * 4) & 0xfU;
    const unsigned both = low | (unsigned{high} >> (2 * g) & 3U) << 4U;
    terms.scales[g] = scale * (static_cast<int>(both) - 32);
  }
}

void mxfp4_terms(Block block, BlockTerms& terms) {
  terms.scales[0] = e8m0_value(static_cast<std::uint8_t>(byte_at(block, 0)));
}

// E4M3 without its sign. The code that would be NaN is 0, but only where the unused bit is clear:
// else ggml reads it as the number that would be next.
double unsigned_e4m3(unsigned code) {
  constexpr unsigned kNan = 0x7f;
  constexpr double kNext = 480.0;
  if ((code & kNan) == kNan) return code == kNan ? 0.0 : kNext;
  return f8_e4m3_value(static_cast<std::uint8_t>(code & kNan));
}

void nvfp4_terms(Block block, BlockTerms& terms) {
  for (std::size_t g = 0; g < 4; ++g) terms.scales[g] = unsigned_e4m3(byte_at(block, g));
}

// ---- the types ----------------------------------------------------------------------------------

constexpr auto kFormats = std::to_array<BlockFormat>({
    {.dtype = Dtype::kQ4_0,
     .bits = 4,
     .group_size = 32,
     .middle = 8,
     .low = {.offset = 2, .width = 4, .run = 16},
     .load_terms = one_scale<0>},
    {.dtype = Dtype::kQ4_1,
     .bits = 4,
     .group_size = 32,
     .values = CodeValues::kOffset,
     .middle = 8,
     .low = {.offset = 4, .width = 4, .run = 16},
     .load_terms = scale_and_minimum},
    {.dtype = Dtype::kQ5_0,
     .bits = 5,
     .group_size = 32,
     .middle = 16,
     .low = {.offset = 6, .width = 4, .run = 16},
     .high = {.offset = 2, .width = 1, .run = 1},
     .load_terms = one_scale<0>},
    {.dtype = Dtype::kQ5_1,
     .bits = 5,
     .group_size = 32,
     .values = CodeValues::kOffset,
     .middle = 16,
     .low = {.offset = 8, .width = 4, .run = 16},
     .high = {.offset = 4, .width = 1, .run = 1},
     .load_terms = scale_and_minimum},
    {.dtype = Dtype::kQ8_0,
     .bits = 8,
     .group_size = 32,
     .middle = 128,
     .flip = 0x80,
     .low = {.offset = 2, .width = 8, .run = 32},
     .load_terms = one_scale<0>},
    {.dtype = Dtype::kQ2_K,
     .bits = 2,
     .group_size = 16,
     .values = CodeValues::kOffset,
     .middle = 2,
     .low = {.offset = 16, .width = 2, .run = 32},
     .load_terms = q2_k_terms},
    {.dtype = Dtype::kQ3_K,
     .bits = 3,
     .group_size = 16,
     .middle = 4,
     .low = {.offset = 32, .width = 2, .run = 32},
     .high = {.offset = 0, .width = 1, .run = 32},
     .load_terms = q3_k_terms},
    {.dtype = Dtype::kQ4_K,
     .bits = 4,
     .group_size = 32,
     .values = CodeValues::kOffset,
     .middle = 8,
     .low = {.offset = 16, .width = 4, .run = 32},
     .load_terms = q4_k_terms},
    {.dtype = Dtype::kQ5_K,
     .bits = 5,
     .group_size = 32,
     .values = CodeValues::kOffset,
     .middle = 16,
     .low = {.offset = 48, .width = 4, .run = 32},
     .high = {.offset = 16, .width = 1, .run = 32},
     .load_terms = q4_k_terms},
    {.dtype = Dtype::kQ6_K,
     .bits = 6,
     .group_size = 16,
     .middle = 32,
     .low = {.offset = 0, .width = 4, .run = 64},
     .high = {.offset = 128, .width = 2, .run = 32},
     .load_terms = q6_k_terms},
    {.dtype = Dtype::kIQ4_NL,
     .bits = 4,
     .group_size = 32,
     .values = CodeValues::kIq4,
     .middle = 8,
     .low = {.offset = 2, .width = 4, .run = 16},
     .load_terms = one_scale<0>},
    {.dtype = Dtype::kIQ4_XS,
     .bits = 4,
     .group_size = 32,
     .values = CodeValues::kIq4,
     .middle = 8,
     .low = {.offset = 8, .width = 4, .run = 16},
     .load_terms = iq4_xs_terms},
    {.dtype = Dtype::kTQ2_0,
     .bits = 2,
     .group_size = 256,
     .middle = 1,
     .low = {.offset = 0, .width = 2, .run = 32},
     .load_terms = one_scale<64>},
    {.dtype = Dtype::kMXFP4,
     .bits = 4,
     .group_size = 32,
     .values = CodeValues::kE2m1,
     .low = {.offset = 1, .width = 4, .run = 16},
     .scale_type = Dtype::kF8E8M0,
     .load_terms = mxfp4_terms},
    {.dtype = Dtype::kNVFP4,
     .bits = 4,
     .group_size = 16,
     .values = CodeValues::kE2m1,
     .low = {.offset = 4, .width = 4, .run = 8},
     .scale_type = Dtype::kF8E4M3,
     .load_terms = nvfp4_terms},
    {.dtype = Dtype::kQ1_0,
     .bits = 1,
     .group_size = 128,
     .values = CodeValues::kPlusMinus,
     .low = {.offset = 2, .width = 1, .run = 1},
     .load_terms = one_scale<0>},
    {.dtype = Dtype::kQ2_0,
     .bits = 2,
     .group_size = 64,
     .middle = 1,
     .low = {.offset = 2, .width = 2, .run = 1},
     .load_terms = one_scale<0>},
});

// ---- codes --------------------------------------------------------------------------------------

// Calls `visit(byte, shift, element)` for each element: where in the block its bits are.
template <typename Visit>
void for_each_code(const BitPlane& plane, std::size_t elements, Visit visit) {
  const std::size_t in_byte = 8 / plane.width;
  const std::size_t in_run = plane.run * in_byte;
  for (std::size_t first = 0; first < elements; first += in_run) {
    const std::size_t bytes = plane.offset + first / in_byte;
    for (std::size_t part = 0; part < in_byte; ++part) {
      for (std::size_t i = 0; i < plane.run; ++i) {
        visit(bytes + i, part * plane.width, first + part * plane.run + i);
      }
    }
  }
}

// The low nibbles of eight bytes, two to a byte.
std::uint32_t join_nibbles(std::uint64_t bytes) {
  std::uint64_t joined = bytes & 0x0f0f0f0f0f0f0f0fU;
  joined = (joined | joined >> 4U) & 0x00ff00ff00ff00ffU;
  joined = (joined | joined >> 8U) & 0x0000ffff0000ffffU;
  return static_cast<std::uint32_t>(joined | joined >> 16U);
}

CodeTable iq4_table() {
  return {.values = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113},
          .levels = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7}};
}

CodeTable e2m1_table() {
  CodeTable table;
  for (std::uint8_t code = 0; code < 16; ++code) {
    const int magnitude = code % 8;
    table.values[code] = e2m1_value(code);
    table.levels[code] = static_cast<std::int16_t>(code < 8 ? magnitude : -magnitude);
  }
  return table;
}

}  // namespace

const BlockFormat* find_block_format(Dtype dtype) {
  const auto* const found = std::ranges::find(kFormats, dtype, &BlockFormat::dtype);
  return found == kFormats.end() ? nullptr : found;
}

std::string_view undecoded_reason(Dtype dtype) {
  switch (dtype) {
    case Dtype::kQ8_1:
    case Dtype::kQ8_K:
      return "a type for intermediate results, not for files";
    case Dtype::kTQ1_0:
      return "its codes are digits to the base 3";
    default:
      return "its codes are entries of a large codebook";
  }
}

void load_codes(const BlockFormat& format, std::span<const std::byte> block,
                std::span<std::uint8_t> codes) {
  std::ranges::fill(codes, static_cast<std::uint8_t>(format.flip));
  std::uint32_t below = 0;
  for (const BitPlane& plane : {format.low, format.high}) {
    if (plane.width == 0) continue;
    const unsigned mask = (1U << plane.width) - 1;
    for_each_code(plane, codes.size(), [&](std::size_t at, std::size_t shift, std::size_t element) {
      const unsigned bits = byte_at(block, at) >> shift & mask;
      codes[element] ^= static_cast<std::uint8_t>(bits << below);
    });
    below += plane.width;
  }
}

void store_codes(const BlockFormat& format, std::span<const std::uint8_t> codes,
                 std::span<std::byte> block) {
  std::uint32_t below = 0;
  for (const BitPlane& plane : {format.low, format.high}) {
    if (plane.width == 0) continue;
    const unsigned mask = (1U << plane.width) - 1;
    for_each_code(plane, codes.size(), [&](std::size_t at, std::size_t shift, std::size_t element) {
      const unsigned bits = (codes[element] ^ format.flip) >> below & mask;
      block[at] &= ~static_cast<std::byte>(mask << shift);
      block[at] |= static_cast<std::byte>(bits << shift);
    });
    below += plane.width;
  }
}

void order_nibbles(const BlockFormat& format, std::span<const std::byte> block,
                   std::span<std::byte> out) {
  const std::size_t run = format.low.run;
  for (std::size_t first = 0; first < out.size(); first += run) {
    for (std::size_t i = 0; i < run; i += 8) {
      const auto bytes = load_le<std::uint64_t>(block.subspan(format.low.offset + first + i));
      store_le(out.subspan(first + i / 2), join_nibbles(bytes));
      store_le(out.subspan(first + (run + i) / 2), join_nibbles(bytes >> 4U));
    }
  }
}

const CodeTable& code_table(CodeValues values) {
  static const CodeTable kIq4 = iq4_table();
  static const CodeTable kE2m1 = e2m1_table();
  static const CodeTable kPlusMinus = {.values = {-1, 1}, .levels = {-1, 1}};
  if (values == CodeValues::kIq4) return kIq4;
  return values == CodeValues::kE2m1 ? kE2m1 : kPlusMinus;
}

}  // namespace gridscope::quant
