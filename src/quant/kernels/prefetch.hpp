#pragma once

// Where a kernel pauses between rows or batches, hardware stops reading ahead.

#include <hwy/cache_control.h>

#include <cstddef>
#include <cstdint>

#include "quant/kernels/int4_units.hpp"

namespace gridscope::quant {

inline void prefetch(const std::uint8_t* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  for (std::size_t i = 0; i < bytes; i += kLine) hwy::Prefetch(from + i);
}

// Of a build's codes and its source, from parts of 32 weights on: as many of those that come later.
inline void prefetch_parts(const std::uint8_t* codes, const std::uint8_t* source,
                           std::size_t parts) {
  constexpr std::size_t kAhead = 2048;  // bytes of the source
  prefetch(source + kAhead, parts * kPartSourceBytes);
  prefetch(codes + kAhead / 4, parts * kPartCodeBytes);
}

}  // namespace gridscope::quant
