#pragma once

#include "gridscope/app/context.hpp"
#include "gridscope/cli/arguments.hpp"

namespace gridscope::cli {

// The shared options as settings of the use cases.
[[nodiscard]] app::Settings make_settings(const Arguments& arguments);

}  // namespace gridscope::cli
