#pragma once

// A BF16 source and a 4-bit build of it, as large as is asked for: a few rows of both, repeated.
// The bytes are really there, so that reading them costs what reading weights costs.

#include <cstdint>
#include <filesystem>

namespace gridscope::test {

struct GridPairShape {
  std::uint64_t layers = 1;  // of one weight each
  std::uint64_t rows = 4096;
  std::uint64_t columns = 2816;
  enum class Build : std::uint8_t {
    kRepack,       // the levels of the source, steps rounded anew
    kRequantized,  // levels found again
  } build = Build::kRepack;
};

struct GridPair {
  std::filesystem::path source;  // the file, alone in its directory but for config.json
  std::filesystem::path build;   // likewise
  std::uint64_t bytes = 0;       // of both
};

// Writes `directory`/source and `directory`/build (compressed-tensors, groups of 32, BF16 scales).
// Memory does not grow with the shape. Requires: 64 divides rows, 32 divides columns.
GridPair write_grid_pair(const std::filesystem::path& directory, const GridPairShape& shape);

}  // namespace gridscope::test
