#pragma once

// Everything a use case needs from the world, put together once: settings, cache, HTTP, clock,
// observer.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "gridscope/core/clock.hpp"
#include "gridscope/core/observer.hpp"
#include "gridscope/core/result.hpp"
#include "gridscope/format/limits.hpp"
#include "gridscope/http/client.hpp"
#include "gridscope/http/transport.hpp"
#include "gridscope/io/range_cache.hpp"
#include "gridscope/store/hub_settings.hpp"

namespace gridscope::app {

struct Settings {
  std::size_t connections = 16;  // per host
  std::optional<std::chrono::milliseconds> timeout =
      {};  // stall and connect; empty: the Hub's variables
  std::string proxy = {};
  enum class Cache : std::uint8_t { kUse, kBypass };
  Cache cache = Cache::kUse;
  std::optional<std::filesystem::path> cache_directory = {};  // empty: the default place
  std::uint64_t cache_bytes = 2ULL * 1024 * 1024 * 1024;
  format::Limits limits = {};
  store::Environment environment = store::process_environment();
};

// Owns the parts and keeps them alive. Thread-safe as its parts are.
class Context {
 public:
  // Errors: kInvalidArgument for settings or variables that make no sense.
  [[nodiscard]] static Result<std::unique_ptr<Context>> make(Settings settings, Observer& observer,
                                                             std::stop_token stop = {});

  // As given, with the cache directory filled in.
  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] const store::HubSettings& hub() const { return hub_; }
  [[nodiscard]] ReadCounter& observer() { return counter_; }
  [[nodiscard]] Clock& clock() { return clock_; }
  // Null with Cache::kBypass, and when there is no home to keep it in.
  [[nodiscard]] io::RangeCache* cache() { return cache_.get(); }
  [[nodiscard]] http::Client& client() { return *client_; }
  [[nodiscard]] const std::stop_token& stop() const { return stop_; }

 private:
  Context(Settings settings, Observer& observer, std::stop_token stop);
  [[nodiscard]] Status open_cache();

  Settings settings_;
  store::HubSettings hub_;
  ReadCounter counter_;
  SystemClock clock_;
  std::stop_token stop_;
  std::unique_ptr<io::RangeCache> cache_;
  std::unique_ptr<http::Transport> transport_;
  std::unique_ptr<http::Client> client_;
};

}  // namespace gridscope::app
