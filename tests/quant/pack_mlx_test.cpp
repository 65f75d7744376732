#include <gmock/gmock.h>

#include "quant/cross_vector.hpp"

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const WeightSpec kMlx = {.name = "q_proj", .scheme = Scheme::kMlxAffine};

TEST(PackMlx, WritesTheWordsOfTheReferencePacker) {
  const WeightSpec spec = packed(cross_weight(), kMlx);
  const StoredTensor& codes = *spec.find(Companion::kCodes);
  EXPECT_EQ(codes.dtype, Dtype::kU32);
  EXPECT_THAT(codes.shape, ElementsAre(8, 4));
  std::vector<std::uint32_t> words = words_of(codes);
  words.resize(5);
  EXPECT_THAT(words, ElementsAre(0x52FC9630, 0xDA741EB8, 0x52FC9630, 0xDA741EB8, 0xA741EB85));
  std::vector<double> numbers(8);
  load_numbers(Dtype::kBF16, spec.find(Companion::kScale)->data, numbers);
  EXPECT_EQ(numbers[0], 0.010009765625);
  load_numbers(Dtype::kBF16, spec.find(Companion::kOffset)->data, numbers);
  EXPECT_EQ(numbers[0], -0.080078125);
}

TEST(PackMlx, RefusesWhatTheFormatCannotHold) {
  LeveledWeight weight = cross_weight();
  weight.group_size = 16;
  weight.scales.assign(16, 1.0);
  EXPECT_THAT(pack(weight, kMlx),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("4 bits in groups of 16")));
  weight = cross_weight();
  weight.bits = 7;
  EXPECT_THAT(pack(weight, kMlx),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("7 bits in groups of 32")));
  weight = cross_weight();
  weight.group_of_column.assign(32, 0);
  EXPECT_THAT(pack(weight, kMlx),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("columns out of order")));
  // Seven times a scale of eight bits.
  weight = cross_weight();
  weight.zeros.assign(8, -1);
  EXPECT_THAT(pack(weight, kMlx),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("is not exact as BF16")));
}

}  // namespace
}  // namespace gridscope::quant
