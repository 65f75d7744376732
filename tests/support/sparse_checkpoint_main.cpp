// sparse_checkpoint SOURCE... OUTPUT

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <span>

#include "support/sparse_checkpoint.hpp"

int main(int argc, char** argv) {
  const std::span arguments(argv, static_cast<std::size_t>(argc));
  if (arguments.size() < 3) {
    fmt::print(stderr,
               "usage: sparse_checkpoint SOURCE... OUTPUT\n"
               "Writes OUTPUT/<name of SOURCE>/*.safetensors of true size, without data, from the\n"
               "header texts in SOURCE. See fixtures/gemma-4/README.md.\n");
    return 2;
  }
  try {
    for (const char* source : arguments.subspan(1, arguments.size() - 2)) {
      const auto made = gridscope::test::write_sparse_checkpoint(source, arguments.back());
      fmt::print("{}: {} files, {} tensors, {} bytes\n", made.directory.string(), made.files,
                 made.tensors, made.file_bytes);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "sparse_checkpoint: {}\n", error.what());
    return 1;
  }
  return 0;
}
