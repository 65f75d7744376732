#pragma once

// Finds things by name. For half a million of them an unordered_map costs a node each and three
// cache misses a question; here it is one array of 8-byte slots. Things are numbers, and their
// names stay where they are: `name_of(number)` gives the name of one that was added.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace gridscope::model {

class NameTable {
 public:
  NameTable() = default;
  explicit NameTable(std::size_t max_names) : slots_(std::bit_ceil(2 * max_names + 1)) {}

  // The number that was added under that name, else `number`, which now is.
  template <typename NameOf>
  std::uint32_t find_or_add(std::string_view name, std::uint32_t number, const NameOf& name_of) {
    const std::uint64_t hash = hash_of(name);
    Slot& slot = slots_[locate(name, hash, name_of)];
    if (slot.number == 0) slot = {.tag = tag_of(hash), .number = number + 1};
    return slot.number - 1;
  }

  template <typename NameOf>
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view name,
                                                  const NameOf& name_of) const {
    if (slots_.empty()) return std::nullopt;
    const Slot& slot = slots_[locate(name, hash_of(name), name_of)];
    return slot.number == 0 ? std::nullopt : std::optional(slot.number - 1);
  }

 private:
  struct Slot {
    std::uint32_t tag = 0;     // bits of the hash, to pass over other names without looking
    std::uint32_t number = 0;  // plus one; 0 is free
  };

  static std::uint64_t hash_of(std::string_view name) {
    return std::hash<std::string_view>{}(name);
  }
  static std::uint32_t tag_of(std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash >> 32U);
  }

  // The slot of that name, or the free one where it would go.
  template <typename NameOf>
  [[nodiscard]] std::size_t locate(std::string_view name, std::uint64_t hash,
                                   const NameOf& name_of) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    while (slots_[at].number != 0) {
      if (slots_[at].tag == tag_of(hash) && name_of(slots_[at].number - 1) == name) break;
      at = (at + 1) & mask;
    }
    return at;
  }

  std::vector<Slot> slots_;  // a power of two, at most half full
};

}  // namespace gridscope::model
