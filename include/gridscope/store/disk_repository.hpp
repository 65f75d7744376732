#pragma once

// A file, a directory or a folder of the Hub's cache on disk.

#include <memory>

#include "gridscope/core/result.hpp"
#include "gridscope/store/context.hpp"
#include "gridscope/store/reference.hpp"
#include "gridscope/store/repository.hpp"

namespace gridscope::store {

// A directory is listed whole (within the limits of walk_directory); of a file the directory it
// lies in, without what lies below. A folder models--org--name of the Hub's cache stands for the
// snapshot of its refs/main; in a snapshot the commit is known. Where the directory of a named file
// may be entered but not listed, files are found by name alone. What was chosen is told as Detail.
// Errors: kNotFound (also for a link to nothing), kPermission, kLimit, kInvalidArgument for a pipe
// or device.
[[nodiscard]] Result<std::unique_ptr<Repository>> open_disk_repository(
    const ModelReference& reference, const StoreContext& context);

}  // namespace gridscope::store
