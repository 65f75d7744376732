#pragma once

// From a reference to the repository behind it.

#include <memory>

#include "gridscope/core/observer.hpp"
#include "gridscope/core/result.hpp"
#include "gridscope/http/client.hpp"
#include "gridscope/io/range_cache.hpp"
#include "gridscope/store/hub_settings.hpp"
#include "gridscope/store/reference.hpp"
#include "gridscope/store/repository.hpp"

namespace gridscope::store {

// What opening needs from outside. Everything pointed to must outlive the repository.
struct StoreContext {
  http::Client* client = nullptr;   // required for Hub and HTTP, unless offline
  io::RangeCache* cache = nullptr;  // null: nothing is kept
  Observer* observer = nullptr;     // required
  HubSettings hub = {};
  std::size_t connections = 16;  // reads under way at once, per source
};

// Pins the revision to a commit and lists the files (Hub), lists the directory (disk), or looks at
// what the URL names (HTTP). Errors: kNotFound, kPermission and the others of the place, with what
// to do about it.
[[nodiscard]] Result<std::unique_ptr<Repository>> open_repository(const ModelReference& reference,
                                                                  const StoreContext& context);

}  // namespace gridscope::store
