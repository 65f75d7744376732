#pragma once

// The order in which the weights of one group are added up, for all who add them up.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "gridscope/quant/error_sums.hpp"

namespace gridscope::quant {

inline constexpr std::size_t kLanes = 8;
using Lanes = std::array<double, kLanes>;

[[nodiscard]] inline double sum_of(const Lanes& lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// The five sums of one group, lane by lane.
struct GroupLanes {
  Lanes abs_error = {};
  Lanes squared_error = {};
  Lanes squared_source = {};
  Lanes squared_build = {};
  Lanes product = {};

  // Adds the group to the sums of its row.
  void add_to(ErrorSums& row) const {
    row.abs_error += sum_of(abs_error);
    row.squared_error += sum_of(squared_error);
    row.squared_source += sum_of(squared_source);
    row.squared_build += sum_of(squared_build);
    row.product += sum_of(product);
  }
};

// One group of both sides.
struct GroupPair {
  std::span<const double> build;     // dequantized and rounded to the source's type
  std::span<const double> source;    // as many
  std::optional<double> scale = {};  // none when the build is plain
  std::uint64_t row = 0;
  std::uint64_t first_column = 0;
  std::span<const std::uint32_t> columns = {};  // of each weight, where they are no neighbours
};

// Counts and adds everything but saturation and zero points. A group of no weights is none.
void add_group(const GroupPair& group, ErrorSums& row);

}  // namespace gridscope::quant
