#include "int4_groups.hpp"

#include <gmock/gmock.h>

#include "quant/int4_pair.hpp"

namespace gridscope::quant {
namespace {

TEST(Int4Groups, AreTheReferenceGroupByGroup) {
  for (const bool zero_points : {false, true}) {
    const auto pair = test::make_pair(
        {.rows = 1, .columns = 256, .build = test::Build::kRequantized, .zero_points = zero_points},
        3);
    const auto bytes = pair.source_bytes();
    const SourceRows source{.dtype = Dtype::kBF16, .bytes = bytes};
    const Int4Rows build = pair.int4_rows();
    ErrorSums sums;
    add_int4_groups(build, source, 0, {.first = 0, .count = 3}, sums);
    add_int4_groups(build, source, 0, {.first = 3, .count = 5}, sums);
    EXPECT_EQ(sums, compare_rows(pair.layout(), pair.row_block(), source));
  }
}

TEST(Int4Groups, CountSaturationAtBothEnds) {
  auto pair = test::make_pair({.rows = 1, .columns = 32}, 3);
  std::ranges::fill(pair.codes, std::uint8_t{8});
  pair.codes[4] = 0;
  pair.codes[5] = 15;
  pair.codes[31] = 15;
  const auto bytes = pair.source_bytes();
  const Int4Rows build = pair.int4_rows();
  ErrorSums sums;
  add_int4_groups(build, {.dtype = Dtype::kBF16, .bytes = bytes}, 0, {.first = 0, .count = 1},
                  sums);
  EXPECT_EQ(sums.saturated_low, 1);
  EXPECT_EQ(sums.saturated_high, 2);
}

}  // namespace
}  // namespace gridscope::quant
