#pragma once

// What the environment says about the Hub, read the way huggingface_hub reads it.

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "gridscope/core/result.hpp"

namespace gridscope::store {

// Looks a variable up; empty when it is not set. The real one asks the process environment.
using Environment = std::function<std::optional<std::string>(std::string_view)>;
[[nodiscard]] Environment process_environment();

struct HubSettings {
  std::string endpoint = "https://huggingface.co";  // no trailing slash
  std::string token = {};                           // empty: none
  std::filesystem::path cache = {};  // the Hub's own cache; empty when there is no home
  bool offline = false;
  std::chrono::milliseconds metadata_timeout{10'000};
  std::chrono::milliseconds transfer_timeout{10'000};
};

// HF_ENDPOINT, HF_TOKEN (HUGGING_FACE_HUB_TOKEN, HF_TOKEN_PATH), HF_HOME, HF_HUB_CACHE,
// HF_HUB_OFFLINE, HF_HUB_DISABLE_IMPLICIT_TOKEN and friends; see the sources for each rule. Errors:
// kInvalidArgument for a token that cannot be one (unexpanded "${HF_TOKEN}", bytes outside
// printable ASCII) and an endpoint that is no http(s) URL. Messages never hold the token.
[[nodiscard]] Result<HubSettings> read_hub_settings(const Environment& environment);

}  // namespace gridscope::store
