#pragma once

// Many small reads become few larger ones: a round trip costs more than a gap's worth of bytes.

#include <cstdint>
#include <span>
#include <vector>

#include "gridscope/io/byte_source.hpp"

namespace gridscope::io {

struct CoalesceOptions {
  std::uint64_t max_gap = 64ULL * 1024;            // bytes read for nothing to save a request
  std::uint64_t max_length = 32ULL * 1024 * 1024;  // of one merged range; longer ones are cut
};

// One range to fetch, and which requests (by index into the input) take bytes from it.
struct CoalescedRange {
  ByteRange range;
  std::vector<std::size_t> requests;
};

// Ranges in rising order that together cover every request and do not overlap. Empty requests take
// part in none; a range of one request lies inside it. Requires: offset + size of every request
// fits 64 bits, which check_range sees to.
[[nodiscard]] std::vector<CoalescedRange> coalesce(std::span<const ReadRequest> requests,
                                                   const CoalesceOptions& options = {});

// Copies the bytes of `range` into the parts of `requests` that it covers. `bytes` holds the range.
void scatter(const CoalescedRange& range, std::span<const std::byte> bytes,
             std::span<const ReadRequest> requests);

}  // namespace gridscope::io
