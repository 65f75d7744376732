#pragma once

// Finds tensors by name. For half a million of them an unordered_map costs a node each and two
// cache misses a question; here it is one array of 8-byte slots.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gridscope/format/tensor_table.hpp"

namespace gridscope::model {

class NameTable {
 public:
  struct Copy {
    std::uint32_t first = 0;   // the first tensor of that name
    std::uint32_t second = 0;  // a later one
  };

  NameTable() = default;
  explicit NameTable(std::span<const format::TensorInfo> tensors);

  // The first tensor of that name. `tensors` are those the table was made from.
  [[nodiscard]] std::optional<std::uint32_t> find(std::span<const format::TensorInfo> tensors,
                                                  std::string_view name) const;

  // Tensors whose name stood before.
  [[nodiscard]] std::span<const Copy> copies() const { return copies_; }

 private:
  struct Slot {
    std::uint32_t tag = 0;     // bits of the hash, to pass over other names without looking
    std::uint32_t tensor = 0;  // plus one; 0 is free
  };

  // The slot of that name, or the free one where it would go.
  [[nodiscard]] std::size_t locate(std::span<const format::TensorInfo> tensors,
                                   std::string_view name, std::uint64_t hash) const;

  std::vector<Slot> slots_;  // a power of two, at most half full
  std::vector<Copy> copies_;
};

}  // namespace gridscope::model
