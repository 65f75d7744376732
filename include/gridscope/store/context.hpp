#pragma once

// What opening a repository needs from outside.

#include <cstddef>

#include "gridscope/core/observer.hpp"
#include "gridscope/http/client.hpp"
#include "gridscope/io/range_cache.hpp"
#include "gridscope/store/hub_settings.hpp"

namespace gridscope::store {

// Everything pointed to must outlive the repository.
struct StoreContext {
  http::Client* client = nullptr;   // required for Hub and HTTP, unless offline
  io::RangeCache* cache = nullptr;  // null: nothing is kept
  Observer* observer = nullptr;     // required
  HubSettings hub = {};
  std::size_t connections = 16;  // reads under way at once, per source
};

}  // namespace gridscope::store
