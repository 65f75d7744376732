// CLI11 splits the words: which are options, which are values, which verb they belong to. It gets
// no requirements, types or choices; those are checked here, so that every complaint has one voice.

#include "gridscope/cli/parse.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gridscope/cli/suggest.hpp"
#include "gridscope/core/text.hpp"

namespace gridscope::cli {
namespace {

using Words = std::span<const char* const>;

std::string help_hint(const VerbSpec* verb) {
  return verb == nullptr ? "see gridscope --help"
                         : fmt::format("see gridscope {} --help", verb->name);
}

tl::unexpected<Error> wrong_usage(const VerbSpec* verb, const std::string& what,
                                  std::string_view meant = {}) {
  const std::string guess = meant.empty() ? "" : fmt::format("did you mean {}? ", meant);
  return fail(ErrorCode::kInvalidArgument,
              verb == nullptr ? what : fmt::format("{}: {}", verb->name, what),
              guess + help_hint(verb));
}

// The words as CLI11 understood them.
class Splitter {
 public:
  Splitter() {
    app_.set_help_flag();
    app_.allow_extras();
    app_.require_subcommand(0, 1);
    for (const OptionGroup& group : program().groups) add(app_, group.options);
    for (const VerbSpec& verb : program().verbs) {
      CLI::App* const sub = app_.add_subcommand(std::string(verb.name));
      sub->set_help_flag();
      sub->allow_extras();
      sub->fallthrough();
      add(*sub, verb.positionals);
      add(*sub, verb.options);
    }
  }

  [[nodiscard]] Status split(Words words) {
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    try {
      app_.parse(std::move(reversed));
    } catch (const CLI::ArgumentMismatch&) {
      return wrong_usage(verb(), fmt::format("{} needs a value", quote(words.back())));
    } catch (const CLI::ParseError& error) {
      return wrong_usage(verb(), printable(error.what()));
    }
    return {};
  }

  [[nodiscard]] const VerbSpec* verb() const {
    const auto parsed = app_.get_subcommands();
    return parsed.empty() ? nullptr : find_verb(parsed.front()->get_name());
  }

  // Words that are neither an option nor a value, in order.
  [[nodiscard]] std::vector<std::string> strays() const { return app_.remaining(true); }

  // Every value that the option was given; for a flag, one per mention.
  [[nodiscard]] std::vector<std::string> values(const OptionSpec& option) const {
    const auto parsed = app_.get_subcommands();
    const CLI::Option* found = find(app_, option);
    if (found == nullptr && !parsed.empty()) found = find(*parsed.front(), option);
    return found == nullptr ? std::vector<std::string>{} : found->results();
  }

 private:
  static void add(CLI::App& app, std::span<const OptionSpec> options) {
    for (const OptionSpec& option : options) {
      if (option.kind == ValueKind::kFlag) {
        app.add_flag(flags_of(option));
      } else {
        const bool open_end = option.is_positional() && option.occurs == Occurs::kRepeatedly;
        app.add_option(flags_of(option))
            ->expected(open_end ? -1 : 1)
            ->type_name(std::string(option.value_name))
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      }
    }
  }

  static std::string flags_of(const OptionSpec& option) {
    if (option.is_positional()) return std::string(option.name);
    return option.letter == 0 ? fmt::format("--{}", option.name)
                              : fmt::format("-{},--{}", option.letter, option.name);
  }

  static const CLI::Option* find(const CLI::App& app, const OptionSpec& option) {
    return app.get_option_no_throw(option.is_positional() ? std::string(option.name)
                                                          : fmt::format("--{}", option.name));
  }

  CLI::App app_;
};

bool is_flag(std::string_view name) {
  bool found = false;
  const auto look = [&](const OptionSpec& option) {
    found = found || (option.name == name && option.kind == ValueKind::kFlag);
  };
  for (const VerbSpec& verb : program().verbs) for_each_option(verb, look);
  return found;
}

// What CLI11 has ideas of its own about: it would take the word after `--name=` as the value, and
// count `--flag=3` as three mentions.
Status check_assignments(Words words) {
  for (const std::string_view word : words) {
    if (word == "--") break;
    const std::size_t sign = word.find('=');
    if (!word.starts_with("--") || sign == std::string_view::npos) continue;
    const std::string_view option = word.substr(0, sign);
    if (is_flag(option.substr(2))) {
      return wrong_usage(nullptr, fmt::format("{} takes no value", option));
    }
    if (sign + 1 == word.size()) {
      return wrong_usage(nullptr, fmt::format("{} has no value after =", quote(option)));
    }
  }
  return {};
}

tl::unexpected<Error> unexpected_argument(const VerbSpec* verb, std::string_view word) {
  return wrong_usage(verb, fmt::format("unexpected argument {}", quote(without_secrets(word))));
}

std::vector<std::string_view> verb_names() {
  std::vector<std::string_view> names;
  for (const VerbSpec& verb : program().verbs) names.push_back(verb.name);
  return names;
}

tl::unexpected<Error> unknown_command(std::string_view word) {
  return wrong_usage(nullptr, fmt::format("unknown command {}", quote(without_secrets(word))),
                     nearest(word, verb_names()));
}

// A value may follow an unknown option (`--tokn=secret`); only the option itself is repeated.
tl::unexpected<Error> unknown_option(const VerbSpec* verb, std::string_view word) {
  const std::string_view option = word.substr(0, word.find('='));
  std::vector<std::string> known;
  const auto learn = [&known](const OptionSpec& spec) {
    if (!spec.is_positional()) known.push_back(fmt::format("--{}", spec.name));
  };
  for_each_option(verb == nullptr ? program().verbs.front() : *verb, learn);
  if (std::ranges::find(known, option) != known.end()) {
    return wrong_usage(verb, fmt::format("{} goes after the command", option));
  }
  const std::vector<std::string_view> candidates(known.begin(), known.end());
  return wrong_usage(verb, fmt::format("unknown option {}", quote(option)),
                     nearest(option, candidates));
}

// Whether `word` stands after the first "--" and not before.
bool is_operand(Words words, std::string_view word) {
  const auto as_text = [](const char* text) { return std::string_view(text); };
  const auto dashes = std::ranges::find(words, std::string_view("--"), as_text);
  return dashes != words.end() && std::ranges::find(words, word, as_text) > dashes;
}

Status refuse_strays(const VerbSpec* verb, const std::vector<std::string>& strays, Words words) {
  const auto first = std::ranges::find_if(strays, [](const auto& word) { return word != "--"; });
  if (first == strays.end()) return {};
  if (first->size() > 1 && first->starts_with('-')) {
    if (!is_operand(words, *first)) return unknown_option(verb, *first);
    return wrong_usage(verb,
                       fmt::format("unexpected argument {}: after -- nothing is an option",
                                   quote(std::string_view(*first).substr(0, first->find('=')))));
  }
  return verb == nullptr ? unknown_command(*first) : unexpected_argument(verb, *first);
}

Status take(const Splitter& words, const OptionSpec& option, Arguments& arguments) {
  const VerbSpec* const verb = &arguments.verb();
  const std::vector<std::string> values = words.values(option);
  if (values.empty()) {
    const bool needed = option.is_positional() && option.occurs == Occurs::kOnce;
    return needed ? wrong_usage(verb, fmt::format("{} is missing", option.name)) : Status{};
  }
  if (option.kind == ValueKind::kFlag) return arguments.set(option, {});
  if (values.size() > 1 && option.occurs == Occurs::kOnce) {
    return wrong_usage(verb, fmt::format("--{} is given {} times", option.name, values.size()));
  }
  for (const std::string& value : values) {
    if (!option.is_positional() && value.starts_with("--")) {
      return wrong_usage(verb, fmt::format("--{} needs a value ({}) before the next option",
                                           option.name, option.value_name));
    }
    auto status = arguments.set(option, value);
    if (!status) return wrong_usage(verb, status.error().message, nearest(value, option.choices));
  }
  return {};
}

// Shared options are known everywhere; one without an effect may stand for a misunderstanding.
Status refuse_ineffective(const Splitter& words, const VerbSpec& verb) {
  for (const OptionGroup& group : program().groups) {
    if (std::ranges::find(verb.groups, group.title, &OptionGroup::title) != verb.groups.end()) {
      continue;
    }
    const auto given = std::ranges::find_if(
        group.options, [&](const OptionSpec& option) { return !words.values(option).empty(); });
    if (given != group.options.end()) {
      return wrong_usage(&verb, fmt::format("--{} has no effect on this command", given->name));
    }
  }
  return {};
}

// Carries --json over to --format.
Status apply_meaning(const OptionSpec& option, Arguments& arguments) {
  if (option.means_option.empty() || !arguments.flag(option.name)) return {};
  const auto options = arguments.verb().options;
  const auto target = std::ranges::find(options, option.means_option, &OptionSpec::name);
  if (arguments.given(target->name) && arguments.text(target->name) != option.means_value) {
    return wrong_usage(&arguments.verb(),
                       fmt::format("--{} and --{} {} exclude each other", option.name, target->name,
                                   arguments.text(target->name)));
  }
  return arguments.set(*target, option.means_value);
}

Result<Arguments> fill(const Splitter& words, const VerbSpec& verb) {
  Arguments arguments(verb);
  Status status;
  const auto take_next = [&](const OptionSpec& option) {
    if (status) status = take(words, option, arguments);
  };
  for_each_option(verb, take_next);
  for (const OptionSpec& option : verb.options) {
    if (status) status = apply_meaning(option, arguments);
  }
  if (status && arguments.flag("quiet") && arguments.flag("verbose")) {
    status = wrong_usage(&verb, "--quiet and --verbose exclude each other");
  }
  GRIDSCOPE_CHECK(status);
  return arguments;
}

bool asked_for(const Splitter& words, std::string_view flag) {
  for (const OptionGroup& group : program().groups) {
    const auto option = std::ranges::find(group.options, flag, &OptionSpec::name);
    if (option != group.options.end()) return !words.values(*option).empty();
  }
  return false;
}

// `gridscope help [COMMAND]`, which many try first.
Result<Command> parse_help(Words words) {
  if (words.empty() || *words.front() == '-') return HelpRequest{};
  const VerbSpec* const verb = find_verb(words.front());
  if (verb == nullptr) return unknown_command(words.front());
  if (words.size() > 1 && *words[1] != '-') return unexpected_argument(verb, words[1]);
  return HelpRequest{verb};
}

}  // namespace

Result<Command> parse_command_line(std::span<const char* const> words) {
  if (!words.empty() && words.front() == std::string_view("help")) {
    return parse_help(words.subspan(1));
  }
  GRIDSCOPE_CHECK(check_assignments(words));
  Splitter splitter;
  const Status split = splitter.split(words);
  const VerbSpec* const verb = splitter.verb();
  if (asked_for(splitter, "help")) return HelpRequest{verb};
  if (asked_for(splitter, "version")) return VersionRequest{};
  GRIDSCOPE_CHECK(split);
  GRIDSCOPE_CHECK(refuse_strays(verb, splitter.strays(), words));
  if (verb == nullptr) return wrong_usage(nullptr, "there is no command");
  GRIDSCOPE_CHECK(refuse_ineffective(splitter, *verb));
  GRIDSCOPE_TRY(Arguments arguments, fill(splitter, *verb));
  return arguments;
}

}  // namespace gridscope::cli
