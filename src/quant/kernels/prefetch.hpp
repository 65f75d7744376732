#pragma once

// Where a kernel pauses between rows or batches, hardware stops reading ahead.

#include <hwy/cache_control.h>

#include <cstddef>
#include <cstdint>

namespace gridscope::quant {

inline void prefetch(const std::uint8_t* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  for (std::size_t i = 0; i < bytes; i += kLine) hwy::Prefetch(from + i);
}

}  // namespace gridscope::quant
