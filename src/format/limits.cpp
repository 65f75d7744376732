#include "gridscope/format/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gridscope::format {

std::string limit_remedy(Limit limit) {
  const auto* const named = std::ranges::find(kNamedLimits, limit, &NamedLimit::limit);
  return fmt::format("no known checkpoint needs as much; raise {} if you trust the file",
                     named->name);
}

tl::unexpected<Error> over_limit(Limit limit, std::string message) {
  return fail(ErrorCode::kLimit, std::move(message), limit_remedy(limit));
}

}  // namespace gridscope::format
