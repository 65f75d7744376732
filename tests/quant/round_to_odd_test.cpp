#include "round_to_odd.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace gridscope::quant {
namespace {

TEST(SumToOdd, IsTheSumWhereItFits) {
  EXPECT_EQ(sum_to_odd(0.5, 0.25), 0.75);
  EXPECT_EQ(sum_to_odd(1.0, -1.0), 0.0);
  EXPECT_EQ(sum_to_odd(-0.1, 0.0), -0.1);
}

TEST(SumToOdd, SetsTheLastBitWhereItDoesNot) {
  EXPECT_EQ(sum_to_odd(1.0, 0x1p-80), std::nextafter(1.0, 2.0));
  EXPECT_EQ(sum_to_odd(1.0, -0x1p-80), std::nextafter(1.0, 0.0));
  EXPECT_EQ(sum_to_odd(0x1p-80, -1.0), std::nextafter(-1.0, 0.0));
}

// Halfway between two floats but for the last bit: the plain sum loses it and goes to even.
TEST(SumToOdd, KeepsTheFloatThatTheExactSumRoundsTo) {
  const double halfway = 1.0 + 0x1p-24;
  EXPECT_EQ(static_cast<float>(halfway + 0x1p-80), 1.0F);
  EXPECT_EQ(static_cast<float>(sum_to_odd(halfway, 0x1p-80)), std::nextafter(1.0F, 2.0F));
}

TEST(ProductToOdd, KeepsTheFloatThatTheExactProductRoundsTo) {
  EXPECT_EQ(product_to_odd(1.5, 3.0), 4.5);
  const double a = 1.0 + 0x1p-52;
  EXPECT_EQ(product_to_odd(a, a), std::nextafter(a + 0x1p-52, 2.0));
}

double any_float() {
  const int mantissa = *rc::gen::inRange(-(1 << 24), 1 << 24);
  return std::ldexp(mantissa, *rc::gen::inRange(-14, 14));
}

// Both fit a long double, which is rounded to float once.
RC_GTEST_PROP(SumToOdd, RoundsToTheSameFloatAsTheExactSum, ()) {
  const double scaled = any_float() * *rc::gen::inRange(0, 256);
  const double offset = any_float();
  const long double exact = static_cast<long double>(scaled) + static_cast<long double>(offset);
  RC_ASSERT(static_cast<float>(sum_to_odd(scaled, offset)) == static_cast<float>(exact));
}

RC_GTEST_PROP(ProductToOdd, RoundsToTheSameFloatAsTheExactProduct, ()) {
  const double scaled = any_float() * *rc::gen::inRange(0, 64);
  const double factor = any_float();
  const long double exact = static_cast<long double>(scaled) * static_cast<long double>(factor);
  RC_ASSERT(static_cast<float>(product_to_odd(scaled, factor)) == static_cast<float>(exact));
}

}  // namespace
}  // namespace gridscope::quant
