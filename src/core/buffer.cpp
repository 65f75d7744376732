#include "gridscope/core/buffer.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace gridscope {
namespace {

// Of x86 and most others; where it is another the advice comes to nothing.
constexpr std::size_t kHugePage = 2UL * 1024 * 1024;

std::size_t up_to_multiple(std::size_t size, std::size_t unit) {
  return (size + unit - 1) / unit * unit;
}

}  // namespace

void Buffer::Free::operator()(std::byte* bytes) const {
  std::free(bytes);
}

// A page is given out by the system when it is first written to, at a price: five hundred small
// ones cost more than what is read into them.
std::span<std::byte> Buffer::get(std::size_t size) {
  if (size > capacity_) {
    const std::size_t unit = size > kHugePage / 2 ? kHugePage : alignof(std::max_align_t);
    capacity_ = 0;
    bytes_.reset();
    const std::size_t rounded = up_to_multiple(size, unit);
    bytes_.reset(static_cast<std::byte*>(std::aligned_alloc(unit, rounded)));
    if (bytes_ == nullptr) throw std::bad_alloc();
    if (unit == kHugePage) ::madvise(bytes_.get(), rounded, MADV_HUGEPAGE);
    capacity_ = rounded;
  }
  return {bytes_.get(), size};
}

#ifdef __SSE2__

// Whole lines of a cache are written without being read before.
void copy_past_caches(std::span<const std::byte> from, std::byte* to) {
  constexpr std::size_t kLine = 64;
  const std::size_t past = reinterpret_cast<std::uintptr_t>(to) % kLine;
  const std::size_t head = std::min(from.size(), (kLine - past) % kLine);
  const std::size_t end = head + (from.size() - head) / kLine * kLine;
  std::memcpy(to, from.data(), head);
  for (std::size_t i = head; i < end; i += sizeof(__m128i)) {
    const auto* const next = reinterpret_cast<const __m128i*>(from.data() + i);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_loadu_si128(next));
  }
  std::memcpy(to + end, from.data() + end, from.size() - end);
  _mm_sfence();  // before others are told that the bytes are there
}

#else

void copy_past_caches(std::span<const std::byte> from, std::byte* to) {
  std::memcpy(to, from.data(), from.size());
}

#endif

}  // namespace gridscope
