#include <gmock/gmock.h>

#include "quant/cross_vector.hpp"

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

LeveledWeight one_group(std::uint64_t size) {
  LeveledWeight weight = {.rows = 1, .columns = size, .bits = 4, .group_size = size};
  weight.levels.assign(size, 0);
  weight.levels[0] = 6;
  weight.levels[1] = -3;
  weight.scales = {0.25};
  return weight;
}

WeightSpec fp(Scheme scheme) {
  return {.name = "q_proj", .scheme = scheme};
}

TEST(PackFp4, WritesTheCodeOfEachLevelTheEvenColumnFirst) {
  const WeightSpec spec = packed(one_group(32), fp(Scheme::kCtMxfp4));
  EXPECT_THAT(spec.find(Companion::kCodes)->shape, ElementsAre(1, 16));
  EXPECT_EQ(spec.find(Companion::kCodes)->data[0], std::byte{0xd7});
  EXPECT_EQ(spec.find(Companion::kScale)->dtype, Dtype::kU8);
  EXPECT_THAT(spec.find(Companion::kScale)->data, ElementsAre(std::byte{125}));
  EXPECT_EQ(spec.find(Companion::kGlobalScale), nullptr);
}

TEST(PackFp4, WritesTheScalesAndWordsOfEachFormat) {
  const WeightSpec nvfp4 = packed(one_group(16), fp(Scheme::kCtNvfp4));
  EXPECT_EQ(nvfp4.find(Companion::kScale)->dtype, Dtype::kF8E4M3);
  EXPECT_THAT(nvfp4.find(Companion::kScale)->data, ElementsAre(std::byte{0x28}));
  ASSERT_NE(nvfp4.find(Companion::kGlobalScale), nullptr);
  const WeightSpec gpt_oss = packed(one_group(32), fp(Scheme::kGptOssMxfp4));
  EXPECT_THAT(gpt_oss.find(Companion::kCodes)->shape, ElementsAre(1, 1, 1, 16));
  EXPECT_THAT(gpt_oss.find(Companion::kScale)->shape, ElementsAre(1, 1, 1));
  const WeightSpec packed_fp4 = packed(one_group(32), fp(Scheme::kPackedFp4));
  EXPECT_EQ(packed_fp4.find(Companion::kCodes)->dtype, Dtype::kI8);
  EXPECT_EQ(packed_fp4.find(Companion::kScale)->dtype, Dtype::kF8E8M0);
  const WeightSpec mlx = packed(one_group(16), fp(Scheme::kMlxFp));
  EXPECT_EQ(mlx.find(Companion::kCodes)->dtype, Dtype::kU32);
  EXPECT_THAT(mlx.find(Companion::kCodes)->shape, ElementsAre(1, 2));
  EXPECT_EQ(mlx.find(Companion::kScale)->dtype, Dtype::kU8);
}

TEST(PackFp4, WritesBytesForMxfp8) {
  WeightSpec like = fp(Scheme::kMlxFp);
  like.bits = 8;
  LeveledWeight weight = one_group(32);
  weight.levels[2] = 5;  // E2M1 has no 5
  const WeightSpec spec = packed(weight, like);
  EXPECT_THAT(spec.find(Companion::kCodes)->shape, ElementsAre(1, 8));
  EXPECT_EQ(spec.find(Companion::kCodes)->data[2], std::byte{0x4a});
}

TEST(PackFp4, RefusesWhatTheFormatCannotHold) {
  LeveledWeight weight = one_group(32);
  weight.levels[3] = 5;
  EXPECT_THAT(pack(weight, fp(Scheme::kCtMxfp4)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("there is no code for level 5")));
  EXPECT_THAT(pack(one_group(32), fp(Scheme::kCtNvfp4)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("groups of 32")));
  weight = one_group(32);
  weight.scales = {0.3};
  EXPECT_THAT(pack(weight, fp(Scheme::kCtMxfp4)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("0.3 is not exact as F8_E8M0")));
  weight = one_group(32);
  weight.zeros = {1};
  EXPECT_THAT(pack(weight, fp(Scheme::kCtMxfp4)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("zero points")));
  weight = one_group(32);
  weight.group_of_column.assign(32, 0);
  EXPECT_THAT(pack(weight, fp(Scheme::kCtMxfp4)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("columns out of order")));
}

}  // namespace
}  // namespace gridscope::quant
