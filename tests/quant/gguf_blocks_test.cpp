#include "gguf_blocks.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "gridscope/quant/bitstream.hpp"

namespace gridscope::quant {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

using Bytes = std::vector<std::byte>;

const BlockFormat& format_of(Dtype dtype) {
  const BlockFormat* const format = find_block_format(dtype);
  EXPECT_NE(format, nullptr) << dtype_name(dtype);
  return *format;
}

std::vector<const BlockFormat*> all_formats() {
  std::vector<const BlockFormat*> formats;
  for (const DtypeInfo& info : all_dtypes()) {
    if (const BlockFormat* const format = find_block_format(info.dtype)) formats.push_back(format);
  }
  return formats;
}

Bytes empty_block(Dtype dtype) {
  return Bytes(format_of(dtype).bytes());
}

void put(Bytes& block, std::size_t offset, std::initializer_list<int> bytes) {
  for (const int byte : bytes) block.at(offset++) = static_cast<std::byte>(byte);
}

std::vector<std::uint8_t> codes_of(Dtype dtype, const Bytes& block) {
  std::vector<std::uint8_t> codes(format_of(dtype).elements());
  load_codes(format_of(dtype), block, codes);
  return codes;
}

BlockTerms terms_of(Dtype dtype, const Bytes& block) {
  BlockTerms terms;
  format_of(dtype).load_terms(block, terms);
  return terms;
}

std::vector<double> some(const std::array<double, kMostGroups>& numbers, std::size_t count) {
  return {numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(count)};
}

TEST(GgufBlocks, KnowEveryBlockTypeOrWhyNot) {
  EXPECT_EQ(all_formats().size(), 17);
  for (const DtypeInfo& info : all_dtypes()) {
    if (!is_block_type(info.dtype)) {
      EXPECT_EQ(find_block_format(info.dtype), nullptr);
    } else if (find_block_format(info.dtype) == nullptr) {
      EXPECT_THAT(undecoded_reason(info.dtype), Not(IsEmpty())) << info.name;
    }
  }
  EXPECT_EQ(undecoded_reason(Dtype::kQ8_K), "a type for intermediate results, not for files");
  EXPECT_EQ(undecoded_reason(Dtype::kTQ1_0), "its codes are digits to the base 3");
  EXPECT_EQ(undecoded_reason(Dtype::kIQ3_S), "its codes are entries of a large codebook");
}

RC_GTEST_PROP(GgufBlocks, GiveBackTheCodesThatWereStored, ()) {
  for (const BlockFormat* const format : all_formats()) {
    const auto before = *rc::gen::container<std::vector<std::uint8_t>>(
        format->bytes(), rc::gen::arbitrary<std::uint8_t>());
    Bytes block(before.size());
    std::ranges::transform(before, block.begin(),
                           [](std::uint8_t byte) { return static_cast<std::byte>(byte); });
    const auto codes = *rc::gen::container<std::vector<std::uint8_t>>(
        format->elements(),
        rc::gen::map(rc::gen::arbitrary<std::uint8_t>(), [&](std::uint8_t code) {
          return static_cast<std::uint8_t>(code & ((1U << format->bits) - 1));
        }));
    const BlockTerms terms = terms_of(format->dtype, block);
    store_codes(*format, codes, block);
    RC_ASSERT(codes_of(format->dtype, block) == codes);
    // The factors were left alone.
    const BlockTerms after = terms_of(format->dtype, block);
    for (std::size_t g = 0; g < format->groups(); ++g) {
      RC_ASSERT(after.scales[g] == terms.scales[g] || std::isnan(terms.scales[g]));
      RC_ASSERT(after.offsets[g] == terms.offsets[g] || std::isnan(terms.offsets[g]));
    }
  }
}

RC_GTEST_PROP(GgufBlocks, OrderNibblesAsTheyLoadCodes, ()) {
  for (const Dtype dtype : {Dtype::kQ4_0, Dtype::kQ4_1, Dtype::kQ4_K, Dtype::kIQ4_XS}) {
    const BlockFormat& format = format_of(dtype);
    const auto codes = *rc::gen::container<std::vector<std::uint8_t>>(
        format.elements(), rc::gen::inRange<std::uint8_t>(0, 16));
    Bytes block(format.bytes());
    store_codes(format, codes, block);
    Bytes ordered(format.elements() / 2);
    order_nibbles(format, block, ordered);
    std::vector<std::uint8_t> unpacked(codes.size());
    unpack_bits(ordered, 4, 0, unpacked);
    RC_ASSERT(unpacked == codes);
  }
}

// Byte 0 of the nibbles holds elements 0 and 16, not 0 and 1.
TEST(GgufBlocks, SplitHalves) {
  Bytes block = empty_block(Dtype::kQ4_0);
  put(block, 2, {0xA5, 0x21});
  const auto codes = codes_of(Dtype::kQ4_0, block);
  EXPECT_EQ(codes[0], 0x5);
  EXPECT_EQ(codes[16], 0xA);
  EXPECT_EQ(codes[1], 0x1);
  EXPECT_EQ(codes[17], 0x2);
}

TEST(GgufBlocks, ReadTwosComplement) {
  Bytes block = empty_block(Dtype::kQ8_0);
  put(block, 2, {0x00, 0x01, 0x7F, 0x80, 0xFF});
  auto codes = codes_of(Dtype::kQ8_0, block);
  codes.resize(5);
  EXPECT_THAT(codes, ElementsAre(128, 129, 255, 0, 127));
}

TEST(GgufBlocks, ReadBitsInOrder) {
  Bytes signs = empty_block(Dtype::kQ1_0);
  put(signs, 2, {0b00000101, 0, 0b10000000});
  const auto bits = codes_of(Dtype::kQ1_0, signs);
  EXPECT_EQ(bits[0], 1);
  EXPECT_EQ(bits[1], 0);
  EXPECT_EQ(bits[2], 1);
  EXPECT_EQ(bits[23], 1);
  Bytes pairs = empty_block(Dtype::kQ2_0);
  put(pairs, 2, {0b11100100, 0b00000010});
  auto codes = codes_of(Dtype::kQ2_0, pairs);
  codes.resize(5);
  EXPECT_THAT(codes, ElementsAre(0, 1, 2, 3, 2));
}

TEST(GgufBlocks, UnpackTheScalesOfQ4K) {
  Bytes block = empty_block(Dtype::kQ4_K);
  put(block, 0, {0x00, 0x3C, 0x00, 0x38});  // 1 and 0.5
  put(block, 4, {0x01, 0x54, 0xA1, 0xFF, 0x02, 0x47, 0x9F, 0xFC, 0xB5, 0x92, 0x68, 0xFE});
  for (const Dtype dtype : {Dtype::kQ4_K, Dtype::kQ5_K}) {
    const BlockTerms terms = terms_of(dtype, block);
    EXPECT_THAT(some(terms.scales, 8), ElementsAre(1, 20, 33, 63, 5, 18, 40, 62));
    EXPECT_THAT(some(terms.offsets, 8), ElementsAre(-1, -3.5, -15.5, -30, -5.5, -12.5, -19, -31.5));
  }
}

TEST(GgufBlocks, UnpackSignedScales) {
  Bytes q6_k = empty_block(Dtype::kQ6_K);
  put(q6_k, 192, {0x01, 0xFF, 0x80});
  put(q6_k, 208, {0x00, 0x40});  // 2
  EXPECT_THAT(some(terms_of(Dtype::kQ6_K, q6_k).scales, 4), ElementsAre(2, -2, -256, 0));
  Bytes iq4_xs = empty_block(Dtype::kIQ4_XS);
  put(iq4_xs, 0, {0x00, 0x3C, 0b00111001, 0x00, 0x21, 0x43});
  EXPECT_THAT(some(terms_of(Dtype::kIQ4_XS, iq4_xs).scales, 4),
              ElementsAre(1 + 16 - 32, 2 + 32 - 32, 3 + 48 - 32, 4 - 32));
  Bytes q3_k = empty_block(Dtype::kQ3_K);
  put(q3_k, 96, {0x21, 0, 0, 0, 0, 0, 0, 0, 0b11100100});
  put(q3_k, 108, {0x00, 0x3C});
  const BlockTerms terms = terms_of(Dtype::kQ3_K, q3_k);
  EXPECT_EQ(terms.scales[0], 1 - 32);
  EXPECT_EQ(terms.scales[4], 16 - 32);
  EXPECT_EQ(terms.scales[8], 2 + 32 - 32);
  EXPECT_EQ(terms.scales[12], 48 - 32);
}

TEST(GgufBlocks, ReadEightBitScales) {
  Bytes mxfp4 = empty_block(Dtype::kMXFP4);
  const auto exponent = [&](int code) {
    put(mxfp4, 0, {code});
    return terms_of(Dtype::kMXFP4, mxfp4).scales[0];
  };
  EXPECT_EQ(exponent(127), 1.0);
  EXPECT_EQ(exponent(0), std::ldexp(1.0, -127));
  EXPECT_EQ(exponent(254), std::ldexp(1.0, 127));
  EXPECT_TRUE(std::isnan(exponent(255)));
  Bytes nvfp4 = empty_block(Dtype::kNVFP4);
  put(nvfp4, 0, {0x38, 0xB8, 0x7F, 0xFF});
  EXPECT_THAT(some(terms_of(Dtype::kNVFP4, nvfp4).scales, 4), ElementsAre(1, 1, 0, 480));
}

TEST(GgufBlocks, RankTheCodesOfTables) {
  for (const CodeValues values : {CodeValues::kIq4, CodeValues::kE2m1, CodeValues::kPlusMinus}) {
    const CodeTable& table = code_table(values);
    const std::size_t codes = values == CodeValues::kPlusMinus ? 2 : 16;
    for (std::size_t a = 0; a < codes; ++a) {
      for (std::size_t b = 0; b < codes; ++b) {
        EXPECT_EQ(table.values[a] < table.values[b], table.levels[a] < table.levels[b]);
      }
    }
  }
  EXPECT_THAT(code_table(CodeValues::kE2m1).values,
              ElementsAre(0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6));
}

}  // namespace
}  // namespace gridscope::quant
