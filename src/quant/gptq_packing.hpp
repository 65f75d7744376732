#pragma once

// How GPTQ writes codes into words, down a column of weights and along a row of zero points. The
// words have 32 bits unless "pack_dtype" says otherwise, and then they are of that type.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "gridscope/quant/weight_spec.hpp"

namespace gridscope::quant {

inline constexpr std::initializer_list<Dtype> kGptqWords = {Dtype::kI32, Dtype::kU32, Dtype::kI8,
                                                            Dtype::kU8,  Dtype::kI16, Dtype::kU16,
                                                            Dtype::kI64, Dtype::kU64};

[[nodiscard]] std::uint64_t word_bits_of(Dtype words);

// Whether codes of that width are written into such words: only from one of 32 bits may a code run
// into the next, and planes have no others.
[[nodiscard]] bool fits_words(std::uint32_t bits, Dtype words);

// How many words so many codes take.
[[nodiscard]] std::uint64_t words_for(std::uint64_t codes, std::uint32_t bits, Dtype words);

// Whether codes of that width are stored in planes: 5, 6 and 7 bits always are.
[[nodiscard]] bool is_planar(const WeightSpec& spec, std::uint32_t bits);

// Codes go into words in blocks of 32, in both packings: whole words of any type.
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
