#include "gridscope/cli/help.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gridscope::cli {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kNameColumn = 2;
constexpr std::size_t kTextColumn = 28;

// Appends `text` word by word, every line after the first indented, none longer than kWidth unless
// a single word is. `column` is where the first word goes.
void append_wrapped(std::string& out, std::string_view text, std::size_t column,
                    std::size_t indent) {
  bool at_start = true;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (!at_start && column + 1 + word.size() > kWidth) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
      at_start = true;
    }
    if (!at_start) out += ' ';
    column += word.size() + (at_start ? 0 : 1);
    out += word;
    at_start = false;
  }
  out += '\n';
}

void append_term(std::string& out, std::string_view name, std::string_view meaning) {
  std::string head = std::string(kNameColumn, ' ') + std::string(name);
  if (head.size() + 2 > kTextColumn) {
    out += head + '\n';
    head.clear();
  }
  head.resize(kTextColumn, ' ');
  out += head;
  append_wrapped(out, meaning, kTextColumn, kTextColumn);
}

void append_terms(std::string& out, std::string_view title, std::span<const Term> terms) {
  out += fmt::format("\n{}:\n", title);
  for (const Term& term : terms) append_term(out, term.name, term.meaning);
}

void append_options(std::string& out, std::string_view title, std::span<const OptionSpec> options) {
  if (options.empty()) return;
  out += fmt::format("\n{}:\n", title);
  for (const OptionSpec& option : options) {
    const bool indented = !option.is_positional() && option.letter == 0;
    append_term(out, (indented ? "    " : "") + spelling(option), explained(option));
  }
}

void append_groups(std::string& out, std::span<const OptionGroup> groups) {
  for (const OptionGroup& group : groups) append_options(out, group.title, group.options);
}

void append_examples(std::string& out, std::span<const Example> examples) {
  out += "\nExamples:\n";
  for (const Example& example : examples) {
    out += fmt::format("  # {}\n  $ {}\n", example.purpose, example.command);
  }
}

}  // namespace

std::string usage(const VerbSpec& verb) {
  std::string line = fmt::format("{} {} [OPTIONS]", program().name, verb.name);
  for (const OptionSpec& positional : verb.positionals) {
    line += positional.choices.empty() ? fmt::format(" {}", positional.name)
                                       : fmt::format(" {}", fmt::join(positional.choices, "|"));
    if (positional.occurs == Occurs::kRepeatedly) line += "...";
  }
  return line;
}

std::string program_help() {
  const ProgramSpec& spec = program();
  std::string out;
  append_wrapped(out, spec.description, 0, 0);
  out += fmt::format("\nUsage: {} COMMAND [OPTIONS] ...\n\nCommands:\n", spec.name);
  for (const VerbSpec& verb : spec.verbs) append_term(out, verb.name, verb.summary);
  append_term(out, "help", "Say what a command does and takes");
  append_terms(out, "MODEL is one of", spec.references);
  append_groups(out, spec.groups.last(1));
  append_terms(out, "Environment", spec.environment);
  out += fmt::format("\n{} COMMAND --help says what a command does and takes.\n", spec.name);
  return out;
}

std::string verb_help(const VerbSpec& verb) {
  std::string out = fmt::format("Usage: {}\n\n", usage(verb));
  append_wrapped(out, verb.description, 0, 0);
  append_options(out, "Arguments", verb.positionals);
  append_options(out, "Options", verb.options);
  append_groups(out, verb.groups);
  append_terms(out, "Exit codes", verb.exit_codes);
  append_examples(out, verb.examples);
  return out;
}

std::string version_text() {
  return fmt::format("{} {}\n", program().name, program().version);
}

}  // namespace gridscope::cli
