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
// reads its start, and those bytes serve its first read. Ranges are kept by URL and validator; of a
// file that was read before, one byte is asked to see whether it still is the same. Without a
// validator, or when the URL has a query, nothing is kept. A file that find() asks for and that is
// refused counts as absent, with one warning for all; open() gives the error. Errors: those of
// find, kInvalidArgument for a directory with a query.
[[nodiscard]] Result<std::unique_ptr<Repository>> open_http_repository(
    const ModelReference& reference, const StoreContext& context);

}  // namespace gridscope::store
