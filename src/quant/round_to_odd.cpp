#include "round_to_odd.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// The error of a rounded sum or product is a double too. When it is not zero the exact result lies
// between two neighbours of which one ends in 1: the rounded one, or the next on the error's side.

namespace gridscope::quant {
namespace {

double to_odd(double rounded, double error) {
  if (error == 0.0 || (std::bit_cast<std::uint64_t>(rounded) & 1U) != 0) return rounded;
  return std::nextafter(rounded, std::copysign(std::numeric_limits<double>::infinity(), error));
}

}  // namespace

double sum_to_odd(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  return to_odd(sum, error);
}

double product_to_odd(double a, double b) {
  const double product = a * b;
  return to_odd(product, std::fma(a, b, -product));
}

}  // namespace gridscope::quant
