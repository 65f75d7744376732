#include "gridscope/model/name_pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "gridscope/core/text.hpp"

// Glushkov's construction: every character of the pattern becomes a position; `first`, `last` and
// `follow` say which position may come first, may end a match, may come after which. Matching keeps
// the set of positions that may take the next character. "$" is a position that takes only the
// symbol for the end of the name.

namespace gridscope::model {
namespace {

// Generous for lists of module names joined by "|", and small enough to be harmless.
constexpr std::size_t kMaxPositions = 4'000;
constexpr std::size_t kMaxEdges = 400'000;
constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMaxRepeat = 100;
constexpr std::size_t kMaxSteps = 100'000;

void append(std::vector<std::uint16_t>& to, const std::vector<std::uint16_t>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// The longest text that a simple pattern's matches must contain: literals outside groups, classes
// and alternatives, and not made optional.
std::string required_text(std::string_view pattern) {
  if (pattern.find_first_of("|([{") != std::string_view::npos) return {};
  std::string longest;
  std::string run;
  const auto end_run = [&] {
    if (run.size() > longest.size()) longest = run;
    run.clear();
  };
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const bool escaped_mark = c == '\\' && i + 1 < pattern.size() && pattern[i + 1] == '.';
    if (escaped_mark) {
      run += pattern[++i];
    } else if (c == '*' || c == '?') {
      if (!run.empty()) run.pop_back();
      end_run();
    } else if (c == '\\') {
      ++i;
      end_run();
    } else if (c == '.' || c == '+' || c == '^' || c == '$') {
      end_run();
    } else {
      run += c;
    }
  }
  end_run();
  return longest;
}

}  // namespace

// Reads the text once and builds the automaton as it goes.
class PatternCompiler {
 public:
  explicit PatternCompiler(std::string_view text) : text_(text) {}

  Result<NamePattern> compile() {
    GRIDSCOPE_TRY(const Fragment whole, alternation(0));
    if (at_ != text_.size()) return unsupported("an unmatched ')'");
    for (const std::uint16_t position : whole.last) pattern_.positions_[position].last = true;
    pattern_.first_ = whole.first;
    pattern_.matches_all_ = whole.nullable;
    pattern_.required_ = required_text(text_);
    return std::move(pattern_);
  }

 private:
  using Symbols = NamePattern::Symbols;
  using Positions = NamePattern::Positions;

  struct Fragment {
    Positions first;
    Positions last;
    bool nullable = true;
  };
  struct Repeat {
    std::size_t least = 1;
    std::size_t most = 1;
    bool unbounded = false;
  };

  [[nodiscard]] tl::unexpected<Error> unsupported(std::string_view what) const {
    return fail(ErrorCode::kUnsupported,
                fmt::format("pattern {}: {} at character {}", quote(text_), what, at_ + 1));
  }

  [[nodiscard]] bool done() const { return at_ == text_.size(); }
  [[nodiscard]] bool next_is(char c) const { return !done() && text_[at_] == c; }
  bool take(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }

  Result<Fragment> alternation(std::size_t depth) {
    const bool leading = leading_;
    GRIDSCOPE_TRY(Fragment all, concatenation(depth));
    while (take('|')) {
      leading_ = leading;
      GRIDSCOPE_TRY(const Fragment other, concatenation(depth));
      append(all.first, other.first);
      append(all.last, other.last);
      all.nullable |= other.nullable;
    }
    return all;
  }

  Result<Fragment> concatenation(std::size_t depth) {
    Fragment all;
    while (!done() && !next_is('|') && !next_is(')')) {
      GRIDSCOPE_TRY(const Fragment item, repeated(depth));
      GRIDSCOPE_CHECK(join(all, item));
    }
    return all;
  }

  // Appends `item` to `all`.
  Status join(Fragment& all, const Fragment& item) {
    GRIDSCOPE_CHECK(connect(all.last, item.first));
    if (all.nullable) append(all.first, item.first);
    if (item.nullable) {
      append(all.last, item.last);
    } else {
      all.last = item.last;
    }
    all.nullable &= item.nullable;
    return {};
  }

  Status connect(const Positions& from, const Positions& to) {
    edges_ += from.size() * to.size();
    if (edges_ > kMaxEdges) return unsupported("more connections than the limit");
    for (const std::uint16_t position : from) append(pattern_.positions_[position].follow, to);
    return {};
  }

  // An atom and its quantifier. A counted one is read again for every copy.
  Result<Fragment> repeated(std::size_t depth) {
    if (++steps_ > kMaxSteps) return unsupported("a pattern larger than the limit");
    const std::size_t start = at_;
    GRIDSCOPE_TRY(Fragment atom, read_atom(depth));
    GRIDSCOPE_TRY(const std::optional<Repeat> repeat, quantifier());
    if (!repeat) return atom;
    const std::size_t end = at_;
    Fragment all;
    for (std::size_t i = 0; i < std::max<std::size_t>(repeat->most, 1); ++i) {
      if (i > 0) {
        at_ = start;
        GRIDSCOPE_TRY(atom, read_atom(depth));
      }
      if (repeat->unbounded && i + 1 == repeat->most)
        GRIDSCOPE_CHECK(connect(atom.last, atom.first));
      if (i >= repeat->least) atom.nullable = true;
      GRIDSCOPE_CHECK(join(all, atom));
    }
    at_ = end;
    if (repeat->most == 0) return Fragment{};
    return all;
  }

  Result<std::optional<Repeat>> quantifier() {
    std::optional<Repeat> repeat;
    if (take('*')) {
      repeat = Repeat{.least = 0, .most = 1, .unbounded = true};
    } else if (take('+')) {
      repeat = Repeat{.least = 1, .most = 1, .unbounded = true};
    } else if (take('?')) {
      repeat = Repeat{.least = 0, .most = 1};
    } else if (next_is('{')) {
      GRIDSCOPE_TRY(repeat, counted());
    }
    if (!repeat) return repeat;
    take('?');  // a lazy quantifier matches the same names
    if (next_is('*') || next_is('+') || next_is('?')) return unsupported("a second quantifier");
    return repeat;
  }

  // "{m}", "{m,}", "{,n}", "{m,n}".
  Result<std::optional<Repeat>> counted() {
    ++at_;
    const std::optional<std::size_t> least = number();
    Repeat repeat{.least = least.value_or(0), .most = least.value_or(0)};
    if (take(',')) {
      const std::optional<std::size_t> most = number();
      repeat.unbounded = !most;
      repeat.most = most.value_or(std::max<std::size_t>(repeat.least, 1));
    } else if (!least) {
      return unsupported("a brace that is no repetition");
    }
    if (!take('}')) return unsupported("a brace that is no repetition");
    if (repeat.most > kMaxRepeat || repeat.most < repeat.least) {
      return unsupported("a repetition out of range");
    }
    return std::optional(repeat);
  }

  std::optional<std::size_t> number() {
    std::optional<std::size_t> value;
    while (!done() && text_[at_] >= '0' && text_[at_] <= '9') {
      const auto digit = static_cast<std::size_t>(text_[at_++] - '0');
      value = std::min(value.value_or(0) * 10 + digit, kMaxRepeat + 1);
    }
    return value;
  }

  Result<Fragment> read_atom(std::size_t depth) {
    const bool leading = std::exchange(leading_, false);
    const char c = text_[at_];
    if (c == '(') return group(depth, leading);
    if (c == '^') {
      if (!leading) return unsupported("a '^' that is not at the start");
      leading_ = true;
      ++at_;
      return Fragment{};
    }
    if (c == '*' || c == '+' || c == '?') return unsupported("a quantifier with nothing before it");
    ++at_;
    if (c == '$') return single(Symbols().set(NamePattern::kEnd));
    if (c == '.') return single(any());
    if (c == '[') return character_class();
    return c == '\\' ? escaped() : literal(c);
  }

  Result<Fragment> group(std::size_t depth, bool leading) {
    if (depth == kMaxDepth) return unsupported("groups nested too deeply");
    ++at_;
    if (take('?') && !take(':')) return unsupported("a special group");
    leading_ = leading;
    GRIDSCOPE_TRY(Fragment inner, alternation(depth + 1));
    leading_ = false;
    if (!take(')')) return unsupported("an unclosed group");
    return inner;
  }

  Result<Fragment> escaped() {
    if (done()) return unsupported("a backslash with nothing after it");
    const char c = text_[at_++];
    if (const auto shorthand = named_class(c)) return single(*shorthand);
    if (c == 'Z') return single(Symbols().set(NamePattern::kEnd));
    const bool alphanumeric =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (alphanumeric) return unsupported("an escape that is not understood");
    return literal(c);
  }

  static Symbols any() { return Symbols().set().reset(NamePattern::kEnd); }

  static std::optional<Symbols> named_class(char c) {
    Symbols symbols;
    const auto add = [&](unsigned char from, unsigned char to) {
      for (std::size_t i = from; i <= to; ++i) symbols.set(i);
    };
    switch (c) {
      case 'd':
      case 'D':
        add('0', '9');
        break;
      case 'w':
      case 'W':
        add('0', '9');
        add('a', 'z');
        add('A', 'Z');
        add('_', '_');
        break;
      case 's':
      case 'S':
        add('\t', '\r');
        add(' ', ' ');
        break;
      default:
        return std::nullopt;
    }
    const bool complement = c == 'D' || c == 'W' || c == 'S';
    return complement ? any() & ~symbols : symbols;
  }

  Result<Fragment> character_class() {
    const bool negated = take('^');
    Symbols symbols;
    for (bool first = true; first || !next_is(']'); first = false) {
      if (done()) return unsupported("an unclosed class");
      GRIDSCOPE_CHECK(class_item(symbols));
    }
    ++at_;
    return single(negated ? any() & ~symbols : symbols);
  }

  Status class_item(Symbols& symbols) {
    char from = text_[at_++];
    if (from == '\\') {
      if (done()) return unsupported("an unclosed class");
      from = text_[at_++];
      if (const auto shorthand = named_class(from)) {
        symbols |= *shorthand;
        return {};
      }
    }
    char to = from;
    const bool range = next_is('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']';
    if (range) {
      to = text_[at_ + 1];
      at_ += 2;
    }
    const auto low = static_cast<unsigned char>(from);
    const auto high = static_cast<unsigned char>(to);
    if (low > high) return unsupported("a range that runs backwards");
    for (std::size_t i = low; i <= high; ++i) symbols.set(i);
    return {};
  }

  Result<Fragment> single(const Symbols& symbols) {
    if (pattern_.positions_.size() == kMaxPositions) return unsupported("more than the limit");
    const auto position = static_cast<std::uint16_t>(pattern_.positions_.size());
    pattern_.positions_.push_back({.symbols = symbols, .follow = {}, .last = false});
    return Fragment{.first = {position}, .last = {position}, .nullable = false};
  }

  Result<Fragment> literal(char c) { return single(Symbols().set(static_cast<unsigned char>(c))); }

  std::string_view text_;
  std::size_t at_ = 0;
  bool leading_ = true;
  NamePattern pattern_;
  std::size_t edges_ = 0;
  std::size_t steps_ = 0;
};

Result<NamePattern> NamePattern::regex(std::string_view text) {
  return PatternCompiler(text).compile();
}

Result<NamePattern> NamePattern::glob(std::string_view text) {
  std::string regex;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t close = text[i] == '[' ? text.find(']', i + 2) : std::string_view::npos;
    if (text[i] == '*') {
      regex += ".*";
    } else if (text[i] == '?') {
      regex += '.';
    } else if (close != std::string_view::npos) {
      std::string inside(text.substr(i + 1, close - i - 1));
      if (inside.front() == '!') inside.front() = '^';
      regex += "[" + inside + "]";
      i = close;
    } else if (std::string_view("\\.^$+(){}|[]").find(text[i]) != std::string_view::npos) {
      regex += '\\';
      regex += text[i];
    } else {
      regex += text[i];
    }
  }
  return NamePattern::regex(regex + "$");
}

bool NamePattern::matches(std::string_view name) const {
  if (matches_all_) return true;
  if (name.find(required_) == std::string_view::npos) return false;
  Positions active = first_;
  Positions next;
  std::vector<std::size_t> seen(positions_.size(), 0);
  for (std::size_t step = 0; step <= name.size(); ++step) {
    const std::size_t symbol = step == name.size() ? kEnd : static_cast<unsigned char>(name[step]);
    next.clear();
    for (const std::uint16_t at : active) {
      const Position& position = positions_[at];
      if (!position.symbols.test(symbol)) continue;
      if (position.last) return true;
      for (const std::uint16_t after : position.follow) {
        if (std::exchange(seen[after], step + 1) != step + 1) next.push_back(after);
      }
    }
    std::swap(active, next);
  }
  return false;
}

}  // namespace gridscope::model
