#include "gridscope/io/window.hpp"

#include <algorithm>
#include <cstring>

namespace gridscope::io {

Status Window::put(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), memory_.size() - filled_));
    std::memcpy(memory_.data() + filled_, part.data(), part.size());
    bytes = bytes.subspan(part.size());
    filled_ += part.size();
    left_ -= part.size();
    if (filled_ < memory_.size() && left_ > 0) continue;
    const std::size_t ready = filled_;
    filled_ = 0;
    GRIDSCOPE_CHECK(use_(memory_.first(ready)));
  }
  return {};
}

}  // namespace gridscope::io
