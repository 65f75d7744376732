#pragma once

// Settings whose environment is made up, so that tests do not depend on the machine's.

#include <map>
#include <string>

#include "gridscope/app/context.hpp"

namespace gridscope::app {

inline Settings settings_with(const std::map<std::string, std::string, std::less<>>& variables) {
  Settings settings;
  settings.cache = Settings::Cache::kBypass;
  settings.environment = [variables](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  return settings;
}

}  // namespace gridscope::app
