#include "ct_packing.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <vector>

#include "quant/cross_vector.hpp"

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::array kPackings = {CtPacking::kDense, CtPacking::kWholeCodes};

std::vector<std::uint32_t> packed_words(CtPacking packing, std::uint32_t bits,
                                        const std::vector<std::uint8_t>& codes) {
  StoredTensor tensor;
  tensor.data.resize(ct_words(packing, bits, codes.size()) * 4);
  pack_ct(packing, bits, codes, tensor.data);
  return words_of(tensor);
}

TEST(CtPacking, WritesBothGenerations) {
  const std::vector<std::uint8_t> codes = {0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3};
  EXPECT_THAT(packed_words(CtPacking::kDense, 3, codes), ElementsAre(0x88FAC688, 0x00000006));
  EXPECT_THAT(packed_words(CtPacking::kWholeCodes, 3, codes), ElementsAre(0x08FAC688, 0x0000001A));
}

TEST(CtPacking, IsTheSameWhereCodesDivideAWord) {
  for (const std::uint32_t bits : {1U, 2U, 4U, 8U}) {
    std::vector<std::uint8_t> codes(37);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      codes[i] = static_cast<std::uint8_t>(i * 7 % (1U << bits));
    }
    EXPECT_EQ(packed_words(CtPacking::kDense, bits, codes),
              packed_words(CtPacking::kWholeCodes, bits, codes));
    EXPECT_EQ(ct_bit(CtPacking::kDense, bits, 33), ct_bit(CtPacking::kWholeCodes, bits, 33));
  }
}

TEST(CtPacking, KnowsWhereACodeStarts) {
  EXPECT_EQ(ct_bit(CtPacking::kDense, 5, 7), 35);
  EXPECT_EQ(ct_bit(CtPacking::kWholeCodes, 5, 7), 37);  // six codes a word, then the second
}

RC_GTEST_PROP(CtPacking, UnpacksWhatItPacked, ()) {
  const auto bits = *rc::gen::inRange<std::uint32_t>(1, 9);
  const auto codes = *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::map(
      rc::gen::inRange(0, 1 << bits), [](int code) { return static_cast<std::uint8_t>(code); }));
  for (const CtPacking packing : kPackings) {
    std::vector<std::byte> row(ct_words(packing, bits, codes.size()) * 4);
    pack_ct(packing, bits, codes, row);
    std::vector<std::uint8_t> back(codes.size());
    unpack_ct(packing, bits, row, back);
    RC_ASSERT(back == codes);
  }
}

Result<CtPacking> solve(std::uint32_t bits, std::vector<CtWords> runs,
                        CtPacking claimed = CtPacking::kUnknown) {
  return solve_ct_packing({.name = "q_proj", .ct_packing = claimed}, bits, runs);
}

TEST(SolveCtPacking, CountsWords) {
  EXPECT_EQ(solve(3, {{.codes = 320, .words = 30}}), CtPacking::kDense);
  EXPECT_EQ(solve(3, {{.codes = 320, .words = 32}}), CtPacking::kWholeCodes);
  EXPECT_EQ(solve(4, {{.codes = 320, .words = 40}}), CtPacking::kDense);
  EXPECT_EQ(solve(3, {{.codes = 320, .words = 32}}, CtPacking::kDense), CtPacking::kWholeCodes)
      << "the shapes have the last word";
}

TEST(SolveCtPacking, AsksTheVersionWhereBothFit) {
  EXPECT_EQ(solve(3, {{.codes = 10, .words = 1}}, CtPacking::kDense), CtPacking::kDense);
  EXPECT_EQ(solve(3, {{.codes = 10, .words = 1}}, CtPacking::kWholeCodes), CtPacking::kWholeCodes);
  EXPECT_THAT(
      solve(3, {{.codes = 10, .words = 1}}),
      test::Fails(ErrorCode::kCorrupt,
                  HasSubstr("1 words for 10 codes of 3 bits fit the packing before and "
                            "since compressed-tensors 0.17, and its version is not known")));
}

// Few columns leave it open, many rows of zero points do not.
TEST(SolveCtPacking, LetsZeroPointsDecide) {
  const CtWords codes = {.codes = 10, .words = 1};
  EXPECT_EQ(solve(3, {codes, {.companion = Companion::kZeroPoint, .codes = 320, .words = 30}}),
            CtPacking::kDense);
  EXPECT_EQ(solve(3, {codes, {.companion = Companion::kZeroPoint, .codes = 320, .words = 32}}),
            CtPacking::kWholeCodes);
}

TEST(SolveCtPacking, NamesTheRunThatDoesNotFit) {
  EXPECT_THAT(solve(4, {{.codes = 32, .words = 5}}),
              test::Fails(ErrorCode::kCorrupt,
                          HasSubstr("its codes has 5 words for 32 of 4 bits, expected 4")));
  EXPECT_THAT(solve(4, {{.codes = 32, .words = 4},
                        {.companion = Companion::kZeroPoint, .codes = 8, .words = 2}}),
              test::Fails(ErrorCode::kCorrupt,
                          HasSubstr("its zero point has 2 words for 8 of 4 bits, expected 1")));
  EXPECT_THAT(solve(3, {{.codes = 320, .words = 30},
                        {.companion = Companion::kZeroPoint, .codes = 320, .words = 32}}),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("not packed in the same way")));
}

}  // namespace
}  // namespace gridscope::quant
