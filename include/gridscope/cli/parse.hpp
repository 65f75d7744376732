#pragma once

// From argv to a command.

#include <span>
#include <variant>

#include "gridscope/cli/arguments.hpp"
#include "gridscope/cli/verbs.hpp"
#include "gridscope/core/result.hpp"

namespace gridscope::cli {

struct HelpRequest {
  const VerbSpec* verb = nullptr;  // null: of the whole program
};
struct VersionRequest {};

using Command = std::variant<HelpRequest, VersionRequest, Arguments>;

// `words` is argv without the program's name. --help wins over everything else that is wrong;
// `help VERB` is the same.
// Errors: kInvalidArgument, with what was meant as far as that can be guessed.
[[nodiscard]] Result<Command> parse_command_line(std::span<const char* const> words);

}  // namespace gridscope::cli
