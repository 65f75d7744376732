#pragma once

// Turns header texts into files of true size: safetensors files whose data is one hole, which reads
// as zeros and takes no disk. It shares no code with the readers under test.

#include <cstdint>
#include <filesystem>

namespace gridscope::test {

struct SparseCheckpoint {
  std::filesystem::path directory;  // below the output directory, named after the source
  std::uint64_t files = 0;          // safetensors files
  std::uint64_t tensors = 0;
  std::uint64_t file_bytes = 0;  // of the safetensors files, as `ls` counts them
};

// Reads a directory that holds config.json, `<shard>.header.json.zst` for each file or
// `headers.txt.zst` for all of them (one line each: the shard's name, a space, its header), and the
// index, compressed or not. Writes to `output / source.filename()`.
// Throws std::runtime_error when tensors leave a hole, overlap, or span other than their shape
// says, and when a file cannot be read or written.
SparseCheckpoint write_sparse_checkpoint(const std::filesystem::path& source,
                                         const std::filesystem::path& output);

}  // namespace gridscope::test
