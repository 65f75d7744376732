#pragma once

// The verbs themselves, one source each. Parsing and the frame around them know only the table.

#include "gridscope/cli/arguments.hpp"
#include "gridscope/cli/verbs.hpp"
#include "gridscope/core/result.hpp"

namespace gridscope::cli {

[[nodiscard]] Result<Answer> run_inspect(const Arguments& arguments, const Surroundings& around);
[[nodiscard]] Result<Answer> run_grid_check(const Arguments& arguments, const Surroundings& around);
[[nodiscard]] Result<Answer> run_cache(const Arguments& arguments, const Surroundings& around);
[[nodiscard]] Result<Answer> run_completion(const Arguments& arguments, const Surroundings& around);
[[nodiscard]] Result<Answer> run_man(const Arguments& arguments, const Surroundings& around);

}  // namespace gridscope::cli
