#pragma once

// From a reference to the repository behind it.

#include <memory>

#include "gridscope/core/result.hpp"
#include "gridscope/store/context.hpp"
#include "gridscope/store/reference.hpp"
#include "gridscope/store/repository.hpp"

namespace gridscope::store {

// Pins the revision to a commit and lists the files (Hub), lists the directory (disk), or looks at
// what the URL names (HTTP). Errors: kNotFound, kPermission and the others of the place, with what
// to do about it.
[[nodiscard]] Result<std::unique_ptr<Repository>> open_repository(const ModelReference& reference,
                                                                  const StoreContext& context);

}  // namespace gridscope::store
