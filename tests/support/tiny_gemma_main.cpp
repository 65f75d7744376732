// tiny_gemma OUTPUT

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>

#include "support/tiny_gemma.hpp"

namespace gridscope::test {
namespace {

void write_all(const std::filesystem::path& output) {
  const TinyGemma model = make_tiny_gemma();
  std::filesystem::remove_all(output);
  const auto write = [&](const char* name, const TinyFile& file) {
    fmt::print("{}\n", file.write(output / name));
  };
  write("source", tiny_source(model));
  write("w4a16-ct", tiny_compressed_tensors(model));
  write("awq", tiny_awq(smoothed(model)));
  write("gptq", tiny_gptq(model, GptqVersion::kFirst));
  write("gguf", tiny_gguf(model));
  write("mlx", tiny_mlx(model));
}

}  // namespace
}  // namespace gridscope::test

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(
        stderr,
        "usage: tiny_gemma OUTPUT\n"
        "Writes a tiny model in the shape of Gemma 4 on an exact 4-bit grid below OUTPUT, and\n"
        "builds of it: compressed-tensors, AWQ with smoothing, GPTQ, GGUF and MLX.\n");
    return 2;
  }
  try {
    gridscope::test::write_all(argv[1]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tiny_gemma: {}\n", error.what());
    return 1;
  }
  return 0;
}
