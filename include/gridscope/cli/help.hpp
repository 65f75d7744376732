#pragma once

// Help texts, 80 columns wide.

#include <string>
#include <string_view>

#include "gridscope/cli/verbs.hpp"

namespace gridscope::cli {

[[nodiscard]] std::string program_help();
[[nodiscard]] std::string verb_help(const VerbSpec& verb);

// "gridscope 0.1.0", with a line break.
[[nodiscard]] std::string version_text();

// "gridscope inspect [OPTIONS] MODEL".
[[nodiscard]] std::string usage(const VerbSpec& verb);

}  // namespace gridscope::cli
