#pragma once

// GGUF headers, versions 2 and 3, little-endian.
//
//   "GGUF" | version u32 | tensors i64 | key-values i64 | key-values | tensor infos | padding |
//   data
//
// The header has no length of its own, so it is read forward in growing pieces; arrays (token lists
// of megabytes) are walked over, not kept. Acceptance follows ggml's reader.

#include <cstdint>
#include <optional>
#include <string>

#include "gridscope/core/result.hpp"
#include "gridscope/format/limits.hpp"
#include "gridscope/format/tensor_table.hpp"
#include "gridscope/io/byte_source.hpp"

namespace gridscope::format {

struct GgufSplit {
  std::uint32_t number = 0;   // from 0
  std::uint32_t count = 1;    // files
  std::uint64_t tensors = 0;  // over all files
};

struct GgufHeader {
  std::uint32_t version = 0;
  std::uint64_t alignment = 32;
  TensorTable table;  // metadata: scalars and strings as text; an array as "[type; count]"
  std::optional<GgufSplit> split;
  std::uint64_t odd_bools = 0;  // bool bytes that are neither 0 nor 1: tolerated, worth a note
};

// Errors: kCorrupt with the byte position, kUnsupported (version, big-endian), kLimit.
[[nodiscard]] Result<GgufHeader> read_gguf_header(const io::ByteSource& source,
                                                  const Limits& limits = {});

}  // namespace gridscope::format
