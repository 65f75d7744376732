#pragma once

// What the command line offers, declared once. Parsing, --help, shell completion and the man page
// are all made from this table, so that none of them can say what another does not.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "gridscope/core/observer.hpp"
#include "gridscope/core/result.hpp"

namespace gridscope::cli {

class Arguments;

// What an option's value must look like, and what completion offers for it.
enum class ValueKind : std::uint8_t {
  kFlag,       // no value
  kText,       // anything
  kChoice,     // one of `choices`
  kCount,      // a whole number, minimum to maximum
  kFraction,   // a number from 0 to 1
  kReal,       // a number
  kSize,       // bytes, minimum to maximum, a unit allowed: 500MB, 2GiB
  kSeconds,    // seconds with up to three decimals; kept as milliseconds
  kProxy,      // [scheme://]host[:port]; may hold a password, so it is never shown
  kFile,       // a path
  kDirectory,  // a path of a directory
  kModel,      // a reference: a path, an id, a URL
};

// How often an option or a positional argument may be given.
enum class Occurs : std::uint8_t {
  kOnce,        // a positional argument must be
  kRepeatedly,  // any number of times; of positional arguments only the last one
};

struct OptionSpec {
  static constexpr std::uint64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

  std::string_view name;  // "format" for --format; of a positional argument "MODEL"
  char letter = 0;        // 'v' for -v
  ValueKind kind = ValueKind::kFlag;
  std::string_view value_name = {};  // "FILE"; empty for flags and positional arguments
  std::string_view help;             // a phrase without a full stop at its end
  std::span<const std::string_view> choices = {};
  std::string_view fallback = {};  // the value when none is given, as one would write it
  Occurs occurs = Occurs::kOnce;
  std::uint64_t minimum = 1;
  std::uint64_t maximum = kUnbounded;
  // A flag that is short for another option with a fixed value: --json for --format json.
  std::string_view means_option = {};
  std::string_view means_value = {};

  // Positional arguments are named in capitals, as they appear in the usage line.
  [[nodiscard]] constexpr bool is_positional() const { return name[0] >= 'A' && name[0] <= 'Z'; }
};

struct OptionGroup {
  std::string_view title;
  std::span<const OptionSpec> options;
};

struct Example {
  std::string_view command;
  std::string_view purpose;
};

// A name with its explanation: an exit code, an environment variable, a form of MODEL.
struct Term {
  std::string_view name;
  std::string_view meaning;
};

// What a verb hands back: the text for standard output or --output, and the exit code.
struct Answer {
  std::string text;
  int exit_code = 0;
  std::string failures = {};  // what makes it 1, as a count: "2 errors"
};

// What a verb gets besides its arguments.
struct Surroundings {
  Observer& observer;
  std::stop_token stop = {};
};

struct VerbSpec {
  std::string_view name;
  std::string_view summary;  // one line without a full stop
  std::string_view description;
  std::span<const OptionSpec> positionals;
  std::span<const OptionSpec> options;
  std::span<const OptionGroup> groups;  // those of the shared options that it heeds and takes
  std::span<const Example> examples;
  std::span<const Term> exit_codes;
  Result<Answer> (*run)(const Arguments&, const Surroundings&);
};

struct ProgramSpec {
  std::string_view name;
  std::string_view version;
  std::string_view summary;
  std::string_view description;
  std::span<const VerbSpec> verbs;
  std::span<const OptionGroup> groups;  // taken before and after the verbs that heed them
  std::span<const Term> references;     // the forms of MODEL
  std::span<const Term> environment;
};

[[nodiscard]] const ProgramSpec& program();

// Null when there is none of that name.
[[nodiscard]] const VerbSpec* find_verb(std::string_view name);

// Calls visit(option) for the verb's positional arguments, its options and every shared option.
template <typename Visit>
void for_each_option(const VerbSpec& verb, const Visit& visit) {
  for (const OptionSpec& option : verb.positionals) visit(option);
  for (const OptionSpec& option : verb.options) visit(option);
  for (const OptionGroup& group : program().groups) {
    for (const OptionSpec& option : group.options) visit(option);
  }
}

// "--output FILE", "-v, --verbose", "MODEL".
[[nodiscard]] std::string spelling(const OptionSpec& option);

// The help phrase with choices and default: "what it does (one of a, b; default: a)".
[[nodiscard]] std::string explained(const OptionSpec& option);

}  // namespace gridscope::cli
