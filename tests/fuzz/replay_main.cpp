// Runs a fuzz target over files: each whole, and each small one cut short at every byte.
//
//   NAME_replay DIRECTORY

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "fuzz/fuzz_target.hpp"

namespace {

constexpr std::size_t kSmall = 4096;

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || !std::filesystem::is_directory(argv[1])) {
    std::cerr << "usage: " << argv[0] << " DIRECTORY\n";
    return 2;
  }
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string input(std::istreambuf_iterator<char>(in), {});
    run(input);
    for (std::size_t length = 0; length < input.size() && input.size() <= kSmall; ++length) {
      run(input.substr(0, length));
    }
    ++files;
  }
  std::cout << files << " files\n";
  return files > 0 ? 0 : 1;
}
