#include "gridscope/format/tensor_table.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>

#include "gridscope/core/checked.hpp"

namespace gridscope::format {

std::uint64_t TensorInfo::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
}

const std::string* TensorTable::find_metadata(std::string_view key) const {
  const auto found = std::ranges::find(metadata, key, &std::pair<std::string, std::string>::first);
  return found == metadata.end() ? nullptr : &found->second;
}

std::optional<std::uint64_t> storage_bytes(Dtype dtype, std::uint64_t elements) {
  const DtypeInfo& info = dtype_info(dtype);
  if (elements % info.block_elements != 0) return std::nullopt;
  const auto bits = checked_mul(elements / info.block_elements, info.block_bits);
  if (!bits || *bits % 8 != 0) return std::nullopt;
  return *bits / 8;
}

// Sorted by hash first: names of tensors share long prefixes, which makes them slow to compare, and
// names chosen to collide cost no more than sorting them would.
std::optional<std::size_t> find_repeated(std::span<const std::string_view> names) {
  std::vector<std::tuple<std::size_t, std::string_view, std::size_t>> sorted;
  sorted.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    sorted.emplace_back(std::hash<std::string_view>{}(names[i]), names[i], i);
  }
  std::ranges::sort(sorted);
  std::optional<std::size_t> repeated;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const auto& [hash, name, position] = sorted[i];
    if (std::get<0>(sorted[i - 1]) != hash || std::get<1>(sorted[i - 1]) != name) continue;
    repeated = std::min(position, repeated.value_or(position));
  }
  return repeated;
}

}  // namespace gridscope::format
