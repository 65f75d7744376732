#pragma once

// How large the parts of a checkpoint file may be. Every number from a file is held against one of
// these before anything is allocated for it. All can be raised by the caller; the defaults are what
// the field's readers accept, so that nothing published is refused.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "gridscope/core/result.hpp"

namespace gridscope::format {

struct Limits {
  std::uint64_t header_bytes =
      100'000'000;  // the safetensors crate's own cap; also for GGUF headers
  std::uint64_t index_bytes = 250'000'000;  // four times the largest published index
  std::uint64_t shards = 10'000;
  std::uint64_t tensors = 2'000'000;  // of a checkpoint: 500,000 are published today
  std::uint64_t name_bytes = 4'096;
  std::uint64_t json_depth = 16;
  std::uint64_t rank = 16;  // dimensions of one tensor
};

// What to do about a limit that was passed.
inline constexpr std::string_view kLimitRemedy =
    "no known checkpoint needs as much; raise the limit if you trust the file";

[[nodiscard]] inline tl::unexpected<Error> over_limit(std::string message) {
  return fail(ErrorCode::kLimit, std::move(message), std::string(kLimitRemedy));
}

}  // namespace gridscope::format
