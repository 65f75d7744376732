// The idea: requests in order of offset are laid end to end. A range grows as long as the next
// request starts within the permitted gap and the whole stays within the permitted length;
// otherwise a new range starts, behind the last one where the two overlap, and a request that is
// too long by itself is cut. Because ranges and requests then stand in the same order, one pass
// tells which requests take from which ranges.

#include "gridscope/io/coalesce.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gridscope::io {
namespace {

std::uint64_t end_of(const ReadRequest& request) {
  return request.offset + request.into.size();
}

// Indices of the requests that ask for something, by rising offset.
std::vector<std::size_t> in_file_order(std::span<const ReadRequest> requests) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (!requests[i].into.empty()) order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(requests[i].offset, i); });
  return order;
}

bool may_grow(const ByteRange& range, const ReadRequest& request, const CoalesceOptions& options) {
  const bool near =
      request.offset <= range.end() || request.offset - range.end() <= options.max_gap;
  return near && end_of(request) - range.offset <= options.max_length;
}

void cover(const ReadRequest& request, const CoalesceOptions& options,
           std::vector<CoalescedRange>& ranges) {
  if (!ranges.empty() && may_grow(ranges.back().range, request, options)) {
    ByteRange& last = ranges.back().range;
    last.length = std::max(last.end(), end_of(request)) - last.offset;
    return;
  }
  const std::uint64_t longest = std::max<std::uint64_t>(options.max_length, 1);
  std::uint64_t at =
      ranges.empty() ? request.offset : std::max(request.offset, ranges.back().range.end());
  while (at < end_of(request)) {
    const std::uint64_t length = std::min(end_of(request) - at, longest);
    ranges.push_back({.range = {.offset = at, .length = length}, .requests = {}});
    at += length;
  }
}

}  // namespace

std::vector<CoalescedRange> coalesce(std::span<const ReadRequest> requests,
                                     const CoalesceOptions& options) {
  const std::vector<std::size_t> order = in_file_order(requests);
  std::vector<CoalescedRange> ranges;
  for (const std::size_t i : order) cover(requests[i], options, ranges);

  std::size_t first = 0;
  for (const std::size_t i : order) {
    while (ranges[first].range.end() <= requests[i].offset) ++first;
    for (std::size_t r = first; r < ranges.size(); ++r) {
      if (ranges[r].range.offset >= end_of(requests[i])) break;
      ranges[r].requests.push_back(i);
    }
  }
  return ranges;
}

void scatter(const CoalescedRange& range, std::span<const std::byte> bytes,
             std::span<const ReadRequest> requests) {
  for (const std::size_t i : range.requests) {
    const ReadRequest& request = requests[i];
    const std::uint64_t begin = std::max(range.range.offset, request.offset);
    const std::uint64_t end = std::min(range.range.end(), end_of(request));
    std::memcpy(request.into.data() + (begin - request.offset),
                bytes.data() + (begin - range.range.offset), end - begin);
  }
}

}  // namespace gridscope::io
