#pragma once

// Codes of 1 to 8 bits one after the other, lowest bit first: code i of width b is bits
// [i * b, i * b + b) of the little-endian bytes. compressed-tensors, GPTQ and MLX pack like that,
// along different axes.

#include <cstddef>
#include <cstdint>
#include <span>

namespace gridscope::quant {

// Codes [first, first + out.size()) of a stream. Requires: 1 <= bits <= 8; bytes that hold them.
void unpack_bits(std::span<const std::byte> stream, unsigned bits, std::uint64_t first,
                 std::span<std::uint8_t> out);

// Writes all codes from bit 0 on; bits after the last one are zero. Requires: every code < 2^bits;
// stream.size() >= ceil(codes.size() * bits / 8).
void pack_bits(std::span<const std::uint8_t> codes, unsigned bits, std::span<std::byte> stream);

}  // namespace gridscope::quant
