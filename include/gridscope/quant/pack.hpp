#pragma once

// From levels and scales to stored bytes: the other direction, for tests, repacks and fixtures. A
// packer writes what the format's own writer would for exactly these codes; it never chooses them.

#include <cstdint>
#include <span>
#include <vector>

#include "gridscope/core/result.hpp"
#include "gridscope/quant/weight_spec.hpp"

namespace gridscope::quant {

// A matrix of integer levels with a scale for each group: value = (level - zero) * scale.
struct LeveledWeight {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint32_t bits = 4;
  std::uint64_t group_size = 32;          // divides columns
  std::vector<std::int16_t> levels = {};  // rows x columns, signed: a code less 2^(bits-1)
  std::vector<double> scales = {};        // rows x groups
  std::vector<std::int16_t> zeros = {};   // rows x groups, in levels; empty: symmetric
  // The group of each column where columns are not in the order of their groups; else empty.
  std::vector<std::uint32_t> group_of_column = {};
};

// A spec with every tensor and all of its data, ready for make_decoder; the data of companions that
// are not read whole is there too. `like` gives scheme, format, the choices of how to read, and in
// its tensors the types to write: of scales (one of shape [1] asks for a single one), of plain or
// 8-bit float codes, of the words of GPTQ, I8 for zero points that are not to be packed; FP8 blocks
// have `like.block`.
// Everything else is filled in. Errors: kInvalidArgument when the format cannot hold such codes
// (levels out of range, a zero point in a symmetric format, a width or group size it does not have,
// scales that its type cannot hold exactly); kUnsupported for schemes without a packer.
[[nodiscard]] Result<WeightSpec> pack(const LeveledWeight& weight, const WeightSpec& like);

}  // namespace gridscope::quant
