// The idea: requests that touch each other are kept as one entry, so that many small neighbouring
// reads make neither many files nor, the next time, many decompressions of the same file.

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "gridscope/io/coalesce.hpp"
#include "gridscope/io/range_cache.hpp"

namespace gridscope::io {
namespace {

// Requests that together exceed this are kept one by one: putting them together takes a copy.
constexpr std::uint64_t kMaxJoinedBytes = 8ULL * 1024 * 1024;

// Requests joined without a gap. Never cut: what is too long to keep is left to the cache to
// refuse.
std::vector<CoalescedRange> join(std::span<const ReadRequest> requests) {
  const CoalesceOptions touching = {.max_gap = 0,
                                    .max_length = std::numeric_limits<std::uint64_t>::max()};
  std::vector<CoalescedRange> joined;
  for (CoalescedRange& group : coalesce(requests, touching)) {
    if (group.requests.size() == 1 || group.range.length <= kMaxJoinedBytes) {
      joined.push_back(std::move(group));
      continue;
    }
    for (const std::size_t i : group.requests) {
      joined.push_back({.range = {.offset = requests[i].offset, .length = requests[i].into.size()},
                        .requests = {i}});
    }
  }
  return joined;
}

// The bytes of `group`, out of the requests that have been filled.
std::vector<std::byte> gather(const CoalescedRange& group, std::span<const ReadRequest> requests) {
  std::vector<std::byte> bytes(group.range.length);
  for (const std::size_t i : group.requests) {
    std::memcpy(bytes.data() + (requests[i].offset - group.range.offset), requests[i].into.data(),
                requests[i].into.size());
  }
  return bytes;
}

class CachedSource final : public ByteSource {
 public:
  CachedSource(std::unique_ptr<ByteSource> source, RangeCache& cache, std::string key,
               Observer& observer)
      : source_(std::move(source)), cache_(cache), key_(std::move(key)), observer_(observer) {}

  [[nodiscard]] std::uint64_t size() const override { return source_->size(); }
  [[nodiscard]] const SourceIdentity& identity() const override { return source_->identity(); }

  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> into) const override {
    GRIDSCOPE_CHECK(check_range(*this, offset, into.size()));
    if (into.empty() || hit(offset, into)) return {};
    GRIDSCOPE_CHECK(source_->read_at(offset, into));
    cache_.put(key_, offset, into);
    return {};
  }

  [[nodiscard]] Status read_many(std::span<const ReadRequest> requests) const override {
    for (const ReadRequest& request : requests) {
      GRIDSCOPE_CHECK(check_range(*this, request.offset, request.into.size()));
    }
    const std::vector<ReadRequest> missing = serve(requests);
    if (missing.empty()) return {};
    GRIDSCOPE_CHECK(source_->read_many(missing));
    for (const CoalescedRange& group : join(missing)) keep(group, missing);
    return {};
  }

  [[nodiscard]] const ByteSource& uncached() const override { return source_->uncached(); }

 private:
  [[nodiscard]] bool hit(std::uint64_t offset, std::span<std::byte> into) const {
    if (!cache_.get(key_, offset, into)) return false;
    observer_.on_event(RangeRead{.source = identity().name,
                                 .offset = offset,
                                 .bytes = into.size(),
                                 .origin = Origin::kCache});
    return true;
  }

  // Fills what the cache holds and returns the other requests. A group is looked up as a whole
  // first, as it was kept; when that fails, one request at a time.
  [[nodiscard]] std::vector<ReadRequest> serve(std::span<const ReadRequest> requests) const {
    std::vector<ReadRequest> missing;
    for (const CoalescedRange& group : join(requests)) {
      if (group.requests.size() > 1) {
        std::vector<std::byte> bytes(group.range.length);
        if (hit(group.range.offset, bytes)) {
          scatter(group, bytes, requests);
          continue;
        }
      }
      for (const std::size_t i : group.requests) {
        if (!hit(requests[i].offset, requests[i].into)) missing.push_back(requests[i]);
      }
    }
    return missing;
  }

  void keep(const CoalescedRange& group, std::span<const ReadRequest> requests) const {
    if (group.requests.size() == 1) {
      cache_.put(key_, group.range.offset, requests[group.requests.front()].into);
    } else {
      cache_.put(key_, group.range.offset, gather(group, requests));
    }
  }

  const std::unique_ptr<ByteSource> source_;
  RangeCache& cache_;
  const std::string key_;
  Observer& observer_;
};

}  // namespace

std::unique_ptr<ByteSource> make_cached_source(std::unique_ptr<ByteSource> source,
                                               RangeCache& cache, std::string key,
                                               Observer& observer) {
  return std::make_unique<CachedSource>(std::move(source), cache, std::move(key), observer);
}

}  // namespace gridscope::io
