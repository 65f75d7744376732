#include "gridscope/quant/codec.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "gridscope/core/endian.hpp"

// All small float types are one scheme: sign, `exponent_bits`, `mantissa_bits`, a bias; exponent
// field 0 means no hidden bit. As integers their magnitudes are in the order of their values, so a
// carry out of the mantissa when rounding walks into the exponent by itself, and what lies beyond
// the largest number is found by one comparison of codes.

namespace gridscope::quant {
namespace {

struct FloatFormat {
  int mantissa_bits;
  int min_exponent;       // of the smallest normal number
  std::uint32_t largest;  // code of what too large a magnitude becomes
  std::uint32_t nan;
  int sign_bit;
};

constexpr FloatFormat kBf16 = {
    .mantissa_bits = 7, .min_exponent = -126, .largest = 0x7f80, .nan = 0x7fc0, .sign_bit = 15};
constexpr FloatFormat kF16 = {
    .mantissa_bits = 10, .min_exponent = -14, .largest = 0x7c00, .nan = 0x7e00, .sign_bit = 15};
constexpr FloatFormat kE4m3 = {
    .mantissa_bits = 3, .min_exponent = -6, .largest = 0x7e, .nan = 0x7f, .sign_bit = 7};
constexpr FloatFormat kE4m3Fnuz = {
    .mantissa_bits = 3, .min_exponent = -7, .largest = 0x7f, .nan = 0x80, .sign_bit = 7};
constexpr FloatFormat kE5m2Fnuz = {
    .mantissa_bits = 2, .min_exponent = -15, .largest = 0x7f, .nan = 0x80, .sign_bit = 7};
// It has no NaN: 0 stands for one.
constexpr FloatFormat kE2m1 = {
    .mantissa_bits = 1, .min_exponent = 0, .largest = 7, .nan = 0, .sign_bit = 3};

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kDoubleMantissaBits = std::numeric_limits<double>::digits - 1;
constexpr int kDoubleBias = std::numeric_limits<double>::max_exponent - 1;

// Requires: a normal double.
constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + kDoubleBias)
                               << kDoubleMantissaBits);
}

// Of a code that is a number.
constexpr double finite_value(const FloatFormat& format, std::uint32_t code) {
  const std::uint32_t one = 1U << format.mantissa_bits;
  const std::uint32_t magnitude = code & ((1U << format.sign_bit) - 1);
  const std::uint32_t field = magnitude >> format.mantissa_bits;
  const std::uint32_t mantissa = (magnitude & (one - 1)) + (field == 0 ? 0 : one);
  const int exponent = format.min_exponent + static_cast<int>(field == 0 ? 0 : field - 1);
  const double value = mantissa * power_of_two(exponent - format.mantissa_bits);
  return (code >> format.sign_bit & 1U) != 0 ? -value : value;
}

std::uint32_t rounded_code(const FloatFormat& format, double value) {
  if (std::isnan(value)) return format.nan;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t one = std::uint64_t{1} << kDoubleMantissaBits;
  const auto field = static_cast<int>(bits >> kDoubleMantissaBits & 0x7ff);
  const std::uint64_t significand = (bits & (one - 1)) | (field == 0 ? 0 : one);
  const int exponent = std::max(field, 1) - kDoubleBias;
  const int kept_exponent = std::max(exponent, format.min_exponent);
  // Two bits more than the significand has are enough for "less than half of the smallest".
  const int dropped =
      std::min(kDoubleMantissaBits - format.mantissa_bits + kept_exponent - exponent,
               kDoubleMantissaBits + 2);
  const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  const std::uint64_t rest = significand & (2 * half - 1);
  std::uint64_t code = significand >> dropped;
  if (rest > half || (rest == half && (code & 1U) != 0)) ++code;
  code += static_cast<std::uint64_t>(kept_exponent - format.min_exponent) << format.mantissa_bits;
  const auto magnitude = static_cast<std::uint32_t>(std::min<std::uint64_t>(code, format.largest));
  return magnitude | static_cast<std::uint32_t>(bits >> 63U) << format.sign_bit;
}

using ByteTable = std::array<double, 256>;

template <typename Value>
constexpr ByteTable table_of(Value value) {
  ByteTable table = {};
  for (std::uint32_t code = 0; code < table.size(); ++code) table[code] = value(code);
  return table;
}

constexpr ByteTable kE4m3Values = table_of(
    [](std::uint32_t code) { return (code & 0x7fU) == 0x7f ? kNan : finite_value(kE4m3, code); });
constexpr ByteTable kE5m2Values = table_of([](std::uint32_t code) {
  const std::uint32_t magnitude = code & 0x7fU;
  if (magnitude > 0x7c) return kNan;
  if (magnitude == 0x7c) return code > 0x7f ? -kInfinity : kInfinity;
  return finite_value(kF16, code << 8U);  // the upper half of an F16
});
constexpr ByteTable kE4m3FnuzValues = table_of(
    [](std::uint32_t code) { return code == 0x80 ? kNan : finite_value(kE4m3Fnuz, code); });
constexpr ByteTable kE5m2FnuzValues = table_of(
    [](std::uint32_t code) { return code == 0x80 ? kNan : finite_value(kE5m2Fnuz, code); });
constexpr ByteTable kE8m0Values = table_of([](std::uint32_t code) {
  return code == 0xff ? kNan : power_of_two(static_cast<int>(code) - 127);
});
constexpr ByteTable kE2m1Values =
    table_of([](std::uint32_t code) { return finite_value(kE2m1, code & 0xfU); });

template <typename Stored, typename Value>
void load_each(std::span<const std::byte> bytes, std::span<double> out, Value value) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = value(load_le<Stored>(bytes.subspan(i * sizeof(Stored))));
  }
}

template <typename Stored>
void load_integers(std::span<const std::byte> bytes, std::span<double> out) {
  load_each<Stored>(bytes, out, [](Stored stored) { return static_cast<double>(stored); });
}

void load_by_table(const ByteTable& table, std::span<const std::byte> bytes,
                   std::span<double> out) {
  load_each<std::uint8_t>(bytes, out, [&](std::uint8_t code) { return table[code]; });
}

template <typename Stored, typename Code>
void store_each(std::span<const double> values, std::span<std::byte> out, Code code) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    store_le<Stored>(out.subspan(i * sizeof(Stored)), code(values[i]));
  }
}

}  // namespace

double bf16_value(std::uint16_t code) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16U));
}
double f16_value(std::uint16_t code) {
  const unsigned magnitude = code & 0x7fffU;
  if (magnitude < kF16.largest) return finite_value(kF16, code);
  if (magnitude > kF16.largest) return kNan;
  return code == magnitude ? kInfinity : -kInfinity;
}
double f8_e4m3_value(std::uint8_t code) {
  return kE4m3Values[code];
}
double f8_e5m2_value(std::uint8_t code) {
  return kE5m2Values[code];
}
double f8_e4m3_fnuz_value(std::uint8_t code) {
  return kE4m3FnuzValues[code];
}
double f8_e5m2_fnuz_value(std::uint8_t code) {
  return kE5m2FnuzValues[code];
}
double e8m0_value(std::uint8_t code) {
  return kE8m0Values[code];
}
double e2m1_value(std::uint8_t code) {
  return kE2m1Values[code];
}

std::uint16_t to_bf16(double value) {
  return static_cast<std::uint16_t>(rounded_code(kBf16, value));
}
std::uint16_t to_f16(double value) {
  return static_cast<std::uint16_t>(rounded_code(kF16, value));
}
std::uint8_t to_f8_e4m3(double value) {
  return static_cast<std::uint8_t>(rounded_code(kE4m3, value));
}
std::uint8_t to_e2m1(double value) {
  return static_cast<std::uint8_t>(rounded_code(kE2m1, value));
}

bool is_number(Dtype dtype) {
  return dtype != Dtype::kBool && dtype != Dtype::kC64 && !is_block_type(dtype) &&
         dtype_info(dtype).block_bits % 8 == 0;
}

double rounded_to(Dtype dtype, double value) {
  switch (dtype) {
    case Dtype::kBF16:
      return bf16_value(to_bf16(value));
    case Dtype::kF16:
      return f16_value(to_f16(value));
    case Dtype::kF32:
      return static_cast<double>(static_cast<float>(value));
    default:
      return value;
  }
}

void load_numbers(Dtype dtype, std::span<const std::byte> bytes, std::span<double> out) {
  switch (dtype) {
    case Dtype::kBF16:
      return load_each<std::uint16_t>(bytes, out, bf16_value);
    case Dtype::kF16:
      return load_each<std::uint16_t>(bytes, out, f16_value);
    case Dtype::kF32:
      return load_each<std::uint32_t>(bytes, out, [](std::uint32_t bits) {
        return static_cast<double>(std::bit_cast<float>(bits));
      });
    case Dtype::kF64:
      return load_each<std::uint64_t>(
          bytes, out, [](std::uint64_t bits) { return std::bit_cast<double>(bits); });
    case Dtype::kF8E4M3:
      return load_by_table(kE4m3Values, bytes, out);
    case Dtype::kF8E5M2:
      return load_by_table(kE5m2Values, bytes, out);
    case Dtype::kF8E4M3Fnuz:
      return load_by_table(kE4m3FnuzValues, bytes, out);
    case Dtype::kF8E5M2Fnuz:
      return load_by_table(kE5m2FnuzValues, bytes, out);
    case Dtype::kF8E8M0:
      return load_by_table(kE8m0Values, bytes, out);
    case Dtype::kI8:
      return load_integers<std::int8_t>(bytes, out);
    case Dtype::kU8:
      return load_integers<std::uint8_t>(bytes, out);
    case Dtype::kI16:
      return load_integers<std::int16_t>(bytes, out);
    case Dtype::kU16:
      return load_integers<std::uint16_t>(bytes, out);
    case Dtype::kI32:
      return load_integers<std::int32_t>(bytes, out);
    case Dtype::kU32:
      return load_integers<std::uint32_t>(bytes, out);
    case Dtype::kI64:
      return load_integers<std::int64_t>(bytes, out);
    case Dtype::kU64:
      return load_integers<std::uint64_t>(bytes, out);
    default:
      return;
  }
}

void store_numbers(Dtype dtype, std::span<const double> values, std::span<std::byte> out) {
  switch (dtype) {
    case Dtype::kBF16:
      return store_each<std::uint16_t>(values, out, to_bf16);
    case Dtype::kF16:
      return store_each<std::uint16_t>(values, out, to_f16);
    case Dtype::kF32:
      return store_each<std::uint32_t>(values, out, [](double value) {
        return std::bit_cast<std::uint32_t>(static_cast<float>(value));
      });
    default:
      return store_each<std::uint64_t>(
          values, out, [](double value) { return std::bit_cast<std::uint64_t>(value); });
  }
}

}  // namespace gridscope::quant
