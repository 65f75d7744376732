#pragma once

// Just enough reading of C++ for the rules of the house: no parser, but comments, strings and
// preprocessor lines are told from code.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gridscope::test {

struct SourceFile {
  std::string path;  // from the top of the source tree: "src/core/json.cpp"
  std::string text;

  // "core" of src/core/json.cpp and include/gridscope/core/json.hpp; empty elsewhere.
  [[nodiscard]] std::string room() const;
};

struct Include {
  std::string name;  // between the quotes or brackets
  enum class Kind : std::uint8_t { kQuoted, kAngled } kind;
};

// All files below `directory` whose name ends with one of `suffixes`, in order of path.
[[nodiscard]] std::vector<SourceFile> read_sources(const std::filesystem::path& top,
                                                   std::string_view directory,
                                                   const std::vector<std::string_view>& suffixes);

[[nodiscard]] std::vector<Include> includes_of(std::string_view text);

// The text without comments, preprocessor lines and the insides of string literals.
[[nodiscard]] std::string code_of(std::string_view text);

// Names of functions that return a Result or a Status and may be called without looking at it.
[[nodiscard]] std::vector<std::string> discardable_results(std::string_view header);

// What prints in this text: "std::cout", "printf", ...
[[nodiscard]] std::vector<std::string> printing_calls(std::string_view text);

}  // namespace gridscope::test
