#pragma once

// Build against source, weight by weight, as counters and sums that can be merged. Every sum is in
// double and in one fixed order, whatever the CPU: a group's weights go to eight lanes by their
// position in the group modulo eight, lane l of a group is added up in order of position, the lanes
// are added as ((0+4)+(2+6)) + ((1+5)+(3+7)), groups are added in order within the row, rows in
// order within the tile, tiles in order.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "gridscope/core/dtype.hpp"
#include "gridscope/quant/row_block.hpp"
#include "gridscope/quant/weight_decoder.hpp"

namespace gridscope::quant {

struct WorstError {
  double error = -1.0;  // |rounded build value - source|; negative: none yet
  std::uint64_t row = 0;
  std::uint64_t column = 0;

  friend bool operator==(const WorstError&, const WorstError&) = default;
};

// Definitions: y is the exact dequantized value D rounded once to the source's type, v the source,
// e = y - v rounded to float (exact but for weights 2^16 apart), s the build's scale.
struct ErrorSums {
  std::uint64_t weights = 0;
  std::uint64_t groups = 0;
  std::uint64_t groups_identical = 0;  // y == v as numbers, all over the group
  std::uint64_t values_identical = 0;  // y == v as numbers: -0 equals +0
  std::uint64_t moved = 0;             // |e| / |s| > 0.5, in real numbers; s = 0 and e != 0 counts
  std::uint64_t saturated_low = 0;     // lowest level of the format; plain weights have none
  std::uint64_t saturated_high = 0;
  std::uint64_t dead_groups = 0;         // build groups with all values zero
  std::uint64_t dead_in_both = 0;        // and the source too
  std::uint64_t source_dead_groups = 0;  // source groups (of the build's layout) all zero
  std::uint64_t zero_points_used = 0;    // groups whose zero point is not the middle
  // y is NaN or infinite; likewise v. Such weights are in the counts above but never moved, and in
  // none of what follows.
  std::uint64_t build_non_finite = 0;
  std::uint64_t source_non_finite = 0;
  double abs_error = 0.0;       // sum |e|
  double squared_error = 0.0;   // sum e^2
  double squared_source = 0.0;  // sum v^2
  double squared_build = 0.0;   // sum y^2
  double product = 0.0;         // sum v y
  WorstError worst = {};        // of the largest the one in the first row, then column

  // Adds what comes after this in order.
  void add(const ErrorSums& later);

  friend bool operator==(const ErrorSums&, const ErrorSums&) = default;
};

// Rows of the source as they are stored, or decoded to numbers of its type.
struct SourceRows {
  Dtype dtype = Dtype::kBF16;        // the type that build values are rounded to
  std::span<const std::byte> bytes;  // rows x columns of dtype, in order
};

// Any build, by its decoded rows: block.rows rows against as many of the source. Row numbers in
// `worst` count from block.first_row.
// Requires: source.bytes hold block.rows x block.columns numbers; is_plain_float(source.dtype).
// A weight with no scale (plain) is never moved.
[[nodiscard]] ErrorSums compare_rows(const WeightLayout& layout, const RowBlock& block,
                                     const SourceRows& source);

// What a comparison notes on its way of groups whose levels the build kept, for settle_grids().
struct KeptLevels {
  static constexpr std::uint8_t kUnknown = 0;
  static constexpr std::uint8_t kOpen = 0xff;  // their levels leave more than one grid
  // Of other groups: in these bits q, when their largest weight is at level q or -q, and above them
  // where the build's scale lies among the feasible steps.
  static constexpr std::uint8_t kLevelBits = 0xf;
  enum class Scale : std::uint8_t { kFeasible, kSmaller, kLarger };
  [[nodiscard]] static constexpr std::uint8_t settled(unsigned top_level, Scale scale) {
    return static_cast<std::uint8_t>(top_level | static_cast<unsigned>(scale) << 4U);
  }

  std::vector<std::uint8_t> groups = {};  // rows x groups, or empty: all unknown
};

// The same sums and counts, bit for bit, for a build of 4-bit codes against BF16, without ever
// writing the dequantized weights: unpack, scale, round, compare, add up in registers.
// The first form leaves `worst` as it is where no error is larger than `known_worst`, that of an
// earlier comparison or -1.
// Requires: source.dtype is BF16, source.bytes hold all rows; build.group_size is a multiple of 16.
[[nodiscard]] ErrorSums compare_int4_bf16(const Int4Rows& build, const SourceRows& source,
                                          double known_worst, KeptLevels& kept);
[[nodiscard]] ErrorSums compare_int4_bf16(const Int4Rows& build, const SourceRows& source);

}  // namespace gridscope::quant
