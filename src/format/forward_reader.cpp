#include "gridscope/format/forward_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gridscope/format/limits.hpp"

namespace gridscope::format {

Status ForwardReader::check_room(std::uint64_t count, std::string_view what) const {
  if (count > remaining()) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("{} at byte {} takes {} bytes, but the file has only {} more", what,
                            position(), count, remaining()),
                "the file is incomplete or damaged: fetch it again");
  }
  if (position() > limit_ || count > limit_ - position()) {
    return over_limit(&Limits::header_bytes,
                      fmt::format("{} at byte {} takes {} bytes; that is past the "
                                  "limit of {} bytes for a header",
                                  what, position(), count, limit_));
  }
  return {};
}

Status ForwardReader::need(std::uint64_t count, std::string_view what) {
  GRIDSCOPE_CHECK(check_room(count, what));
  if (count <= buffered().size()) return {};
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(at_));
  start_ += std::exchange(at_, 0);
  const std::uint64_t have = buffer_.size();
  const std::uint64_t rest_of_file = source_.size() - start_ - have;
  buffer_.resize(have + std::min(std::max(count - have, piece_), rest_of_file));
  piece_ = std::min(2 * piece_, kLargestPiece);
  return source_.read_at(start_ + have, std::span(buffer_).subspan(have));
}

Result<std::span<const std::byte>> ForwardReader::bytes(std::uint64_t count,
                                                        std::string_view what) {
  GRIDSCOPE_CHECK(need(count, what));
  const auto result = buffered().first(count);
  at_ += count;
  return result;
}

Status ForwardReader::skip(std::uint64_t count, std::string_view what) {
  GRIDSCOPE_CHECK(check_room(count, what));
  if (count <= buffered().size()) {
    at_ += count;
    return {};
  }
  start_ = position() + count;
  at_ = 0;
  buffer_.clear();
  return {};
}

}  // namespace gridscope::format
