#pragma once

// What every container format is read into: names, types, shapes and where the bytes lie.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gridscope/core/dtype.hpp"

namespace gridscope::format {

// One tensor as its file describes it.
struct TensorInfo {
  std::string name;
  Dtype dtype = Dtype::kF32;
  // Row-major: the last dimension is contiguous. GGUF dimensions are turned round to this order.
  std::vector<std::uint64_t> shape;
  std::uint64_t offset = 0;  // of the first byte, from the start of the file
  std::uint64_t bytes = 0;

  // The product of the shape; every reader has checked that it fits.
  [[nodiscard]] std::uint64_t elements() const;

  friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

// The tensors of one file, in order of offset.
struct TensorTable {
  std::uint64_t header_bytes = 0;  // everything before the first tensor's data
  std::vector<TensorInfo> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;  // strings and scalars, in file order

  // The value of a metadata key, or null.
  [[nodiscard]] const std::string* find_metadata(std::string_view key) const;
};

// Bytes that `elements` of a type occupy. Empty on overflow, when they do not end on a byte, or
// when they are no whole number of blocks.
[[nodiscard]] std::optional<std::uint64_t> storage_bytes(Dtype dtype, std::uint64_t elements);

// The position of the first name that was there before, or empty when all differ. O(n log n).
[[nodiscard]] std::optional<std::size_t> find_repeated(std::span<const std::string_view> names);

}  // namespace gridscope::format
