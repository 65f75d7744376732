#include "gridscope/app/cache.hpp"

namespace gridscope::app {
namespace {

Result<io::RangeCache*> require_cache(Context& context) {
  GRIDSCOPE_TRY(io::RangeCache* const cache, context.cache());
  if (cache != nullptr) return cache;
  return fail(ErrorCode::kNotFound, "there is no range cache in use",
              "name its directory, and do not bypass it");
}

CacheInfo describe_cache(const Context& context, io::RangeCacheUsage usage) {
  return {.directory = context.settings().cache_directory.value_or(""),
          .usage = usage,
          .max_bytes = context.settings().cache_bytes};
}

}  // namespace

Result<CacheInfo> cache_info(Context& context) {
  GRIDSCOPE_TRY(const io::RangeCache* const cache, require_cache(context));
  return describe_cache(context, cache->usage());
}

Result<CacheInfo> clear_cache(Context& context) {
  GRIDSCOPE_TRY(io::RangeCache* const cache, require_cache(context));
  GRIDSCOPE_TRY(const io::RangeCacheUsage removed, cache->clear());
  return describe_cache(context, removed);
}

}  // namespace gridscope::app
