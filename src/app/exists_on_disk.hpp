#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace gridscope::app {

// What cannot be asked about counts as absent.
[[nodiscard]] inline bool exists_on_disk(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace gridscope::app
