#pragma once

// Keeps a report from taking the place of what it is made from.

#include <filesystem>
#include <string>
#include <string_view>

#include "gridscope/core/result.hpp"

namespace gridscope::app {

// Errors: kInvalidArgument when `output` exists and is, by whatever name, the file that `model`
// names or another file of the model on disk and no report. What is wrong with the model itself is
// left to those who read it.
[[nodiscard]] Status check_output(const std::string& model, const std::filesystem::path& output);

// Errors: kInvalidArgument when `output` is or, once written, will be the file `kept`, which the
// option of that name keeps up to date.
[[nodiscard]] Status check_output_apart(const std::filesystem::path& output,
                                        std::string_view option, const std::filesystem::path& kept);

}  // namespace gridscope::app
