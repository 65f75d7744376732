#pragma once

// Little-endian loads and stores through memcpy: any alignment, any host.

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

namespace gridscope {

// Requires: bytes.size() >= sizeof(T).
template <typename T>
  requires std::integral<T>
[[nodiscard]] T load_le(std::span<const std::byte> bytes) {
  T value = 0;
  std::memcpy(&value, bytes.data(), sizeof(T));
  if constexpr (std::endian::native == std::endian::big) {
    auto raw = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
    std::ranges::reverse(raw);
    value = std::bit_cast<T>(raw);
  }
  return value;
}

// Requires: bytes.size() >= sizeof(T).
template <typename T>
  requires std::integral<T>
void store_le(std::span<std::byte> bytes, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes[i] = static_cast<std::byte>(static_cast<std::make_unsigned_t<T>>(value) >> (8 * i));
  }
}

}  // namespace gridscope
