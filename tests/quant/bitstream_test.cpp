#include "gridscope/quant/bitstream.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>
#include <vector>

#include "gridscope/core/endian.hpp"

namespace gridscope::quant {
namespace {

using Codes = std::vector<std::uint8_t>;

std::vector<std::byte> packed(const Codes& codes, unsigned bits, std::size_t bytes) {
  std::vector<std::byte> stream(bytes, std::byte{0xff});
  pack_bits(codes, bits, stream);
  return stream;
}

TEST(PackBits, FillsWordsFromTheLowestBit) {
  const auto four = packed({0, 1, 7, 8, 9, 10, 14, 15}, 4, 4);
  EXPECT_EQ(load_le<std::uint32_t>(four), 0xFEA98710);
  const auto three = packed({0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3}, 3, 8);
  EXPECT_EQ(load_le<std::uint32_t>(three), 0x88FAC688);
  EXPECT_EQ(load_le<std::uint32_t>(std::span(three).subspan(4)), 0x00000006);
}

TEST(UnpackBits, StartsAnywhere) {
  Codes codes(40);
  std::iota(codes.begin(), codes.end(), std::uint8_t{0});
  for (std::uint8_t& code : codes) code %= 32;
  const auto stream = packed(codes, 5, 25);
  for (std::size_t first = 0; first <= codes.size(); ++first) {
    Codes tail(codes.size() - first);
    unpack_bits(stream, 5, first, tail);
    EXPECT_TRUE(std::equal(tail.begin(), tail.end(), codes.begin() + static_cast<long>(first)))
        << first;
  }
}

RC_GTEST_PROP(UnpackBits, UndoesPackBitsForEveryWidth, ()) {
  const unsigned bits = *rc::gen::inRange(1U, 9U);
  const auto codes = *rc::gen::container<Codes>(rc::gen::map(
      rc::gen::inRange(0, 1 << bits), [](int code) { return static_cast<std::uint8_t>(code); }));
  const auto stream = packed(codes, bits, (codes.size() * bits + 7) / 8);
  Codes back(codes.size());
  unpack_bits(stream, bits, 0, back);
  RC_ASSERT(back == codes);
}

// Bit by bit, as the definition has it.
RC_GTEST_PROP(UnpackBits, ReadsBitsByTheirDefinition, ()) {
  const unsigned bits = *rc::gen::inRange(1U, 9U);
  const auto stream = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<std::uint8_t>>(rc::gen::arbitrary<std::uint8_t>()));
  Codes codes(stream.size() * 8 / bits);
  unpack_bits(std::as_bytes(std::span(stream)), bits, 0, codes);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    unsigned expected = 0;
    for (unsigned b = 0; b < bits; ++b) {
      const std::size_t bit = i * bits + b;
      expected |= ((unsigned{stream[bit / 8]} >> (bit % 8)) & 1U) << b;
    }
    RC_ASSERT(codes[i] == expected);
  }
}

}  // namespace
}  // namespace gridscope::quant
