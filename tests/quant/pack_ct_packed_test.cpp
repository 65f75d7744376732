#include "quant/cross_vector.hpp"

// What comes back is tested with the decoder; here, that what is written is what its writer writes.

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

WeightSpec ct() {
  return {.name = "q_proj", .scheme = Scheme::kCtPackQuantized};
}

TEST(PackCtPacked, WritesTheTensorsOfItsWriter) {
  const WeightSpec spec = packed(cross_weight(), ct());
  EXPECT_EQ(spec.find(Companion::kCodes)->dtype, Dtype::kI32);
  EXPECT_EQ(spec.find(Companion::kCodes)->shape, (std::vector<std::uint64_t>{8, 4}));
  EXPECT_EQ(spec.find(Companion::kScale)->dtype, Dtype::kBF16);
  EXPECT_EQ(spec.find(Companion::kScale)->shape, (std::vector<std::uint64_t>{8, 1}));
  EXPECT_EQ(load_le<std::uint16_t>(spec.find(Companion::kScale)->data), 0x3C24);
  EXPECT_THAT(words_of(*spec.find(Companion::kShape)), ElementsAre(8, 0, 32, 0));
  EXPECT_EQ(spec.find(Companion::kZeroPoint), nullptr);
  EXPECT_EQ(spec.find(Companion::kGroupIndex), nullptr);
  EXPECT_EQ(spec.symmetric, true);
  EXPECT_EQ(spec.group_size, 32);
}

TEST(PackCtPacked, RefusesWhatTheFormatCannotHold) {
  LeveledWeight weight = asymmetric_cross_weight();
  WeightSpec like = ct();
  like.symmetric = true;
  EXPECT_THAT(pack(weight, like),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("the format is symmetric")));
  weight.bits = 9;
  EXPECT_THAT(pack(weight, ct()), test::Fails(ErrorCode::kInvalidArgument, HasSubstr("9 bits")));
  weight = cross_weight();
  weight.scales[2] = 0.01;
  EXPECT_THAT(pack(weight, ct()),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("0.01 is not exact as BF16")));
}

}  // namespace
}  // namespace gridscope::quant
