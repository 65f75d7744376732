#pragma once

// How large the parts of a checkpoint file may be. Every number from a file is held against one of
// these before anything is allocated for it. All can be raised by the caller; the defaults are what
// the field's readers accept, so that nothing published is refused.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

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

// One of the limits, and what errors call it: a caller whose settings have the same names needs no
// errors of its own.
using Limit = std::uint64_t Limits::*;
struct NamedLimit {
  std::string_view name;
  Limit limit;
};
inline constexpr auto kNamedLimits = std::to_array<NamedLimit>({
    {"max-header-bytes", &Limits::header_bytes},
    {"max-index-bytes", &Limits::index_bytes},
    {"max-shards", &Limits::shards},
    {"max-tensors", &Limits::tensors},
    {"max-name-bytes", &Limits::name_bytes},
    {"max-json-depth", &Limits::json_depth},
    {"max-rank", &Limits::rank},
});

// What to do about a limit that was passed, naming it.
[[nodiscard]] std::string limit_remedy(Limit limit);

// kLimit with that remedy.
[[nodiscard]] tl::unexpected<Error> over_limit(Limit limit, std::string message);

}  // namespace gridscope::format
