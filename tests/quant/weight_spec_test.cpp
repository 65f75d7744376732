#include "gridscope/quant/weight_spec.hpp"

#include <gtest/gtest.h>

namespace gridscope::quant {
namespace {

TEST(Companion, IsNamedForMessages) {
  EXPECT_EQ(companion_name(Companion::kCodes), "codes");
  EXPECT_EQ(companion_name(Companion::kGroupIndex), "group index");
  EXPECT_EQ(companion_name(Companion::kRowOffsets), "row offsets");
}

TEST(Companion, IsReadWholeWhereItIsSmall) {
  EXPECT_FALSE(is_read_whole(Companion::kCodes));
  EXPECT_FALSE(is_read_whole(Companion::kScale));
  EXPECT_FALSE(is_read_whole(Companion::kBitmask));
  EXPECT_TRUE(is_read_whole(Companion::kGroupIndex));
  EXPECT_TRUE(is_read_whole(Companion::kRowOffsets));
}

TEST(WeightSpec, FindsWhatIsThere) {
  WeightSpec spec;
  EXPECT_EQ(spec.find(Companion::kScale), nullptr);
  spec[Companion::kScale] = StoredTensor{.dtype = Dtype::kBF16, .shape = {8, 1}};
  ASSERT_NE(spec.find(Companion::kScale), nullptr);
  EXPECT_EQ(spec.find(Companion::kScale)->dtype, Dtype::kBF16);
  EXPECT_EQ(spec.find(Companion::kCodes), nullptr);
}

}  // namespace
}  // namespace gridscope::quant
