// The script walks the words before the cursor: it finds the verb, counts its positional arguments
// and skips values of options. What can stand at the cursor then comes from two case tables made of
// the declarations. readline splits words at '=', so that "--format=js" arrives as three words.

#include "gridscope/cli/completion.hpp"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "gridscope/cli/verb_list.hpp"

namespace gridscope::cli {
namespace {

constexpr std::string_view kIntroduction =
    R"(# bash completion for gridscope, made by `gridscope completion bash`.

# Sets kind to what follows "VERB OPTION" or is argument "VERB #N": words (those in choices), file,
# directory, other (a value nobody can guess), or none when no value is due.
)";

constexpr std::string_view kWalk = R"(
_gridscope() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  local verb='' kind='' choices='' count=0 i
  if [[ $word == '=' ]]; then
    word=''
  elif [[ $before == '=' ]]; then
    before=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    _gridscope_expect "$verb ${COMP_WORDS[i]}"
    if [[ ${COMP_WORDS[i+1]} == '=' ]]; then
      ((i += 2))
    elif [[ $kind != none ]]; then
      ((i++))
    elif [[ ${COMP_WORDS[i]} == -* ]]; then
      continue
    elif [[ -z $verb ]]; then
      verb=${COMP_WORDS[i]}
    else
      ((count++))
    fi
  done
  _gridscope_expect "$verb $before"
  if [[ $kind == none ]]; then
    if [[ $word == -* || -z $verb ]]; then
      kind=words
      _gridscope_offer "$verb" "$word"
    else
      _gridscope_expect "$verb #$count"
    fi
  fi
  COMPREPLY=()
  case $kind in
    words) mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word") ;;
    file) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    directory) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
  esac
  if [[ $kind == file || $kind == directory ]]; then
    compopt -o filenames 2>/dev/null
  fi
}

complete -F _gridscope gridscope
)";

std::string expectation(const OptionSpec& option) {
  switch (option.kind) {
    case ValueKind::kChoice:
      return fmt::format("kind=words choices='{}'", fmt::join(option.choices, " "));
    case ValueKind::kFile:
    case ValueKind::kModel:
      return "kind=file";
    case ValueKind::kDirectory:
      return "kind=directory";
    default:
      return "kind=other";
  }
}

// A case for an option of one verb, or of every verb when that is empty.
std::string option_case(std::string_view verb, const OptionSpec& option) {
  if (option.kind == ValueKind::kFlag) return {};
  const std::string start = verb.empty() ? "*' " : fmt::format("'{} ", verb);
  std::string pattern = fmt::format("{}--{}'", start, option.name);
  if (option.letter != 0) pattern += fmt::format(" | {}-{}'", start, option.letter);
  return fmt::format("    {}) {} ;;\n", pattern, expectation(option));
}

std::string verb_words() {
  std::string words;
  for (const VerbSpec& verb : program().verbs) words += fmt::format("{} ", verb.name);
  return words;
}

std::string expect_function() {
  std::string cases = fmt::format("    'help #0') kind=words choices='{}' ;;\n", verb_words());
  for (const OptionGroup& group : program().groups) {
    for (const OptionSpec& option : group.options) cases += option_case({}, option);
  }
  for (const VerbSpec& verb : program().verbs) {
    for (const OptionSpec& option : verb.options) cases += option_case(verb.name, option);
    for (std::size_t i = 0; i < verb.positionals.size(); ++i) {
      // Words after the first of an open end are of its kind too.
      const std::string place =
          verb.positionals[i].occurs == Occurs::kRepeatedly ? "'*" : fmt::format("{}'", i);
      cases +=
          fmt::format("    '{} #{}) {} ;;\n", verb.name, place, expectation(verb.positionals[i]));
    }
  }
  return fmt::format("_gridscope_expect() {{\n  case $1 in\n{}    *) kind=none ;;\n  esac\n}}\n",
                     cases);
}

std::string option_words(std::span<const OptionSpec> options) {
  std::string words;
  for (const OptionSpec& option : options) words += fmt::format(" --{}", option.name);
  return words;
}

std::string option_words(std::span<const OptionGroup> groups) {
  std::string words;
  for (const OptionGroup& group : groups) words += option_words(group.options);
  return words;
}

std::string offer_function() {
  std::string cases;
  for (const VerbSpec& verb : program().verbs) {
    const std::string words = option_words(verb.groups) + option_words(verb.options);
    cases += fmt::format("    {}) choices='{}' ;;\n", verb.name, words.substr(1));
  }
  return fmt::format(
      "\n# Sets choices to the options of a verb, or to the verbs.\n"
      "_gridscope_offer() {{\n"
      "  if [[ $2 != -* ]]; then\n    choices='{}'\n    return\n  fi\n"
      "  choices='{}'\n"
      "  case $1 in\n{}  esac\n}}\n",
      verb_words() + "help", option_words(program().groups).substr(1), cases);
}

}  // namespace

std::string bash_completion() {
  return fmt::format("{}{}{}{}", kIntroduction, expect_function(), offer_function(), kWalk);
}

Result<Answer> run_completion(const Arguments& /*arguments*/, const Surroundings& /*around*/) {
  return Answer{.text = bash_completion()};
}

}  // namespace gridscope::cli
