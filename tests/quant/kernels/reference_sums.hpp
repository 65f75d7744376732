#pragma once

// The fused comparison next to the reference: the same counts and the same bits of every sum.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <bit>
#include <cstdint>
#include <string>

#include "quant/int4_pair.hpp"

namespace gridscope::test {

inline std::string describe_sums(const quant::ErrorSums& sums) {
  return fmt::format(
      "groups {}/{} identical, values {}, moved {}, saturated {}+{}, dead {} {} {}, zeros {}, "
      "non-finite {} {}, sums {} {} {} {} {}, worst {} at {},{}",
      sums.groups_identical, sums.groups, sums.values_identical, sums.moved, sums.saturated_low,
      sums.saturated_high, sums.dead_groups, sums.dead_in_both, sums.source_dead_groups,
      sums.zero_points_used, sums.build_non_finite, sums.source_non_finite, sums.abs_error,
      sums.squared_error, sums.squared_source, sums.squared_build, sums.product, sums.worst.error,
      sums.worst.row, sums.worst.column);
}

// NaN, which is no sum of finite numbers but may come of infinite errors, equals itself here.
inline bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (a != a && b != b);
}

inline bool same(const quant::ErrorSums& a, const quant::ErrorSums& b) {
  quant::ErrorSums counts_a = a;
  quant::ErrorSums counts_b = b;
  for (quant::ErrorSums* sums : {&counts_a, &counts_b}) {
    sums->abs_error = sums->squared_error = sums->squared_source = 0;
    sums->squared_build = sums->product = 0;
  }
  return counts_a == counts_b && same(a.abs_error, b.abs_error) &&
         same(a.squared_error, b.squared_error) && same(a.squared_source, b.squared_source) &&
         same(a.squared_build, b.squared_build) && same(a.product, b.product);
}

inline quant::ErrorSums reference_of(const Int4Pair& pair) {
  const auto bytes = pair.source_bytes();
  return quant::compare_rows(pair.layout(), pair.row_block(),
                             {.dtype = Dtype::kBF16, .bytes = bytes});
}

inline bool expect_same(const quant::ErrorSums& fused, const quant::ErrorSums& reference) {
  EXPECT_TRUE(same(fused, reference)) << describe_sums(fused) << "\nexpected\n"
                                      << describe_sums(reference);
  return same(fused, reference);
}

inline bool is_same_as_reference(const Int4Pair& pair, std::uint64_t gap = 0) {
  const auto bytes = pair.source_bytes();
  return expect_same(
      quant::compare_int4_bf16(pair.int4_rows(gap), {.dtype = Dtype::kBF16, .bytes = bytes}),
      reference_of(pair));
}

}  // namespace gridscope::test
