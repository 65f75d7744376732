#pragma once

// Where a kernel pauses between rows or batches, hardware stops reading ahead.

#include <hwy/base.h>
#include <hwy/cache_control.h>

#include <cstddef>
#include <cstdint>

#include "quant/kernels/int4_units.hpp"

namespace gridscope::quant {

inline constexpr std::size_t kLine = 64;  // bytes

HWY_INLINE void prefetch(const std::uint8_t* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += kLine) hwy::Prefetch(from + i);
}

// Of a build's codes and its source, from parts of 32 weights on: as many of those that come later.
// They are looked at once, so they go to the nearest cache only, and push out little of what is to
// stay there: the tables of a kernel.
HWY_INLINE void prefetch_parts(const std::uint8_t* codes, const std::uint8_t* source,
                               std::size_t parts) {
  constexpr std::size_t kAhead = 48;  // parts
  constexpr int kRead = 0;
  constexpr int kOnce = 0;
  for (std::size_t j = 0; j < parts; ++j) {
    __builtin_prefetch(source + (kAhead + j) * kPartSourceBytes, kRead, kOnce);
  }
  for (std::size_t j = 0; j < parts; j += kLine / kPartCodeBytes) {
    __builtin_prefetch(codes + (kAhead + j) * kPartCodeBytes, kRead, kOnce);
  }
}

}  // namespace gridscope::quant
