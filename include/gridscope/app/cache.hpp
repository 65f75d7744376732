#pragma once

// The use cases behind `gridscope cache`.

#include <filesystem>

#include "gridscope/app/context.hpp"
#include "gridscope/core/result.hpp"
#include "gridscope/io/range_cache.hpp"

namespace gridscope::app {

struct CacheInfo {
  std::filesystem::path directory;
  io::RangeCacheUsage usage;
  std::uint64_t max_bytes = 0;
};

[[nodiscard]] Result<CacheInfo> cache_info(Context& context);
// Returns what was removed.
[[nodiscard]] Result<CacheInfo> clear_cache(Context& context);

}  // namespace gridscope::app
