#include "gridscope/quant/bitstream.hpp"

#include <algorithm>

#include "gridscope/core/endian.hpp"

// Eight codes of b bits fill b bytes exactly, so whole blocks of eight go through one 64-bit word;
// only what is before and after them is taken code by code.

namespace gridscope::quant {
namespace {

constexpr std::uint64_t kBlock = 8;

// The eight bytes from `offset` on, lowest first; zeros where the stream has ended.
std::uint64_t word_at(std::span<const std::byte> stream, std::uint64_t offset) {
  const auto rest = stream.subspan(offset);
  if (rest.size() >= sizeof(std::uint64_t)) return load_le<std::uint64_t>(rest);
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    word |= std::to_integer<std::uint64_t>(rest[i]) << (8 * i);
  }
  return word;
}

std::uint8_t code_at(std::span<const std::byte> stream, unsigned bits, std::uint64_t index) {
  const std::uint64_t bit = index * bits;
  return static_cast<std::uint8_t>(word_at(stream, bit / 8) >> (bit % 8) & ((1U << bits) - 1));
}

}  // namespace

void unpack_bits(std::span<const std::byte> stream, unsigned bits, std::uint64_t first,
                 std::span<std::uint8_t> out) {
  const std::uint64_t mask = (1U << bits) - 1;
  std::size_t done = 0;
  for (; done < out.size() && (first + done) % kBlock != 0; ++done) {
    out[done] = code_at(stream, bits, first + done);
  }
  for (; done + kBlock <= out.size(); done += kBlock) {
    std::uint64_t word = word_at(stream, (first + done) / kBlock * bits);
    for (std::size_t i = 0; i < kBlock; ++i, word >>= bits) {
      out[done + i] = static_cast<std::uint8_t>(word & mask);
    }
  }
  for (; done < out.size(); ++done) out[done] = code_at(stream, bits, first + done);
}

void pack_bits(std::span<const std::uint8_t> codes, unsigned bits, std::span<std::byte> stream) {
  std::ranges::fill(stream, std::byte{0});
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::size_t bit = i * bits;
    const unsigned shifted = static_cast<unsigned>(codes[i]) << (bit % 8);
    stream[bit / 8] |= static_cast<std::byte>(shifted & 0xffU);
    if (bit % 8 + bits > 8) stream[bit / 8 + 1] |= static_cast<std::byte>(shifted >> 8U);
  }
}

}  // namespace gridscope::quant
