#include <gmock/gmock.h>

#include "quant/cross_vector.hpp"

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

WeightSpec bnb(Scheme scheme) {
  return {.name = "q_proj", .scheme = scheme};
}

LeveledWeight one_row() {
  LeveledWeight weight = {.rows = 1, .columns = 4, .bits = 4, .group_size = 2};
  weight.levels = {-7, 7, 0, 1};
  weight.scales = {2.0, 0.5};
  return weight;
}

TEST(PackBnb, WritesNf4WithTheHighNibbleFirst) {
  const WeightSpec spec = packed(one_row(), bnb(Scheme::kBnbNf4));
  EXPECT_THAT(spec.find(Companion::kCodes)->shape, ElementsAre(2, 1));
  EXPECT_THAT(spec.find(Companion::kCodes)->data, ElementsAre(std::byte{0x1f}, std::byte{0x89}));
  EXPECT_THAT(spec.find(Companion::kScale)->shape, ElementsAre(2));
  EXPECT_EQ(test::to_text(spec.find(Companion::kQuantState)->data),
            R"({"quant_type": "nf4", "blocksize": 2, "dtype": "bfloat16", "shape": [1, 4]})");
  std::vector<double> map(16);
  load_numbers(Dtype::kF32, spec.find(Companion::kQuantMap)->data, map);
  EXPECT_EQ(map[0], -1);
  EXPECT_EQ(map[7], 0);
  EXPECT_EQ(map[15], 1);
  EXPECT_FLOAT_EQ(static_cast<float>(map[12]), 0.4407098F);
}

// The largest magnitude is code 3, its negative 11, the smallest 1.
TEST(PackBnb, WritesFp4ByRank) {
  const WeightSpec spec = packed(one_row(), bnb(Scheme::kBnbFp4));
  EXPECT_THAT(spec.find(Companion::kCodes)->data, ElementsAre(std::byte{0xb3}, std::byte{0x01}));
  std::vector<double> map(16);
  load_numbers(Dtype::kF32, spec.find(Companion::kQuantMap)->data, map);
  EXPECT_EQ(map[1], static_cast<double>(0.0625F / 12.0F));
  EXPECT_EQ(map[5], 0.5);
  EXPECT_EQ(map[11], -1);
}

TEST(PackBnb, RefusesWhatTheFormatCannotHold) {
  LeveledWeight weight = one_row();
  weight.levels[0] = -8;
  EXPECT_THAT(pack(weight, bnb(Scheme::kBnbNf4)), test::IsOk());
  EXPECT_THAT(pack(weight, bnb(Scheme::kBnbFp4)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("there is no code for level -8")));
  weight = one_row();
  weight.bits = 5;
  EXPECT_THAT(pack(weight, bnb(Scheme::kBnbNf4)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("5 bits")));
  weight = one_row();
  weight.zeros = {1, 0};
  EXPECT_THAT(pack(weight, bnb(Scheme::kBnbNf4)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("zero points")));
  weight = one_row();
  weight.group_of_column = {0, 1, 0, 1};
  EXPECT_THAT(pack(weight, bnb(Scheme::kBnbNf4)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("columns out of order")));
  weight = one_row();
  weight.scales[0] = 0.1;
  EXPECT_THAT(pack(weight, bnb(Scheme::kBnbNf4)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("0.1 is not exact as F32")));
}

}  // namespace
}  // namespace gridscope::quant
