#pragma once

// What is found of the weights of a row, in parts of 32 and in units (int4_units.hpp).

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gridscope::quant {

// Sums over the weights of parts.
struct PartSums {
  std::vector<std::array<std::int32_t, 4>> products;  // |e|, e^2, v^2, v y
  std::vector<std::int16_t> largest;                  // error, where it may be the worst

  explicit PartSums(std::size_t count) : largest(count) {}

  // Of the products; until then there is none.
  void make_room() { products.resize(largest.size()); }

  // y^2, as y = v + e and v y = v^2 + v e. 2^31 where all are 8 * 2^10.
  [[nodiscard]] std::int64_t squared_build(std::size_t part) const {
    const auto& [error, squared_error, squared_source, product] = products[part];
    return 2 * std::int64_t{product} - squared_source + squared_error;
  }
};

// Of the parts of one vector.
struct BlockCounts {
  std::uint32_t identical = 0;
  std::uint32_t moved = 0;
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  bool fits = false;
  bool kept = false;   // its levels: all but `worse` is in KeptTotals
  bool worse = false;  // an error is larger than the worst so far
};

}  // namespace gridscope::quant
