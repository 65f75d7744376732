#pragma once

// Sums and products of doubles that may still be rounded once, to any type of at most 51
// significant bits, as if they had been exact: what does not fit is cut off and the last bit set,
// which says "not quite" to the rounding that follows (Boldo and Melquiond, 2008).

namespace gridscope::quant {

// a + b. Requires: finite, and no overflow.
[[nodiscard]] double sum_to_odd(double a, double b);
// a * b. Requires: finite, and neither overflow nor a result below 2^-960.
[[nodiscard]] double product_to_odd(double a, double b);

}  // namespace gridscope::quant
