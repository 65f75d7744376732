#include "gptq_packing.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "gridscope/core/endian.hpp"
#include "gridscope/quant/bitstream.hpp"

namespace gridscope::quant {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(FitsWords, LetsCodesRunOnOnlyFromWordsOf32Bits) {
  for (const std::uint32_t bits : {2U, 4U, 8U}) {
    for (const Dtype words : kGptqWords) EXPECT_TRUE(fits_words(bits, words)) << dtype_name(words);
  }
  for (const std::uint32_t bits : {3U, 5U, 6U, 7U}) {
    for (const Dtype words : kGptqWords) {
      EXPECT_EQ(fits_words(bits, words), word_bits_of(words) == 32) << bits << dtype_name(words);
    }
  }
}

TEST(WordsFor, CountsWordsThatAreBegun) {
  EXPECT_EQ(words_for(32, 3, Dtype::kI32), 3);
  EXPECT_EQ(words_for(9, 4, Dtype::kI32), 2);
  EXPECT_EQ(words_for(9, 4, Dtype::kI8), 5);
  EXPECT_EQ(words_for(9, 4, Dtype::kI16), 3);
  EXPECT_EQ(words_for(33, 2, Dtype::kI64), 2);
}

TEST(IsPlanar, FollowsTheFormatOrTheWidth) {
  EXPECT_FALSE(is_planar({}, 3));
  EXPECT_FALSE(is_planar({}, 4));
  EXPECT_FALSE(is_planar({}, 8));
  EXPECT_TRUE(is_planar({}, 5));
  EXPECT_TRUE(is_planar({}, 6));
  EXPECT_TRUE(is_planar({}, 7));
  EXPECT_TRUE(is_planar({.gptq_packing = WeightSpec::GptqPacking::kPlanar}, 3));
}

// Three bits: two words of the two low bits, then one of the high bits.
TEST(PackPlanar, PutsLowBitsFirst) {
  std::vector<std::uint8_t> codes(32, 0);
  codes[0] = 7;
  codes[1] = 2;
  codes[16] = 1;
  codes[31] = 4;
  std::vector<std::byte> stream(12);
  pack_planar(codes, 3, stream);
  EXPECT_EQ(load_le<std::uint32_t>(std::span(stream)), 0b1011U);
  EXPECT_EQ(load_le<std::uint32_t>(std::span(stream).subspan(4)), 1U);
  EXPECT_EQ(load_le<std::uint32_t>(std::span(stream).subspan(8)), 0x80000001U);
}

// Seven bits: four words of nibbles, two of pairs, one of the highest bits.
TEST(PackPlanar, HasThreePlanesAtSevenBits) {
  std::vector<std::uint8_t> codes(32, 0);
  codes[8] = 0b1'10'0101;
  std::vector<std::byte> stream(28);
  pack_planar(codes, 7, stream);
  std::vector<std::uint32_t> words;
  for (std::size_t i = 0; i < stream.size(); i += 4) {
    words.push_back(load_le<std::uint32_t>(std::span(stream).subspan(i)));
  }
  EXPECT_THAT(words, ElementsAre(0, 0b0101, 0, 0, 0b10U << 16, 0, 1U << 8));
}

RC_GTEST_PROP(Planar, UnpacksWhatItPacked, ()) {
  const auto bits = *rc::gen::inRange<std::uint32_t>(2, 9);
  const auto blocks = *rc::gen::inRange<std::size_t>(0, 4);
  const auto codes = *rc::gen::container<std::vector<std::uint8_t>>(
      blocks * 32, rc::gen::map(rc::gen::inRange<int>(0, 1 << bits),
                                [](int code) { return static_cast<std::uint8_t>(code); }));
  std::vector<std::byte> stream(codes.size() * bits / 8);
  pack_planar(codes, bits, stream);
  std::vector<std::uint8_t> back(codes.size());
  unpack_planar(stream, bits, back);
  RC_ASSERT(back == codes);
}

RC_GTEST_PROP(Planar, IsTheBitStreamAtWidthsOfOnePlane, ()) {
  const auto bits = *rc::gen::element<std::uint32_t>(2, 4, 8);
  const auto stream = *rc::gen::map(
      rc::gen::container<std::vector<std::uint8_t>>(32, rc::gen::arbitrary<std::uint8_t>()),
      [](const std::vector<std::uint8_t>& bytes) {
        const auto view = std::as_bytes(std::span(bytes));
        return std::vector<std::byte>(view.begin(), view.end());
      });
  const std::size_t count = *rc::gen::inRange<std::size_t>(1, 33);
  std::vector<std::uint8_t> planar(count);
  std::vector<std::uint8_t> dense(count);
  unpack_planar(stream, bits, planar);
  unpack_bits(stream, bits, 0, dense);
  RC_ASSERT(planar == dense);
}

}  // namespace
}  // namespace gridscope::quant
