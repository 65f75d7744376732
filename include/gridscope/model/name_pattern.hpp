#pragma once

// Patterns over module names, as quantization configurations use them. They come from strangers, so
// they are matched by an automaton in time linear in the name, never by backtracking.

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/core/result.hpp"

namespace gridscope::model {

class NamePattern {
 public:
  // A Python regular expression under re.match: anchored at the start, free at the end. Understood:
  // literals, ".", classes, \d \w \s and their complements, groups, "|", * + ? {m,n} (also lazy),
  // "^" at the start, "$". Errors: kUnsupported for every other construct (look-around, references)
  // and for patterns that are malformed or too large.
  [[nodiscard]] static Result<NamePattern> regex(std::string_view text);

  // A shell pattern over the whole name: * ? [...] as fnmatch has them, "." and "*" without a
  // meaning for dots. Errors: kUnsupported when it is too large.
  [[nodiscard]] static Result<NamePattern> glob(std::string_view text);

  [[nodiscard]] bool matches(std::string_view name) const;

 private:
  friend class PatternCompiler;

  // The characters a position takes; the last one stands for the end of the name.
  static constexpr std::size_t kEnd = 256;
  using Symbols = std::bitset<kEnd + 1>;
  using Positions = std::vector<std::uint16_t>;

  struct Position {
    Symbols symbols;
    Positions follow;
    bool last = false;
  };

  std::vector<Position> positions_;
  Positions first_;
  bool matches_all_ = false;  // an empty match at the start is a match
  std::string required_;      // text that every match contains: a quick way to say no
};

}  // namespace gridscope::model
