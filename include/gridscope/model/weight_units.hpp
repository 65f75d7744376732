#pragma once

// Two lists of weights taken apart until the same units stand on both sides: stacks into matrices,
// fused projections into single ones. A weight that the other side stores alike stays whole.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "gridscope/core/result.hpp"
#include "gridscope/model/weight_matching.hpp"
#include "gridscope/model/weights.hpp"

namespace gridscope::model {

// Rows of one weight that have a name of their own.
struct WeightUnit {
  std::uint32_t weight = 0;  // into the list
  RowSelection rows;
  std::string label = {};  // "[3].up"; empty for a whole weight
};
using WeightUnits = std::map<std::string, WeightUnit, std::less<>>;  // by canonical name

// What is known of a weight's size: that of its shape, or where headers do not tell it, what
// follows from the inputs of its counterpart.
struct Extent {
  std::uint64_t rows = 0;  // 0 when nobody tells
  std::uint64_t columns = 0;
  std::uint64_t padding = 0;  // of the columns
};

struct WeightSide {
  std::span<const Weight> weights;
  std::vector<Extent> extents;  // of each
  WeightUnits units;
};

// In which order the rows of a fused gate and up projection stand.
enum class GateUpOrder : std::uint8_t { kHalves, kAlternating };

struct WeightSides {
  WeightSide source;
  WeightSide build;
};

// Errors: kInvalidArgument when two weights or units of one side have the same name, naming both.
[[nodiscard]] Result<WeightSides> split_alike(std::span<const Weight> source,
                                              std::span<const Weight> build, GateUpOrder order);

}  // namespace gridscope::model
