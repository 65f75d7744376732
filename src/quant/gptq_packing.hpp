#pragma once

// How GPTQ writes codes into 32-bit words, down a column of weights and along a row of zero points.

#include <cstddef>
#include <cstdint>
#include <span>

#include "gridscope/quant/weight_spec.hpp"

namespace gridscope::quant {

// Whether codes of that width are stored in planes: 5, 6 and 7 bits always are.
[[nodiscard]] bool is_planar(const WeightSpec& spec, std::uint32_t bits);

// Codes go into words in blocks of 32, in both packings.
inline constexpr std::uint64_t kGptqBlock = 32;

// Planes: 32 codes take `bits` words; the lowest bits of all come first, then the next ones, each
// plane as wide as a power of two. Requires: 2 <= bits <= 8; a stream from the start of a block, of
// whole blocks.
void unpack_planar(std::span<const std::byte> stream, std::uint32_t bits,
                   std::span<std::uint8_t> out);
// Requires: codes.size() a multiple of 32 and every code < 2^bits; codes.size() * bits / 8 bytes.
void pack_planar(std::span<const std::uint8_t> codes, std::uint32_t bits,
                 std::span<std::byte> stream);

}  // namespace gridscope::quant
