#include "awq_packing.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "gridscope/core/checked.hpp"
#include "gridscope/core/endian.hpp"

namespace gridscope::quant {
namespace {

std::vector<std::byte> bytes_of_words(const std::vector<std::uint32_t>& words) {
  std::vector<std::byte> bytes(words.size() * 4);
  for (std::size_t i = 0; i < words.size(); ++i)
    store_le(std::span(bytes).subspan(4 * i), words[i]);
  return bytes;
}

// Outputs 0 to 7 of one input hold 0 to 7.
TEST(OrderAwqGemm, TakesOutputsOutOfTheirWord) {
  std::vector<std::byte> out(8 * 4);
  order_awq_gemm(bytes_of_words({0x75316420}), 1, {.first = 0, .count = 1}, out);
  for (std::uint32_t n = 0; n < 8; ++n) {
    EXPECT_EQ(load_le<std::uint32_t>(std::span(out).subspan(4 * n)), n);
  }
}

// The definition, nibble by nibble.
unsigned nibble_of(const std::vector<std::uint32_t>& words, std::uint64_t width,
                   std::uint64_t input, std::uint64_t output) {
  return words[input * width + output / 8] >> (4 * kAwqNibble[output % 8]) & 0xfU;
}

RC_GTEST_PROP(OrderAwqGemm, BringsEveryNibbleToItsPlace, ()) {
  const auto width = *rc::gen::inRange<std::uint64_t>(1, 21);
  const auto height = *rc::gen::inRange<std::uint64_t>(1, 300);
  const auto first = *rc::gen::inRange<std::uint64_t>(0, width);
  const auto count = *rc::gen::inRange<std::uint64_t>(1, width - first + 1);
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  std::vector<std::uint32_t> words(width * height);
  for (std::uint32_t i = 0; i < words.size(); ++i) words[i] = (seed + i) * 2654435761U;
  const std::uint64_t row_bytes = ceil_div(height, 8) * 4;
  std::vector<std::byte> out(count * 8 * row_bytes, std::byte{0xff});
  order_awq_gemm(bytes_of_words(words), width, {.first = first, .count = count}, out);
  for (std::uint64_t row = 0; row < count * 8; ++row) {
    for (std::uint64_t k = 0; k < row_bytes * 2; ++k) {
      const auto byte = std::to_integer<unsigned>(out[row * row_bytes + k / 2]);
      const unsigned expected = k < height ? nibble_of(words, width, k, first * 8 + row) : 0;
      RC_ASSERT((byte >> (k % 2 * 4) & 0xfU) == expected);
    }
  }
}

// The kernel's own description: three reshapes and transpositions, one after the other.
NibblePlace place_by_reshaping(std::uint64_t n, std::uint64_t k) {
  const std::uint64_t b = k / 32;
  const std::uint64_t a = k % 32 / 8;
  const std::uint64_t c = k % 8 / 2;
  const std::uint64_t e = k % 2;
  const std::uint64_t p = 8 * c + 2 * a + e;
  const std::uint64_t a2 = p / 8;
  const std::uint64_t c2 = p % 8 / 2;
  const std::uint64_t e2 = p % 2;
  const std::uint64_t kk = 32 * b + 8 * a2 + 4 * e2 + c2;
  const std::uint64_t f = n % 4 * 64 + kk % 64;
  return {.word = kk / 64 * 64 + f / 4, .shift = static_cast<unsigned>(4 * (f % 4))};
}

TEST(AwqFastPlace, IsOneNibbleForEveryWeight) {
  std::set<std::pair<std::uint64_t, unsigned>> places;
  for (std::uint64_t n = 0; n < 4; ++n) {
    for (std::uint64_t k = 0; k < 192; ++k) {
      const NibblePlace place = awq_fast_place(n, k);
      const NibblePlace expected = place_by_reshaping(n, k);
      EXPECT_EQ(place.word, expected.word);
      EXPECT_EQ(place.shift, expected.shift);
      EXPECT_LT(place.word, 192);
      places.emplace(place.word, place.shift);
    }
  }
  EXPECT_EQ(places.size(), 4 * 192);
}

TEST(AwqPaddedGroups, GrowWithSmallGroups) {
  EXPECT_EQ(awq_padded_groups(32, 128), 32);
  EXPECT_EQ(awq_padded_groups(1, 128), 8);
  EXPECT_EQ(awq_padded_groups(1, 4096), 8);
  EXPECT_EQ(awq_padded_groups(4, 64), 16);
  EXPECT_EQ(awq_padded_groups(8, 32), 32);
  EXPECT_EQ(awq_padded_groups(33, 32), 64);
}

}  // namespace
}  // namespace gridscope::quant
