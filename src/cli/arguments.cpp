#include "gridscope/cli/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gridscope/cli/option_value.hpp"
#include "gridscope/core/text.hpp"

namespace gridscope::cli {
std::string without_secrets(std::string_view word) {
  const std::size_t scheme = word.find("://");
  if (scheme == std::string_view::npos) return printable(word);
  std::string_view rest = word.substr(scheme + 3);
  rest = rest.substr(0, rest.find_first_of("?#"));
  const std::string_view authority = rest.substr(0, rest.find('/'));
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    rest.remove_prefix(at + 1);
  }
  return printable(fmt::format("{}{}", word.substr(0, scheme + 3), rest));
}

Arguments::Arguments(const VerbSpec& verb) : verb_(&verb) {
  for_each_option(verb, [this](const OptionSpec& option) {
    values_[std::string(option.name)] = {
        .text = std::string(option.fallback),
        .number = option.fallback.empty() ? 0 : check_value(option, option.fallback).value_or(0)};
  });
}

Status Arguments::set(const OptionSpec& option, std::string_view value) {
  auto number = check_value(option, value);
  if (!number) {
    const std::string name =
        option.is_positional() ? std::string(option.name) : fmt::format("--{}", option.name);
    return tl::make_unexpected(with_context(std::move(number).error(), name));
  }
  Value& kept = values_[std::string(option.name)];
  kept.text = std::string(value);
  kept.number = *number;
  kept.given = true;
  if (option.occurs == Occurs::kRepeatedly) kept.all.emplace_back(value);
  return {};
}

bool Arguments::given(std::string_view name) const {
  return value(name).given;
}

const std::string& Arguments::text(std::string_view name) const {
  return value(name).text;
}

const std::vector<std::string>& Arguments::texts(std::string_view name) const {
  return value(name).all;
}

double Arguments::real(std::string_view name) const {
  return parse_real(text(name)).value_or(0.0);
}

std::uint64_t Arguments::number(std::string_view name) const {
  return value(name).number;
}

std::chrono::milliseconds Arguments::duration(std::string_view name) const {
  return std::chrono::milliseconds(value(name).number);
}

std::string Arguments::subject() const {
  std::string subject(verb_->name);
  const auto add = [&subject](std::string_view word) {
    const std::string shown = without_secrets(word);
    subject += ' ' + (shown.empty() ? "\"\"" : shown);
  };
  for (const OptionSpec& positional : verb_->positionals) {
    if (positional.occurs == Occurs::kOnce) add(text(positional.name));
    for (const std::string& word : texts(positional.name)) add(word);
  }
  return subject;
}

const Arguments::Value& Arguments::value(std::string_view name) const {
  static const Value kNone;
  const auto found = values_.find(name);
  return found == values_.end() ? kNone : found->second;
}

}  // namespace gridscope::cli
