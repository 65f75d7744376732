#include "gridscope/core/buffer.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

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

}  // namespace gridscope
