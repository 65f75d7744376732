#pragma once

// Keeps a report from taking the place of the weights that it is about.

#include <filesystem>
#include <string>

#include "gridscope/core/result.hpp"

namespace gridscope::app {

// Errors: kInvalidArgument when `output` exists and is, by whatever name, a file of the model on
// disk and no report. What is wrong with the model itself is left to those who read it.
[[nodiscard]] Status check_output(const std::string& model, const std::filesystem::path& output);

}  // namespace gridscope::app
