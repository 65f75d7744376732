// grid_pair DIRECTORY [LAYERS [ROWS]]     write a source and a build of it below DIRECTORY

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "support/grid_pair.hpp"

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    fmt::print(stderr, "usage: grid_pair DIRECTORY [LAYERS [ROWS]]\n");
    return 2;
  }
  try {
    gridscope::test::GridPairShape shape;
    if (argc > 2) shape.layers = std::strtoull(argv[2], nullptr, 10);
    if (argc > 3) shape.rows = std::strtoull(argv[3], nullptr, 10);
    const auto pair = gridscope::test::write_grid_pair(argv[1], shape);
    fmt::print("{} bytes\n", pair.bytes);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "grid_pair: {}\n", error.what());
    return 1;
  }
}
