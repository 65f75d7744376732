#include "gridscope/core/checked.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace gridscope {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(CheckedAdd, GivesTheSumUpToTheLargestNumber) {
  EXPECT_EQ(checked_add(0, 0), 0);
  EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
  EXPECT_EQ(checked_add(0, kMax), kMax);
}

TEST(CheckedAdd, IsEmptyBeyondIt) {
  EXPECT_EQ(checked_add(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_add(1, kMax), std::nullopt);
  EXPECT_EQ(checked_add(kMax, kMax), std::nullopt);
}

TEST(CheckedMul, GivesTheProductUpToTheLargestNumber) {
  EXPECT_EQ(checked_mul(0, kMax), 0);
  EXPECT_EQ(checked_mul(kMax, 0), 0);
  EXPECT_EQ(checked_mul(kMax, 1), kMax);
  EXPECT_EQ(checked_mul(0xFFFFFFFF, 0x100000001), kMax);
}

TEST(CheckedMul, IsEmptyBeyondIt) {
  EXPECT_EQ(checked_mul(0x100000000, 0x100000000), std::nullopt);
  EXPECT_EQ(checked_mul(kMax, 2), std::nullopt);
}

RC_GTEST_PROP(CheckedArithmetic, AgreesWithWiderArithmetic, (std::uint64_t a, std::uint64_t b)) {
  __extension__ using Wide = unsigned __int128;
  const Wide sum = Wide{a} + b;
  const Wide product = Wide{a} * b;
  RC_ASSERT(checked_add(a, b).has_value() == (sum <= kMax));
  RC_ASSERT(checked_add(a, b).value_or(0) == (sum <= kMax ? a + b : 0));
  RC_ASSERT(checked_mul(a, b).has_value() == (product <= kMax));
  RC_ASSERT(checked_mul(a, b).value_or(0) == (product <= kMax ? a * b : 0));
}

TEST(CeilDiv, RoundsUpWithoutOverflow) {
  EXPECT_EQ(ceil_div(0, 8), 0);
  EXPECT_EQ(ceil_div(1, 8), 1);
  EXPECT_EQ(ceil_div(8, 8), 1);
  EXPECT_EQ(ceil_div(9, 8), 2);
  EXPECT_EQ(ceil_div(kMax, 2), kMax / 2 + 1);
  EXPECT_EQ(ceil_div(kMax, 1), kMax);
}

TEST(ToSize, KeepsWhatFits) {
  EXPECT_EQ(to_size(0), 0);
  EXPECT_EQ(to_size(4096), 4096);
}

}  // namespace
}  // namespace gridscope
