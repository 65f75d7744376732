#include "gridscope/quant/codec.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "gridscope/core/endian.hpp"

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The textbook's formula for a number of `exponent_bits` and `mantissa_bits` that is finite.
double textbook(unsigned code, int exponent_bits, int mantissa_bits, int bias) {
  const int sign = (code >> (exponent_bits + mantissa_bits) & 1U) != 0 ? -1 : 1;
  const auto exponent = static_cast<int>(code >> mantissa_bits & ((1U << exponent_bits) - 1));
  const double fraction =
      static_cast<double>(code & ((1U << mantissa_bits) - 1)) / (1 << mantissa_bits);
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  return sign * magnitude;
}

// The same with the largest exponent for infinity and NaN.
double ieee(unsigned code, int exponent_bits, int mantissa_bits) {
  const unsigned exponent_mask = ((1U << exponent_bits) - 1) << mantissa_bits;
  const bool negative = (code >> (exponent_bits + mantissa_bits) & 1U) != 0;
  if ((code & exponent_mask) != exponent_mask) {
    return textbook(code, exponent_bits, mantissa_bits, (1 << (exponent_bits - 1)) - 1);
  }
  if ((code & ((1U << mantissa_bits) - 1)) != 0) return std::nan("");
  return negative ? -kInfinity : kInfinity;
}

bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

TEST(Codec, EveryBf16) {
  for (unsigned code = 0; code < 0x10000; ++code) {
    const double value = bf16_value(static_cast<std::uint16_t>(code));
    ASSERT_TRUE(same(value, ieee(code, 8, 7))) << code;
    if (std::isnan(value)) continue;
    ASSERT_EQ(to_bf16(value), code);
  }
}

TEST(Codec, EveryF16) {
  for (unsigned code = 0; code < 0x10000; ++code) {
    const double value = f16_value(static_cast<std::uint16_t>(code));
    ASSERT_TRUE(same(value, ieee(code, 5, 10))) << code;
    if (std::isnan(value)) continue;
    ASSERT_EQ(to_f16(value), code);
  }
}

TEST(Codec, EveryF8) {
  for (unsigned i = 0; i < 0x100; ++i) {
    const auto code = static_cast<std::uint8_t>(i);
    const bool e4m3_nan = (code & 0x7fU) == 0x7f;
    EXPECT_TRUE(same(f8_e4m3_value(code), e4m3_nan ? std::nan("") : textbook(code, 4, 3, 7))) << i;
    EXPECT_TRUE(same(f8_e5m2_value(code), ieee(code, 5, 2))) << i;
    const bool fnuz_nan = code == 0x80;
    EXPECT_TRUE(same(f8_e4m3_fnuz_value(code), fnuz_nan ? std::nan("") : textbook(code, 4, 3, 8)));
    EXPECT_TRUE(same(f8_e5m2_fnuz_value(code), fnuz_nan ? std::nan("") : textbook(code, 5, 2, 16)));
    const double e8m0 = i == 255 ? std::nan("") : std::ldexp(1.0, static_cast<int>(i) - 127);
    EXPECT_TRUE(same(e8m0_value(code), e8m0)) << i;
    if (!e4m3_nan) {
      EXPECT_EQ(to_f8_e4m3(f8_e4m3_value(code)), code);
    }
  }
}

TEST(Codec, KnownF8) {
  EXPECT_EQ(f8_e4m3_value(0x38), 1);
  EXPECT_EQ(f8_e4m3_value(0x7e), 448);
  EXPECT_EQ(f8_e4m3_value(0x01), 0x1p-9);
  EXPECT_EQ(f8_e4m3_value(0xb8), -1);
  EXPECT_EQ(f8_e5m2_value(0x7b), 57344);
  EXPECT_EQ(f8_e5m2_value(0x01), 0x1p-16);
  EXPECT_EQ(f8_e4m3_fnuz_value(0x7f), 240);
  EXPECT_EQ(f8_e5m2_fnuz_value(0x7f), 57344);
}

TEST(Codec, EveryE2m1) {
  const std::vector<double> magnitudes = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (unsigned i = 0; i < 16; ++i) {
    const auto code = static_cast<std::uint8_t>(i);
    EXPECT_TRUE(same(e2m1_value(code), i < 8 ? magnitudes[i] : -magnitudes[i - 8])) << i;
    EXPECT_EQ(e2m1_value(static_cast<std::uint8_t>(i + 0x50)), e2m1_value(code));
    EXPECT_EQ(to_e2m1(e2m1_value(code)), code);
  }
}

// Between two neighbouring numbers: the middle goes to the even code, a hair off it to the nearer.
template <typename Value, typename Code>
void expect_rounds_to_nearest_even(Value value, Code code, unsigned last) {
  for (unsigned low = 0; low < last; ++low) {
    const double below = value(low);
    const double above = value(low + 1);
    const double middle = below + (above - below) / 2;
    ASSERT_EQ(code(middle), low % 2 == 0 ? low : low + 1) << low;
    ASSERT_EQ(code(std::nextafter(middle, 0.0)), low);
    ASSERT_EQ(code(std::nextafter(middle, kInfinity)), low + 1);
  }
}

TEST(Codec, RoundsToNearestEvenOnce) {
  const auto bf16 = [](unsigned code) { return bf16_value(static_cast<std::uint16_t>(code)); };
  expect_rounds_to_nearest_even(bf16, to_bf16, 0x7f7f);
  const auto f16 = [](unsigned code) { return f16_value(static_cast<std::uint16_t>(code)); };
  expect_rounds_to_nearest_even(f16, to_f16, 0x7bff);
  const auto e4m3 = [](unsigned code) { return f8_e4m3_value(static_cast<std::uint8_t>(code)); };
  expect_rounds_to_nearest_even(e4m3, to_f8_e4m3, 0x7e);
  const auto e2m1 = [](unsigned code) { return e2m1_value(static_cast<std::uint8_t>(code)); };
  expect_rounds_to_nearest_even(e2m1, to_e2m1, 7);
}

// Through a float first, this would be a tie and fall to the even number below.
TEST(Codec, DoesNotRoundTwice) {
  EXPECT_EQ(bf16_value(to_bf16(1 + 0x1p-8 + 0x1p-40)), 1 + 0x1p-7);
  EXPECT_EQ(rounded_to(Dtype::kF16, 1 + 0x1p-11 + 0x1p-40), 1 + 0x1p-10);
}

TEST(Codec, WhatIsTooLargeOverflows) {
  EXPECT_EQ(to_f16(65519.99), 0x7bff);
  EXPECT_EQ(to_f16(65520), 0x7c00);
  EXPECT_EQ(to_f16(-1e300), 0xfc00);
  EXPECT_EQ(to_bf16(0x1.fep127), 0x7f7f);
  EXPECT_EQ(to_bf16(0x1.ffp127), 0x7f80);
  EXPECT_EQ(to_bf16(-kInfinity), 0xff80);
  EXPECT_EQ(to_f8_e4m3(1000), 0x7e);
  EXPECT_EQ(to_f8_e4m3(-kInfinity), 0xfe);
  EXPECT_EQ(to_e2m1(-7), 0xf);
}

TEST(Codec, WhatIsTooSmallVanishes) {
  EXPECT_EQ(to_f16(0x1p-25), 0);
  EXPECT_EQ(to_f16(-0x1.8p-25), 0x8001);
  EXPECT_EQ(to_bf16(std::numeric_limits<double>::denorm_min()), 0);
  EXPECT_EQ(to_bf16(-1e-300), 0x8000);
}

TEST(Codec, NanStaysOne) {
  EXPECT_TRUE(std::isnan(bf16_value(to_bf16(std::nan("")))));
  EXPECT_TRUE(std::isnan(f16_value(to_f16(std::nan("")))));
  EXPECT_TRUE(std::isnan(f8_e4m3_value(to_f8_e4m3(std::nan("")))));
}

RC_GTEST_PROP(Codec, RoundsFloatsLikeTheHardwareDoesIntegers, ()) {
  const auto bits = *rc::gen::arbitrary<std::uint32_t>();
  const auto value = std::bit_cast<float>(bits);
  RC_PRE(!std::isnan(value));
  RC_ASSERT(to_bf16(static_cast<double>(value)) == (bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U);
}

TEST(IsNumber, LeavesOutWhatHasNoElementOfItsOwn) {
  EXPECT_TRUE(is_number(Dtype::kF64));
  EXPECT_TRUE(is_number(Dtype::kF8E8M0));
  EXPECT_TRUE(is_number(Dtype::kU64));
  EXPECT_FALSE(is_number(Dtype::kBool));
  EXPECT_FALSE(is_number(Dtype::kF4));
  EXPECT_FALSE(is_number(Dtype::kF6E2M3));
  EXPECT_FALSE(is_number(Dtype::kC64));
  EXPECT_FALSE(is_number(Dtype::kQ4_0));
}

template <typename Stored>
std::vector<double> loaded(Dtype dtype, const std::vector<Stored>& stored) {
  std::vector<std::byte> bytes(stored.size() * sizeof(Stored));
  for (std::size_t i = 0; i < stored.size(); ++i) {
    store_le(std::span(bytes).subspan(i * sizeof(Stored)), stored[i]);
  }
  std::vector<double> values(stored.size());
  load_numbers(dtype, bytes, values);
  return values;
}

TEST(LoadNumbers, ReadsEveryType) {
  using U8 = std::vector<std::uint8_t>;
  EXPECT_THAT(loaded(Dtype::kBF16, std::vector<std::uint16_t>{0x3f80, 0xc000}), ElementsAre(1, -2));
  EXPECT_THAT(loaded(Dtype::kF16, std::vector<std::uint16_t>{0x3c00, 0x0001}),
              ElementsAre(1, 0x1p-24));
  EXPECT_THAT(loaded(Dtype::kF32, std::vector<std::uint32_t>{0xbf800000}), ElementsAre(-1));
  EXPECT_THAT(loaded(Dtype::kF64, std::vector<std::uint64_t>{0x4008000000000000}), ElementsAre(3));
  EXPECT_THAT(loaded(Dtype::kF8E4M3, U8{0x38, 0xb8}), ElementsAre(1, -1));
  EXPECT_THAT(loaded(Dtype::kF8E5M2, U8{0x3c}), ElementsAre(1));
  EXPECT_THAT(loaded(Dtype::kF8E4M3Fnuz, U8{0x40}), ElementsAre(1));
  EXPECT_THAT(loaded(Dtype::kF8E5M2Fnuz, U8{0x40}), ElementsAre(1));
  EXPECT_THAT(loaded(Dtype::kF8E8M0, U8{126}), ElementsAre(0.5));
  EXPECT_THAT(loaded(Dtype::kI8, std::vector<std::int8_t>{-128, 127}), ElementsAre(-128, 127));
  EXPECT_THAT(loaded(Dtype::kU8, U8{200}), ElementsAre(200));
  EXPECT_THAT(loaded(Dtype::kI16, std::vector<std::int16_t>{-300}), ElementsAre(-300));
  EXPECT_THAT(loaded(Dtype::kU16, std::vector<std::uint16_t>{65535}), ElementsAre(65535));
  EXPECT_THAT(loaded(Dtype::kI32, std::vector<std::int32_t>{-70000}), ElementsAre(-70000));
  EXPECT_THAT(loaded(Dtype::kU32, std::vector<std::uint32_t>{4000000000}), ElementsAre(4e9));
  EXPECT_THAT(loaded(Dtype::kI64, std::vector<std::int64_t>{-5}), ElementsAre(-5));
  EXPECT_THAT(loaded(Dtype::kU64, std::vector<std::uint64_t>{5}), ElementsAre(5));
}

TEST(StoreNumbers, ComesBackRounded) {
  const std::vector<double> values = {1.0, -0.1, 3.14159265358979};
  for (const Dtype dtype : {Dtype::kBF16, Dtype::kF16, Dtype::kF32, Dtype::kF64}) {
    std::vector<std::byte> bytes(values.size() * dtype_info(dtype).block_bits / 8);
    store_numbers(dtype, values, bytes);
    std::vector<double> back(values.size());
    load_numbers(dtype, bytes, back);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(back[i], rounded_to(dtype, values[i])) << dtype_name(dtype);
    }
  }
  EXPECT_EQ(rounded_to(Dtype::kF64, 0.1), 0.1);
  EXPECT_EQ(rounded_to(Dtype::kF32, 0.1), static_cast<double>(0.1F));
  EXPECT_EQ(rounded_to(Dtype::kBF16, 0.01), 0.010009765625);
}

}  // namespace
}  // namespace gridscope::quant
