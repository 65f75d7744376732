#include "gridscope/model/name_table.hpp"

#include <bit>
#include <functional>

namespace gridscope::model {
namespace {

std::uint64_t hash_of(std::string_view name) {
  return std::hash<std::string_view>{}(name);
}
std::uint32_t tag_of(std::uint64_t hash) {
  return static_cast<std::uint32_t>(hash >> 32U);
}

}  // namespace

NameTable::NameTable(std::span<const format::TensorInfo> tensors)
    : slots_(std::bit_ceil(2 * tensors.size() + 1)) {
  for (std::uint32_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t hash = hash_of(tensors[i].name);
    Slot& slot = slots_[locate(tensors, tensors[i].name, hash)];
    if (slot.tensor != 0) {
      copies_.push_back({.first = slot.tensor - 1, .second = i});
    } else {
      slot = {.tag = tag_of(hash), .tensor = i + 1};
    }
  }
}

std::optional<std::uint32_t> NameTable::find(std::span<const format::TensorInfo> tensors,
                                             std::string_view name) const {
  if (slots_.empty()) return std::nullopt;
  const Slot& slot = slots_[locate(tensors, name, hash_of(name))];
  return slot.tensor == 0 ? std::nullopt : std::optional(slot.tensor - 1);
}

std::size_t NameTable::locate(std::span<const format::TensorInfo> tensors, std::string_view name,
                              std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].tensor != 0) {
    if (slots_[at].tag == tag_of(hash) && tensors[slots_[at].tensor - 1].name == name) break;
    at = (at + 1) & mask;
  }
  return at;
}

}  // namespace gridscope::model
