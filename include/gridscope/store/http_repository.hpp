#pragma once

// Files of a plain web server, which cannot be listed, only asked for by name.

#include <memory>

#include "gridscope/core/result.hpp"
#include "gridscope/store/context.hpp"
#include "gridscope/store/reference.hpp"
#include "gridscope/store/repository.hpp"

namespace gridscope::store {

// A URL whose last segment has the ending of a model file, or that has a query, names a file, which
// must be there; its directory is the repository. Any other URL is a directory. Asking for a file
// reads its start, and those bytes serve its first read. Ranges are kept by URL and strong ETag;
// where there is none, or the URL has a query, nothing is kept.
[[nodiscard]] Result<std::unique_ptr<Repository>> open_http_repository(
    const ModelReference& reference, const StoreContext& context);

}  // namespace gridscope::store
