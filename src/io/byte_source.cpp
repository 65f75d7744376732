#include "gridscope/io/byte_source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gridscope/core/text.hpp"

namespace gridscope::io {

Status ByteSource::read_many(std::span<const ReadRequest> requests) const {
  for (const ReadRequest& request : requests) {
    GRIDSCOPE_CHECK(read_at(request.offset, request.into));
  }
  return {};
}

Status ByteSource::read_through(const ByteRange& range, std::span<std::byte> window,
                                const UseBytes& use) const {
  GRIDSCOPE_CHECK(check_range(*this, range.offset, range.length));
  for (std::uint64_t done = 0; done < range.length;) {
    const auto part = window.first(std::min<std::uint64_t>(window.size(), range.length - done));
    GRIDSCOPE_CHECK(read_at(range.offset + done, part));
    GRIDSCOPE_CHECK(use(part));
    done += part.size();
  }
  return {};
}

Status check_range(const ByteSource& source, std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t size = source.size();
  if (offset <= size && length <= size - offset) return {};
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("{} bytes at {} asked of {}, which has {} bytes", length, offset,
                          quote(source.identity().name), size));
}

}  // namespace gridscope::io
