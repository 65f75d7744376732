#pragma once

// The index of a sharded checkpoint: which file holds which tensor.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gridscope/core/result.hpp"
#include "gridscope/format/limits.hpp"

namespace gridscope::format {

struct ShardIndex {
  struct Entry {
    std::string tensor;
    std::uint32_t shard = 0;  // into `shards`
  };
  std::vector<std::string> shards;  // file names beside the index, in order of first mention
  std::vector<Entry> entries;       // in file order
  // metadata.total_size, the writer's own account of the tensor bytes; whole numbers only, written
  // as a number or as digits in a string. Informational: it is often stale.
  std::optional<std::uint64_t> total_size;
  std::string odd_total_size;  // what stands there, printable, when it is no size
};

// Errors: kCorrupt (no JSON object, no weight_map object, a value that is no string, a shard name
// that is empty, absolute, has a directory part, "..", a backslash, a NUL byte or a scheme, a
// tensor named twice), kLimit.
[[nodiscard]] Result<ShardIndex> parse_safetensors_index(std::span<const std::byte> text,
                                                         const Limits& limits = {});

// What a shard's file name says of its place: "model-00002-of-00005.safetensors" is 2 of 5 with
// prefix "model-" and suffix ".safetensors". Five or six digits; counting may start at 0 or 1.
struct ShardName {
  std::string prefix;
  std::uint32_t number = 0;
  std::uint32_t total = 0;
  std::string suffix;
};
[[nodiscard]] std::optional<ShardName> parse_shard_name(std::string_view file_name);

// Whether an index may name that file: one path segment that stays in its directory.
[[nodiscard]] bool is_safe_shard_name(std::string_view name);

}  // namespace gridscope::format
