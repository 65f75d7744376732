#pragma once

// Everything a use case needs from the world, put together once: settings, cache, HTTP, clock,
// observer.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
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

// Owns the parts and keeps them alive. What a run may do without, the cache and all that belongs to
// the network, is made when it is first asked for: a wrong variable of the Hub cannot fail what
// reads disk alone. Thread-safe as its parts are.
class Context {
 public:
  // Errors: kInvalidArgument for settings that make no sense.
  [[nodiscard]] static Result<std::unique_ptr<Context>> make(Settings settings, Observer& observer,
                                                             std::stop_token stop = {});

  // As given; cache() fills the cache directory in.
  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] ReadCounter& observer() { return counter_; }
  [[nodiscard]] Clock& clock() { return clock_; }
  [[nodiscard]] const std::stop_token& stop() const { return stop_; }

  // Errors: those of store::read_hub_settings.
  [[nodiscard]] Result<const store::HubSettings*> hub();
  // Null with Cache::kBypass, and, with a warning, when there is no home to keep it in.
  // Errors: those of io::RangeCache::open.
  [[nodiscard]] Result<io::RangeCache*> cache();
  // Errors: those of hub() and of http::make_curl_transport.
  [[nodiscard]] Result<http::Client*> client();

 private:
  Context(Settings settings, Observer& observer, std::stop_token stop);
  [[nodiscard]] Status open_cache();

  Settings settings_;
  ReadCounter counter_;
  SystemClock clock_;
  std::stop_token stop_;
  std::mutex mutex_;  // of what follows, while it is made
  std::optional<store::HubSettings> hub_;
  std::unique_ptr<io::RangeCache> cache_;
  std::unique_ptr<http::Transport> transport_;
  std::unique_ptr<http::Client> client_;
};

}  // namespace gridscope::app
