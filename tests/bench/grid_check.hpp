#pragma once

// Grid checks of generated pairs, end to end: from disk, over HTTP, next to numpy, and how much
// memory they take.

#include <cstdint>
#include <filesystem>

namespace gridscope::bench {

struct GridCheckCases {
  std::filesystem::path directory;  // for the pairs
  int runs = 5;
  std::uint64_t layers = 30;          // of 29.6 MB on both sides
  std::uint64_t layers_of_large = 0;  // of the pair whose memory is measured; 0: not
};

// Prints its lines. False when a case failed to run.
[[nodiscard]] bool bench_grid_check(const GridCheckCases& cases);

}  // namespace gridscope::bench
