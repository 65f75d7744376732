#pragma once

// The one seam for doing several things at once.

#include <cstddef>
#include <functional>
#include <stop_token>

#include "gridscope/core/result.hpp"

namespace gridscope {

// Calls body(i) for every i in [0, n) on up to `threads` threads and returns when all have ended.
// After the first failure or a stop request no new index is started; the error returned is the one
// with the lowest index among those that failed, so that the outcome does not depend on timing more
// than it must. Errors: those of body; kCancelled. Requires: threads >= 1.
[[nodiscard]] Status parallel_chunks(std::size_t n, std::size_t threads,
                                     const std::function<Status(std::size_t)>& body,
                                     const std::stop_token& stop = {});

}  // namespace gridscope
