#pragma once

// A command line as the words that main gets.

#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "gridscope/cli/parse.hpp"

namespace gridscope::cli {

inline Result<Command> parse_words(const std::vector<std::string>& words) {
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  return parse_command_line(pointers);
}

// Throws when the words do not make a verb's arguments: a test with a mistake in it.
inline Arguments arguments_of(const std::vector<std::string>& words) {
  const auto command = parse_words(words);
  if (!command) throw std::runtime_error(describe(command.error()));
  return std::get<Arguments>(*command);
}

}  // namespace gridscope::cli
