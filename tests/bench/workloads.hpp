#pragma once

// Checkpoints that are hard to inspect: many files, or very many tensors. Generated, sparse.

#include <cstdint>
#include <filesystem>

namespace gridscope::bench {

struct ShardedShape {
  std::uint32_t shards = 1;
  std::uint32_t tensors_per_shard = 1;
};

struct ShardedCheckpoint {
  std::uint64_t tensors = 0;
  std::uint64_t index_bytes = 0;
};

// Writes config.json, the shards and the index. Streams: memory does not grow with the shape.
ShardedCheckpoint write_sharded_checkpoint(const std::filesystem::path& directory,
                                           ShardedShape shape);

}  // namespace gridscope::bench
