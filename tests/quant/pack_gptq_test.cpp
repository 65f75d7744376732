#include <gmock/gmock.h>

#include "quant/cross_vector.hpp"

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

WeightSpec gptq(WeightSpec::GptqZeros zeros) {
  return {.name = "q_proj", .scheme = Scheme::kGptq, .gptq_zeros = zeros};
}

constexpr auto kMinusOne = WeightSpec::GptqZeros::kMinusOne;
constexpr auto kAsStored = WeightSpec::GptqZeros::kAsStored;

// Column n of `tensor`, a matrix of eight columns.
std::vector<std::uint32_t> column(const StoredTensor& tensor, std::size_t n) {
  const std::vector<std::uint32_t> words = words_of(tensor);
  std::vector<std::uint32_t> taken;
  for (std::size_t i = n; i < words.size(); i += 8) taken.push_back(words[i]);
  return taken;
}

TEST(PackGptq, WritesTheWordsOfTheReferencePacker) {
  const WeightSpec spec = packed(cross_weight(), gptq(kMinusOne));
  const StoredTensor& codes = *spec.find(Companion::kCodes);
  EXPECT_EQ(codes.dtype, Dtype::kI32);
  EXPECT_THAT(codes.shape, ElementsAre(4, 8));
  EXPECT_THAT(column(codes, 0), ElementsAre(0x52FC9630, 0xDA741EB8, 0x52FC9630, 0xDA741EB8));
  EXPECT_THAT(column(codes, 1), ElementsAre(0xA741EB85, 0x2FC9630D, 0xA741EB85, 0x2FC9630D));
  EXPECT_EQ(spec.bits, 4);
  EXPECT_EQ(spec.group_size, 32);
  EXPECT_THAT(spec.find(Companion::kScale)->shape, ElementsAre(1, 8));
  EXPECT_THAT(spec.find(Companion::kGroupIndex)->shape, ElementsAre(32));
}

TEST(PackGptq, WritesTheSameBitsIntoWordsOfOtherTypes) {
  WeightSpec like = gptq(kMinusOne);
  like[Companion::kCodes] = StoredTensor{.dtype = Dtype::kI16};
  const WeightSpec spec = packed(cross_weight(), like);
  const StoredTensor& codes = *spec.find(Companion::kCodes);
  EXPECT_EQ(codes.dtype, Dtype::kI16);
  EXPECT_THAT(codes.shape, ElementsAre(8, 8));
  std::vector<std::uint16_t> first;
  for (std::size_t i = 0; i < 8; ++i) {
    first.push_back(load_le<std::uint16_t>(std::span(codes.data).subspan(i * 16)));
  }
  EXPECT_THAT(first, ElementsAre(0x9630, 0x52FC, 0x1EB8, 0xDA74, 0x9630, 0x52FC, 0x1EB8, 0xDA74));
  EXPECT_THAT(spec.find(Companion::kZeroPoint)->shape, ElementsAre(1, 2));
  EXPECT_THAT(words_of(*spec.find(Companion::kZeroPoint)), ElementsAre(0x77777777));
}

TEST(PackGptq, WritesZeroPointsOfBothVersions) {
  const auto zeros = [](const LeveledWeight& weight, WeightSpec::GptqZeros version) {
    return words_of(*packed(weight, gptq(version)).find(Companion::kZeroPoint));
  };
  EXPECT_THAT(zeros(cross_weight(), kMinusOne), ElementsAre(0x77777777));
  EXPECT_THAT(zeros(cross_weight(), kAsStored), ElementsAre(0x88888888));
  EXPECT_THAT(zeros(asymmetric_cross_weight(), kMinusOne), ElementsAre(0x98765432));
  EXPECT_THAT(zeros(asymmetric_cross_weight(), kAsStored), ElementsAre(0xA9876543));
}

TEST(PackGptq, RefusesWhatTheFormatCannotHold) {
  LeveledWeight weight = cross_weight();
  weight.bits = 9;
  EXPECT_THAT(pack(weight, gptq(kMinusOne)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("9 bits")));
  WeightSpec like = gptq(kMinusOne);
  like.gptq_packing = WeightSpec::GptqPacking::kPlanar;
  EXPECT_THAT(pack(cross_weight(), like),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("planes of 8 x 32 weights")));
  like = gptq(kMinusOne);
  like[Companion::kCodes] = StoredTensor{.dtype = Dtype::kI64};
  weight = cross_weight();
  weight.bits = 5;
  EXPECT_THAT(pack(weight, like),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("5 bits in words of type I64")));
  like = gptq(kMinusOne);
  like.symmetric = true;
  EXPECT_THAT(
      pack(asymmetric_cross_weight(), like),
      test::Fails(ErrorCode::kInvalidArgument, HasSubstr("zero points, but it is symmetric")));
  weight = cross_weight();
  weight.scales[0] = 0.1;
  EXPECT_THAT(pack(weight, gptq(kMinusOne)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("0.1 is not exact as BF16")));
}

}  // namespace
}  // namespace gridscope::quant
