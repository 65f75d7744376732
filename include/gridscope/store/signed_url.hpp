#pragma once

// How long a signed content URL stays good.

#include <chrono>

#include "gridscope/http/url.hpp"

namespace gridscope::store {

// Until when `url` may be used again: 120 s before the expiry that its query states (Expires, or
// X-Amz-Date plus X-Amz-Expires); ten minutes from `now` when it states none that can be read.
[[nodiscard]] std::chrono::system_clock::time_point good_until(
    const http::Url& url, std::chrono::system_clock::time_point now);

}  // namespace gridscope::store
