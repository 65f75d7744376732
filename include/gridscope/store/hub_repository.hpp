#pragma once

// A repository on the Hugging Face Hub at one commit.

#include <memory>

#include "gridscope/core/result.hpp"
#include "gridscope/store/context.hpp"
#include "gridscope/store/reference.hpp"
#include "gridscope/store/repository.hpp"

namespace gridscope::store {

// The revision is pinned to a commit first: by itself when it is a full commit, else by one
// request, or offline by what was seen last. The listing comes from the range cache, from the Hub's
// own cache, or from the Hub. A file is read from the Hub's own cache when it lies there with the
// size of the listing, else by range through the range cache. So a full commit whose listing and
// ranges are kept needs no request at all. Offline, nothing is sent: what is not kept fails by
// name.
[[nodiscard]] Result<std::unique_ptr<Repository>> open_hub_repository(
    const ModelReference& reference, const StoreContext& context);

}  // namespace gridscope::store
