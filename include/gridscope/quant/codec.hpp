#pragma once

// Numbers of few bits, each exactly as its format defines it, and one rounding back. Every value of
// every type here is a double without loss, so doubles are the common coin. Sources: IEEE 754
// (F16), the OCP 8-bit and microscaling formats (E4M3, E5M2, E2M1, E8M0), torch (FNUZ types).

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gridscope/core/dtype.hpp"

namespace gridscope::quant {

// One code -> its value. NaN where the code is one.
[[nodiscard]] double bf16_value(std::uint16_t code);
[[nodiscard]] double f16_value(std::uint16_t code);
[[nodiscard]] double f8_e4m3_value(std::uint8_t code);
[[nodiscard]] double f8_e5m2_value(std::uint8_t code);
[[nodiscard]] double f8_e4m3_fnuz_value(std::uint8_t code);
[[nodiscard]] double f8_e5m2_fnuz_value(std::uint8_t code);
[[nodiscard]] double e8m0_value(std::uint8_t code);  // 2^(code - 127); 255 is NaN
[[nodiscard]] double e2m1_value(std::uint8_t code);  // the low four bits count

// Round to nearest, ties to even, once. What is too large becomes infinity; NaN stays one.
[[nodiscard]] std::uint16_t to_bf16(double value);
[[nodiscard]] std::uint16_t to_f16(double value);
// The same, to E4M3 and E2M1, which have no infinity: what is too large becomes the largest.
[[nodiscard]] std::uint8_t to_f8_e4m3(double value);
[[nodiscard]] std::uint8_t to_e2m1(double value);

// Types that one element at a time can be read as a number: F64 to BF16, the F8 types, integers.
[[nodiscard]] bool is_number(Dtype dtype);

// `value` as the nearest number of a plain float type: what storing it there would keep.
// Requires: is_plain_float(dtype).
[[nodiscard]] double rounded_to(Dtype dtype, double value);

// Reads out.size() elements. Requires: is_number(dtype), and bytes for as many.
// I64 and U64 beyond 2^53 are rounded.
void load_numbers(Dtype dtype, std::span<const std::byte> bytes, std::span<double> out);
// Writes them, rounded. Requires: is_plain_float(dtype), and room for as many.
void store_numbers(Dtype dtype, std::span<const double> values, std::span<std::byte> out);

}  // namespace gridscope::quant
