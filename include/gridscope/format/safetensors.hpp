#pragma once

// safetensors: 8 bytes little-endian header length N, N bytes of JSON, then the data.
//
//   0        8            8+N                      file end
//   | N: u64 | JSON header | tensor data, no holes |
//
// Checked in the order of the reference crate (0.8), so that the same file gives the same verdict;
// stricter here: duplicate names and fields, control characters and lone surrogates in strings,
// nesting, rank and name length (see Limits) are refused.

#include <cstddef>
#include <cstdint>
#include <span>

#include "gridscope/core/result.hpp"
#include "gridscope/format/limits.hpp"
#include "gridscope/format/tensor_table.hpp"
#include "gridscope/io/byte_source.hpp"

namespace gridscope::format {

// A first read of this many bytes holds the whole header of nearly every published file.
inline constexpr std::uint64_t kSpeculativeBytes = 128 * 1024;

// The header length that the first 8 bytes give, checked against the file's size and the limit.
// Errors: kCorrupt, kLimit; an LFS pointer is named as such when `start` shows one.
[[nodiscard]] Result<std::uint64_t> safetensors_header_length(std::span<const std::byte> start,
                                                              std::uint64_t file_bytes,
                                                              const Limits& limits = {});

// Parses the N header bytes of a file of `file_bytes` bytes.
// Errors: kCorrupt and kLimit, each with the byte position in the file or the tensor's name, what
// was expected and what was found.
[[nodiscard]] Result<TensorTable> parse_safetensors_header(std::span<const std::byte> header,
                                                           std::uint64_t file_bytes,
                                                           const Limits& limits = {});

// Reads the header of a file: one read of kSpeculativeBytes, and a second only for what that left
// out.
[[nodiscard]] Result<TensorTable> read_safetensors_header(const io::ByteSource& source,
                                                          const Limits& limits = {});

}  // namespace gridscope::format
