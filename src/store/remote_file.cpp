// The idea: a read asks the file's own URL with its range, so that a file which the Hub serves
// itself costs one request and one on a content host costs two, the first time. What the redirects
// led to is kept as a Location and asked directly from then on. Every read has one second chance:
// when the location fails in a way that a fresh one may mend, it is dropped and resolved again, and
// whatever comes of that stands. Locations are compared by pointer, so that of many reads which
// failed on the same one, the first renews it and the others use what it found.

#include "gridscope/store/remote_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <utility>

#include "gridscope/core/buffer.hpp"
#include "gridscope/core/checked.hpp"
#include "gridscope/core/parallel.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/http/fields.hpp"
#include "gridscope/io/coalesce.hpp"
#include "gridscope/io/window.hpp"
#include "gridscope/store/hub_errors.hpp"
#include "gridscope/store/resolve_chain.hpp"
#include "gridscope/store/signed_url.hpp"

namespace gridscope::store {
namespace {

constexpr std::size_t kSha256Digits = 64;
// A longer range is asked for in pieces of this, at once: one connection of many hosts is slower
// than the line.
constexpr std::uint64_t kMaxPieceBytes = 4ULL * 1024 * 1024;

// A server that answers so soon loses nothing by being asked for one thing after the other.
constexpr std::chrono::nanoseconds kAtOnce = std::chrono::milliseconds(2);

constexpr std::string_view kIgnoredRemedy =
    "reading on takes more bytes than needed; a downloaded copy is faster";

// So large a range is done with before anybody looks at its first bytes.
constexpr std::size_t kBulk = 256UL * 1024;

// Fills `into` with bytes that come one after the other.
io::UseBytes copy_into(std::span<std::byte> into) {
  const bool is_bulk = into.size() >= kBulk;
  return [into, is_bulk](std::span<const std::byte> bytes) mutable -> Status {
    if (is_bulk) {
      copy_past_caches(bytes, into.data());
    } else {
      std::memcpy(into.data(), bytes.data(), bytes.size());
    }
    into = into.subspan(bytes.size());
    return {};
  };
}

// A piece of the file that is asked for as one range: what is still to come of it, and who takes
// that. Bytes that were taken are not asked for again, whoever is asked next.
class Piece {
 public:
  Piece(const io::ByteRange& range, io::UseBytes take) : range_(range), take_(std::move(take)) {}
  Piece(std::uint64_t offset, std::span<std::byte> into)
      : Piece({.offset = offset, .length = into.size()}, copy_into(into)) {}

  [[nodiscard]] const io::ByteRange& range() const { return range_; }
  [[nodiscard]] bool has_begun() const { return has_begun_; }

  Status put(std::span<const std::byte> bytes) {
    has_begun_ = true;
    range_.offset += bytes.size();
    range_.length -= bytes.size();
    return take_(bytes);
  }

 private:
  io::ByteRange range_;
  io::UseBytes take_;
  bool has_begun_ = false;
};

// Where the bytes are asked for just now.
struct Location {
  http::Url url;
  std::chrono::system_clock::time_point good_until;
};

struct Answer {
  http::RangeReply reply;
  http::Url url;  // that gave it
};

// What a range is held against.
struct Known {
  std::optional<std::uint64_t> size;
  std::string etag;
};

Result<http::RangeReply> ask_range(const RemoteSession& session, const http::Url& url,
                                   const Known& known, Piece& piece) {
  auto reply = session.client().read_range(
      {.url = url,
       .headers = session.headers_for(url),
       .offset = piece.range().offset,
       .length = piece.range().length,
       .size = known.size,
       .etag = known.etag},
      [&piece](std::span<const std::byte> bytes) { return piece.put(bytes); });
  const bool unreachable = !reply && (reply.error().code == ErrorCode::kUnavailable ||
                                      reply.error().code == ErrorCode::kTimeout);
  if (unreachable && session.is_hub() && !session.is_own(url)) {
    return tl::make_unexpected(with_allow_list(std::move(reply).error()));
  }
  return reply;
}

// Asks `url` and whatever it redirects to.
Result<Answer> ask_following(const RemoteSession& session, const http::Url& url, const Known& known,
                             Piece& piece) {
  Answer answer{.reply = {}, .url = url};
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    GRIDSCOPE_TRY(answer.reply, ask_range(session, answer.url, known, piece));
    if (!http::is_redirect(answer.reply.head.status)) return answer;
    GRIDSCOPE_TRY(answer.url, session.redirect_target(answer.url, answer.reply.head));
  }
  return fail(ErrorCode::kCorrupt,
              fmt::format("{} leads through more than {} redirects", url.display(), kMaxRedirects));
}

void warn_if_ignored(RemoteSession& session, const Answer& answer) {
  if (!answer.reply.range_ignored) return;
  session.warn_once(
      "RANGE_IGNORED",
      fmt::format("{} answers with whole files when asked for a range", answer.url.origin()),
      kIgnoredRemedy);
}

// kCorrupt and kUnsupported are what is said of a file for its own bytes, and a report may be made
// of them. An answer that makes no sense, from a login page that stepped between for one, brought
// none of its bytes.
Error about_the_server(Error error) {
  if (error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kUnsupported) {
    error.code = ErrorCode::kUnavailable;
  }
  return error;
}

bool is_sha256(std::string_view id) {
  return id.size() == kSha256Digits &&
         id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

class RemoteFile final : public io::ByteSource {
 public:
  explicit RemoteFile(RemoteFileSpec spec)
      : spec_(std::move(spec)),
        identity_{.name = spec_.name, .version = spec_.content_id},
        prefix_(std::move(spec_.prefix)),
        shortest_wait_(spec_.shortest_wait) {}

  [[nodiscard]] std::uint64_t size() const override { return spec_.size; }
  [[nodiscard]] const io::SourceIdentity& identity() const override { return identity_; }

  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> into) const override {
    const io::ReadRequest request{.offset = offset, .into = into};
    return read_many({&request, 1});
  }

  [[nodiscard]] Status read_many(std::span<const io::ReadRequest> requests) const override {
    for (const io::ReadRequest& request : requests) {
      GRIDSCOPE_CHECK(check_range(*this, request.offset, request.into.size()));
    }
    const std::vector<io::CoalescedRange> ranges =
        io::coalesce(requests, {.max_length = kMaxPieceBytes});
    const auto read = [&](std::size_t i) { return read_range(ranges[i], requests); };
    const std::size_t at_once = distance() == io::Distance::kFar ? session().connections() : 1;
    return parallel_chunks(ranges.size(), at_once, read, session().client().stop())
        .map_error(about_the_server);
  }

  // One request, whatever its length: those who read through a window are many.
  [[nodiscard]] Status read_through(const io::ByteRange& range, std::span<std::byte> memory,
                                    const io::UseBytes& use) const override {
    GRIDSCOPE_CHECK(check_range(*this, range.offset, range.length));
    if (range.length == 0) return {};
    Status used;
    const io::UseBytes remember = [&](std::span<const std::byte> bytes) {
      used = use(bytes);
      return used;
    };
    io::Window window(memory, range.length, remember);
    Piece piece(range, [&](std::span<const std::byte> bytes) { return window.put(bytes); });
    Status status = read_piece(piece);
    return used ? std::move(status).map_error(about_the_server) : used;
  }

  // As long as it has not been asked anything, one cannot know.
  [[nodiscard]] io::Distance distance() const override {
    return shortest_wait_.load() > kAtOnce ? io::Distance::kFar : io::Distance::kNear;
  }

 private:
  using LocationPtr = std::shared_ptr<const Location>;
  enum class Probe : std::uint8_t { kRange, kHead };

  [[nodiscard]] RemoteSession& session() const { return *spec_.session; }
  [[nodiscard]] Known known() const { return {.size = spec_.size, .etag = spec_.etag}; }

  [[nodiscard]] Status read_range(const io::CoalescedRange& range,
                                  std::span<const io::ReadRequest> requests) const {
    const std::uint64_t offset = range.range.offset;
    if (range.requests.size() == 1) {
      const io::ReadRequest& only = requests[range.requests.front()];
      Piece piece(offset, only.into.subspan(offset - only.offset, range.range.length));
      return read_piece(piece);
    }
    std::vector<std::byte> bytes(range.range.length);
    Piece piece(offset, bytes);
    GRIDSCOPE_CHECK(read_piece(piece));
    scatter(range, bytes, requests);
    return {};
  }

  [[nodiscard]] Status read_piece(Piece& piece) const {
    if (const auto bytes = from_prefix(piece.range())) return piece.put(*bytes);
    const bool may_read_around = piece.range().offset > 0 && piece.range().end() <= kMaxReadAround;
    if (ranges_ignored_ && may_read_around) return read_around(piece);
    const Status status = read_with_second_chance(piece);
    const bool refused =
        !status && status.error().code == ErrorCode::kUnsupported && !piece.has_begun();
    return refused && may_read_around ? read_around(piece) : status;
  }

  // Part of the prefix, which is given up once it was read whole.
  [[nodiscard]] std::optional<std::vector<std::byte>> from_prefix(
      const io::ByteRange& range) const {
    const std::scoped_lock lock(prefix_mutex_);
    if (range.offset >= prefix_.size() || range.length > prefix_.size() - range.offset) {
      return std::nullopt;
    }
    if (range.length == prefix_.size()) return std::exchange(prefix_, {});
    const auto begin = prefix_.begin() + static_cast<std::ptrdiff_t>(range.offset);
    return std::vector<std::byte>(begin, begin + static_cast<std::ptrdiff_t>(range.length));
  }

  // For a server that ignores ranges: everything up to the piece's end, of which the end is kept.
  // One piece at a time, for the sake of memory.
  [[nodiscard]] Status read_around(Piece& piece) const {
    const std::scoped_lock lock(around_mutex_);
    std::vector<std::byte> whole(piece.range().end());
    Piece all(0, whole);
    GRIDSCOPE_CHECK(read_with_second_chance(all));
    return piece.put(std::span(whole).subspan(piece.range().offset));
  }

  [[nodiscard]] Status read_with_second_chance(Piece& piece) const {
    LocationPtr used = current();
    Result<Answer> answer = ask(used, piece, Probe::kRange);
    if (const auto probe = worth_renewing(answer, used, piece)) {
      drop(used);
      used = current();
      answer = ask(used, piece, *probe);
    }
    GRIDSCOPE_CHECK(answer);
    note_wait(answer->reply.waited);
    return accept(*answer, piece);
  }

  void note_wait(std::chrono::nanoseconds wait) const {
    auto shortest = shortest_wait_.load();
    while (wait < shortest && !shortest_wait_.compare_exchange_weak(shortest, wait)) {
    }
  }

  // How to look the location up again, when a new one may do better than `used` did. A refused
  // range or a wrong size on a Hub is asked for by HEAD: caches on the way have been seen to apply
  // the range to a redirect. Not once some bytes were taken, which may be those of another file.
  [[nodiscard]] std::optional<Probe> worth_renewing(const Result<Answer>& answer,
                                                    const LocationPtr& used,
                                                    const Piece& piece) const {
    if (!answer) {
      const ErrorCode code = answer.error().code;
      const bool contradicts =
          !piece.has_begun() && (code == ErrorCode::kChanged || code == ErrorCode::kCorrupt);
      return session().is_hub() && contradicts ? std::optional(Probe::kHead) : std::nullopt;
    }
    const int status = answer->reply.head.status;
    const bool refused = status == 401 || status == 403 || status == 404;
    const bool kept = used != nullptr && used->url != spec_.url;
    const bool elsewhere = !session().is_own(answer->url);
    return refused && (kept || elsewhere) ? std::optional(Probe::kRange) : std::nullopt;
  }

  // The location in use, unless it is about to expire.
  [[nodiscard]] LocationPtr current() const {
    const std::scoped_lock lock(location_mutex_);
    const bool good =
        location_ != nullptr && session().client().clock().wall_now() < location_->good_until;
    return good ? location_ : nullptr;
  }

  void drop(const LocationPtr& used) const {
    const std::scoped_lock lock(location_mutex_);
    if (location_ == used) location_ = nullptr;
  }

  LocationPtr keep(Location location) const {
    auto kept = std::make_shared<const Location>(std::move(location));
    const std::scoped_lock lock(location_mutex_);
    location_ = kept;
    return kept;
  }

  // Asks the location; looks it up first when there is none, and leaves what was used in `used`.
  Result<Answer> ask(LocationPtr& used, Piece& piece, Probe probe) const {
    if (used == nullptr) {
      const std::uint64_t failed_before = failed_lookups_;
      const std::scoped_lock lock(resolve_mutex_);
      used = current();
      if (used == nullptr) {
        // One that was waited for was tried for as long as may be; those that waited need not be.
        if (failed_lookups_ != failed_before) return tl::make_unexpected(lookup_error_);
        auto found = resolve(used, piece, probe);
        if (!found) return failed_lookup(std::move(found).error());
        const std::optional<Answer>& direct = *found;
        if (direct) return *direct;
      }
    }
    return ask_following(session(), used->url, known(), piece);
  }

  // Requires: resolve_mutex_ is held.
  tl::unexpected<Error> failed_lookup(Error error) const {
    if (error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout) {
      lookup_error_ = error;
      ++failed_lookups_;
    }
    return tl::make_unexpected(std::move(error));
  }

  // Looks up where the file lies. Returns an answer when the own hops gave the bytes, or an error
  // status, themselves.
  Result<std::optional<Answer>> resolve(LocationPtr& used, Piece& piece, Probe probe) const {
    Answer direct;
    const AskHop hop = [&](const http::Url& url) -> Result<http::ResponseHead> {
      direct.url = url;
      if (probe == Probe::kHead) {
        GRIDSCOPE_TRY(direct.reply.head, head_of(url));
      } else {
        GRIDSCOPE_TRY(direct.reply, ask_range(session(), url, known(), piece));
      }
      return direct.reply.head;
    };
    GRIDSCOPE_TRY(Resolution found, resolve_chain(session(), spec_.url, hop));
    const int status = direct.reply.head.status;
    const bool has_content = status == 200 || status == 206;
    if (!found.elsewhere && !has_content) {
      if (probe == Probe::kHead) return resolve(used, piece, Probe::kRange);
      return direct;
    }
    GRIDSCOPE_CHECK(check(found, direct.url));
    const auto now = session().client().clock().wall_now();
    used = keep({.url = found.url, .good_until = good_until(found.url, now)});
    if (found.elsewhere || probe == Probe::kHead) return std::nullopt;
    return direct;
  }

  Result<http::ResponseHead> head_of(const http::Url& url) const {
    const http::Request request{
        .method = http::Method::kHead, .url = url, .headers = session().headers_for(url)};
    GRIDSCOPE_TRY(http::Document document, session().client().fetch(request, kProbeBytes));
    return std::move(document.head);
  }

  // Holds what the Hub says of the file against what is known of it.
  [[nodiscard]] Status check(const Resolution& found, const http::Url& last) const {
    if (!session().is_hub()) return {};
    const HopMetadata& told = found.metadata;
    if (told.commit.empty()) {
      return tl::make_unexpected(not_a_hub(session(), last, "sent no X-Repo-Commit header"));
    }
    if (told.commit != spec_.commit) {
      return fail(ErrorCode::kChanged,
                  fmt::format("{} comes from commit {}, not from the pinned {}", spec_.name,
                              quote(told.commit), spec_.commit),
                  "start again");
    }
    if (told.size && *told.size != spec_.size) {
      return fail(ErrorCode::kChanged,
                  fmt::format("{}: the listing says {} bytes, the file's headers say {}",
                              spec_.name, spec_.size, *told.size),
                  "start again with --no-cache");
    }
    const bool comparable = is_sha256(told.content_id) && is_sha256(spec_.content_id);
    if (comparable && told.content_id != spec_.content_id) {
      return fail(
          ErrorCode::kChanged,
          fmt::format("{}: the listing and the file's headers name different contents", spec_.name),
          "start again with --no-cache");
    }
    return {};
  }

  [[nodiscard]] Status accept(const Answer& answer, const Piece& piece) const {
    if (!answer.reply.has_bytes()) return tl::make_unexpected(refusal(answer));
    if (piece.range().length > 0) {
      return fail(ErrorCode::kCorrupt,
                  fmt::format("{}: {} bytes are missing from byte {} on", spec_.name,
                              piece.range().length, piece.range().offset));
    }
    warn_if_ignored(session(), answer);
    if (answer.reply.range_ignored) ranges_ignored_ = true;
    return {};
  }

  [[nodiscard]] Error refusal(const Answer& answer) const {
    const FailedAnswer failed{
        .head = answer.reply.head, .body = answer.reply.body, .url = answer.url};
    if (!session().is_hub() || !session().is_own(answer.url)) {
      return with_context(content_error(failed), spec_.name);
    }
    const HubQuestion question{.endpoint = session().endpoint(),
                               .repo_id = spec_.repo_id,
                               .token_sent = session().sends_token_to(answer.url)};
    return with_context(hub_error(failed, question), spec_.name);
  }

  RemoteFileSpec spec_;
  const io::SourceIdentity identity_;

  mutable std::mutex prefix_mutex_;
  mutable std::vector<std::byte> prefix_;

  // Held while a location is looked up, so that one read does it and the others wait.
  mutable std::mutex resolve_mutex_;
  mutable Error lookup_error_;  // of the last that failed
  mutable std::atomic<std::uint64_t> failed_lookups_ = 0;
  mutable std::mutex location_mutex_;
  mutable LocationPtr location_;

  mutable std::atomic<std::chrono::nanoseconds> shortest_wait_;

  mutable std::atomic<bool> ranges_ignored_ = false;
  mutable std::mutex around_mutex_;
};

bool is_web_page(const http::ResponseHead& head) {
  const std::string* type = head.headers.find("Content-Type");
  return type != nullptr && type->starts_with("text/html");
}

// What stands for this version of a file and no other; empty when nothing does. A date counts only
// once it is past, since a file may be written twice in one second.
std::string validator_of(const http::Headers& headers, std::uint64_t size) {
  if (const std::string* etag = headers.find("ETag")) {
    return etag->size() > 2 && etag->starts_with('"') ? *etag : std::string();
  }
  const std::string* modified = headers.find("Last-Modified");
  const std::string* now = headers.find("Date");
  const bool past = modified != nullptr && now != nullptr && *now != *modified;
  return past ? fmt::format("{} {}", *modified, size) : std::string();
}

}  // namespace

std::unique_ptr<io::ByteSource> make_remote_file(RemoteFileSpec spec) {
  return std::make_unique<RemoteFile>(std::move(spec));
}

Result<std::optional<RemoteFileSpec>> probe_remote_file(
    const std::shared_ptr<RemoteSession>& session, const http::Url& url, std::size_t first_bytes) {
  RemoteFileSpec spec{.session = session, .url = url, .name = url.display()};
  spec.prefix.resize(first_bytes);
  Piece first(0, spec.prefix);
  GRIDSCOPE_TRY(const Answer answer, ask_following(*session, url, {}, first));
  const http::RangeReply& reply = answer.reply;
  const int status = reply.head.status;
  if (status == 404 || status == 410) return std::nullopt;
  if (!reply.has_bytes() && reply.total != 0U) {
    return tl::make_unexpected(
        content_error({.head = reply.head, .body = reply.body, .url = answer.url}));
  }
  if (is_web_page(reply.head)) {
    return fail(ErrorCode::kNotFound,
                fmt::format("{} answers with a web page instead of the file (a login?)",
                            answer.url.display()),
                "check the address, and whether it can be read without signing in");
  }
  if (!reply.total) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("{} does not say how long the file is", answer.url.display()),
                "download the file and name it on disk");
  }
  warn_if_ignored(*session, answer);
  spec.size = *reply.total;
  spec.shortest_wait = reply.waited;
  spec.prefix.resize(reply.received);
  if (const std::string* etag = reply.head.headers.find("ETag")) {
    spec.etag = *etag;
    spec.content_id = http::bare_etag(*etag);
  }
  spec.validator = validator_of(reply.head.headers, spec.size);
  return spec;
}

}  // namespace gridscope::store
