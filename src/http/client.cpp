#include "gridscope/http/client.hpp"

// A range is read in as many attempts as it takes, all into one sink, which holds what is known of
// the file: its size and ETag (from the caller, else from the first answer) and how far the bytes
// have come. Each attempt asks for what is still missing. An attempt that got further than any
// before it starts the count of attempts anew, so a long read survives many breaks, while a server
// that gives nothing is left when RetryPolicy says so.

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "gridscope/core/checked.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/http/content_range.hpp"
#include "gridscope/http/fields.hpp"

namespace gridscope::http {
namespace {

constexpr int kOk = 200;
constexpr int kPartialContent = 206;
constexpr int kRangeNotSatisfiable = 416;
constexpr std::size_t kMaxErrorBody = 4'096;
// A body this small is read to its end, so that the connection can be used again.
constexpr std::size_t kMaxDiscarded = 65'536;

bool is_success(int status) {
  return status >= 200 && status < 300;
}

void append(std::string& text, std::span<const std::byte> bytes) {
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::optional<std::uint64_t> content_length(const Headers& headers) {
  const std::string* value = headers.find("Content-Length");
  return value == nullptr ? std::nullopt : parse_digits(*value);
}

Status check_identity(const Headers& headers) {
  const std::string* encoding = headers.find("Content-Encoding");
  if (encoding == nullptr || encoding->empty() || equals_ignoring_case(*encoding, "identity")) {
    return {};
  }
  return fail(ErrorCode::kUnsupported,
              fmt::format("answered with Content-Encoding {} although identity was asked for",
                          quote(*encoding)),
              "use another server or proxy, or a downloaded copy");
}

// Uniform in [0, 1). The time of a failure is random enough to spread retries out.
double random_at(std::chrono::steady_clock::time_point now) {
  auto bits = std::bit_cast<std::uint64_t>(now.time_since_epoch().count()) + 0x9E3779B97F4A7C15U;
  bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9U;
  bits = (bits ^ (bits >> 27U)) * 0x94D049BB133111EBU;
  constexpr double kScale = 1.0 / 9007199254740992.0;  // 2^-53
  return static_cast<double>((bits ^ (bits >> 31U)) >> 11U) * kScale;
}

std::string describe_request(const Request& request) {
  return fmt::format("{} {}", method_name(request.method), request.url.display());
}

bool may_pass(const SendResult& head) {
  return head ? is_transient_status(head->status) : is_transient(head.error().code);
}

HostName host_of(const SendResult& head) {
  return head ? HostName::kResolved : head.error().host;
}

class DocumentSink final : public BodySink {
 public:
  DocumentSink(Method method, std::uint64_t max_bytes) : method_(method), max_bytes_(max_bytes) {}

  Result<Flow> on_head(const ResponseHead& head) override {
    body_.clear();
    success_ = is_success(head.status);
    if (!success_ || method_ == Method::kHead) return Flow::kMore;
    GRIDSCOPE_CHECK(check_identity(head.headers));
    if (content_length(head.headers).value_or(0) > max_bytes_) return too_long();
    return Flow::kMore;
  }

  Result<Flow> on_body(std::span<const std::byte> bytes) override {
    const std::uint64_t room = max_bytes_ - body_.size();
    if (bytes.size() <= room) {
      append(body_, bytes);
      return Flow::kMore;
    }
    if (success_) return too_long();
    append(body_, bytes.first(room));
    return Flow::kEnough;
  }

  std::string take_body() { return std::move(body_); }

 private:
  [[nodiscard]] tl::unexpected<Error> too_long() const {
    return fail(ErrorCode::kLimit,
                fmt::format("the answer is longer than {}", format_bytes(max_bytes_)));
  }

  Method method_;
  std::uint64_t max_bytes_;
  bool success_ = false;
  std::string body_;
};

// The size of the file in a 416, "bytes */N".
std::optional<std::uint64_t> refused_total(const Headers& headers) {
  const std::string* value = headers.find("Content-Range");
  if (value == nullptr) return std::nullopt;
  const Result<ContentRange> range = parse_content_range(*value);
  if (!range) return std::nullopt;
  return range->total;
}

// The response is whole although no length was given.
bool is_chunked(const Headers& headers) {
  const std::string* coding = headers.find("Transfer-Encoding");
  return coding != nullptr && equals_ignoring_case(*coding, "chunked");
}

}  // namespace

class Client::RangeSink final : public BodySink {
 public:
  // Requires: offset + length does not overflow and offset < size, when there is one.
  RangeSink(const RangeQuery& query, const TakeBytes& take, const Clock& clock)
      : clock_(clock),
        offset_(query.offset),
        take_(take),
        size_(query.size),
        etag_(bare_etag(query.etag)),
        position_(query.offset),
        end_(std::min(query.offset + query.length, query.size.value_or(UINT64_MAX))),
        furthest_(query.offset) {}

  Result<Flow> on_head(const ResponseHead& head) override {
    waited_ = clock_.now() - asked_at_;
    head_ = head;
    mode_ = Mode::kOther;
    body_.clear();
    discarded_ = 0;
    if (head.status != kOk && head.status != kPartialContent) return Flow::kMore;
    GRIDSCOPE_CHECK(check_identity(head.headers));
    const std::string* range = head.headers.find("Content-Range");
    if (range != nullptr) return accept_range(head, *range);
    if (head.status == kOk) return accept_whole_file(head);
    return fail(ErrorCode::kCorrupt, "answered 206 without Content-Range");
  }

  Result<Flow> on_body(std::span<const std::byte> bytes) override {
    if (mode_ == Mode::kOther) return keep_for_people(bytes);
    const std::size_t missing = end_ - position_;
    const bool to_the_end = mode_ == Mode::kRange || size_ == end_;
    if (to_the_end && bytes.size() > missing) {
      return fail(ErrorCode::kCorrupt,
                  fmt::format("the body goes on past byte {}, where it must end", end_));
    }
    taken_ = take(bytes.first(std::min(bytes.size(), missing)));
    GRIDSCOPE_CHECK(taken_);
    return is_complete() && !to_the_end ? Flow::kEnough : Flow::kMore;
  }

  // A request for what is still missing is made now.
  void begin() { asked_at_ = clock_.now(); }
  // What is still missing, as a Range header has it.
  [[nodiscard]] std::string missing() const {
    return fmt::format("bytes={}-{}", position_, end_ - 1);
  }
  [[nodiscard]] bool is_complete() const { return position_ == end_; }
  [[nodiscard]] bool knows_size() const { return size_.has_value(); }
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] std::uint64_t furthest() const { return furthest_; }
  [[nodiscard]] std::uint64_t bytes_received() const { return bytes_received_; }
  // What the taker said last.
  [[nodiscard]] const Status& taken() const { return taken_; }

  // Called when a response has ended in good order: kUnavailable when its body was too short.
  Status check_whole() {
    if (mode_ == Mode::kOther || is_complete()) return {};
    if (mode_ == Mode::kWholeFile && !size_) {
      if (!is_chunked(head_.headers)) {
        return fail(ErrorCode::kUnsupported,
                    "the server ignores ranges and does not say how long the file is",
                    "download the file and read it from disk");
      }
      size_ = end_ = position_;
      return {};
    }
    return fail(
        ErrorCode::kUnavailable,
        fmt::format("the body ended at byte {} of the range that ends at {}", position_, end_));
  }

  [[nodiscard]] RangeReply take_reply() {
    return {.head = std::move(head_),
            .waited = waited_,
            .received = position_ - offset_,
            .total = size_,
            .range_ignored = mode_ == Mode::kWholeFile,
            .body = std::move(body_)};
  }

  // What a 416 means in the end: the file is empty, it is another one, or somebody is wrong.
  [[nodiscard]] Result<RangeReply> take_refusal() {
    const auto total = refused_total(head_.headers);
    if (!size_ && total == 0U && offset_ == 0) {
      return RangeReply{.head = std::move(head_), .total = total};
    }
    ErrorCode code = ErrorCode::kCorrupt;
    if (total && size_ && *total != *size_) code = ErrorCode::kChanged;
    if (total && !size_ && *total <= position_) code = ErrorCode::kInvalidArgument;
    return fail(code, fmt::format("the server refused bytes {}-{}{} with status 416 and {}",
                                  position_, end_ - 1, size_ ? fmt::format(" of {}", *size_) : "",
                                  total ? fmt::format("gives the file {} bytes", *total)
                                        : "does not say how long the file is"));
  }

 private:
  enum class Mode : std::uint8_t {
    kOther,      // no bytes of the file: a redirect, an error
    kRange,      // [position, end) and nothing else
    kWholeFile,  // the file from its first byte
  };

  Result<Flow> accept_range(const ResponseHead& head, std::string_view value) {
    GRIDSCOPE_TRY(const ContentRange range, parse_content_range(value));
    GRIDSCOPE_CHECK(check_unchanged(head, range.total));
    const std::uint64_t end = std::min(end_, size_.value_or(UINT64_MAX));
    if (!range.span || range.span->first != position_ || range.span->last + 1 != end) {
      return fail(ErrorCode::kCorrupt, fmt::format("asked for {}, answered with Content-Range {}",
                                                   missing(), quote(value)));
    }
    const auto length = content_length(head.headers);
    if (length && *length != end - position_) {
      return fail(ErrorCode::kCorrupt, fmt::format("Content-Length {} contradicts Content-Range {}",
                                                   *length, quote(value)));
    }
    end_ = end;
    mode_ = Mode::kRange;
    return Flow::kMore;
  }

  Result<Flow> accept_whole_file(const ResponseHead& head) {
    if (offset_ != 0) {
      return fail(
          ErrorCode::kUnsupported,
          fmt::format("the server ignores ranges: asked for {}, it sent the whole file", missing()),
          "download the file and read it from disk");
    }
    GRIDSCOPE_CHECK(check_unchanged(head, content_length(head.headers)));
    position_ = 0;
    end_ = std::min(end_, size_.value_or(UINT64_MAX));
    mode_ = Mode::kWholeFile;
    return Flow::kMore;
  }

  // Holds size and ETag against what is known, and learns what was not.
  Status check_unchanged(const ResponseHead& head, std::optional<std::uint64_t> total) {
    constexpr std::string_view kRemedy = "the file was replaced while it was read; start again";
    if (size_ && total && *size_ != *total) {
      return fail(ErrorCode::kChanged,
                  fmt::format("the file had {} bytes and now has {}", *size_, *total),
                  std::string(kRemedy));
    }
    const std::string* header = head.headers.find("ETag");
    const std::string_view etag = header == nullptr ? std::string_view() : bare_etag(*header);
    if (!etag_.empty() && !etag.empty() && etag != etag_) {
      return fail(ErrorCode::kChanged, "the file's ETag is not the one it had before",
                  std::string(kRemedy));
    }
    if (!size_) size_ = total;
    if (etag_.empty()) etag_ = etag;
    return {};
  }

  // The next bytes of the response, of which those that were taken before are left out.
  Status take(std::span<const std::byte> bytes) {
    const std::uint64_t known = std::min<std::uint64_t>(bytes.size(), furthest_ - position_);
    position_ += bytes.size();
    bytes_received_ += bytes.size();
    if (known == bytes.size()) return {};
    furthest_ = position_;
    return take_(bytes.subspan(known));
  }

  Flow keep_for_people(std::span<const std::byte> bytes) {
    append(body_, bytes.first(std::min(bytes.size(), kMaxErrorBody - body_.size())));
    discarded_ += bytes.size();
    return discarded_ > kMaxDiscarded ? Flow::kEnough : Flow::kMore;
  }

  const Clock& clock_;
  std::chrono::steady_clock::time_point asked_at_;
  std::chrono::nanoseconds waited_{0};
  std::uint64_t offset_;
  const TakeBytes& take_;
  ResponseHead head_;  // of the latest response
  std::optional<std::uint64_t> size_;
  std::string etag_;
  std::uint64_t position_;  // of the next byte to come
  std::uint64_t end_;       // of the range wanted, cut at the file's end once that is known
  std::uint64_t furthest_;  // up to which bytes were taken
  std::uint64_t bytes_received_ = 0;
  Status taken_;
  Mode mode_ = Mode::kOther;
  std::string body_;
  std::size_t discarded_ = 0;
};

Result<Document> Client::fetch(const Request& request, std::uint64_t max_bytes) {
  Request asked = request;
  asked.headers.push_back({"Accept-Encoding", "identity"});
  DocumentSink sink(request.method, max_bytes);
  Attempts attempts(options_.retry);
  while (true) {
    SendResult head = send_once(asked, sink);
    attempts.add(host_of(head));
    if (!may_pass(head) || attempts.are_enough()) {
      if (!head) return tl::make_unexpected(std::move(head).error());
      Document document{.head = *std::move(head), .body = sink.take_body()};
      if (is_success(document.head.status)) count_body(request, document.body.size());
      return document;
    }
    GRIDSCOPE_CHECK(pause(request, head, attempts.made()));
  }
}

Result<RangeReply> Client::read_range(const RangeQuery& query, const TakeBytes& take) {
  if (query.length == 0 || !checked_add(query.offset, query.length)) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("cannot read {} bytes at byte {}", query.length, query.offset));
  }
  if (query.size && query.offset >= *query.size) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("byte {} lies past the end of the file, which has {} bytes",
                            query.offset, *query.size));
  }
  const Request request{.url = query.url, .headers = query.headers};
  RangeSink sink(query, take, clock_);
  Result<RangeReply> reply = read_attempts(request, sink);
  if (sink.bytes_received() > 0) {
    observer_.on_event(RangeRead{.source = query.url.display(),
                                 .offset = sink.offset(),
                                 .bytes = sink.bytes_received(),
                                 .origin = Origin::kNetwork});
  }
  return reply;
}

Result<RangeReply> Client::read_attempts(const Request& request, RangeSink& sink) {
  const auto in_context = [&request](const Error& error) {
    return with_context(error, describe_request(request));
  };
  bool refused_before = false;
  std::uint64_t furthest = sink.furthest();
  Attempts attempts(options_.retry);
  while (true) {
    Request asked = request;
    asked.headers.push_back({"Range", sink.missing()});
    asked.headers.push_back({"Accept-Encoding", "identity"});
    sink.begin();
    SendResult head = send_once(asked, sink);
    attempts.add(host_of(head));
    if (!sink.taken()) return tl::make_unexpected(sink.taken().error());
    if (head) {
      if (const Status whole = sink.check_whole(); !whole) {
        head = tl::make_unexpected(SendError{in_context(whole.error())});
      }
    }
    const bool transient = may_pass(head);
    // A connection may also break after the last byte that was wanted.
    if (sink.is_complete() && (head || transient)) return sink.take_reply();

    if (sink.furthest() > furthest) attempts.begin_anew();
    furthest = sink.furthest();
    const bool last_attempt = attempts.are_enough();

    // Caches now and then refuse a range within the size that is known: asked for once more.
    const bool refused = head && head->status == kRangeNotSatisfiable;
    if (refused && (refused_before || last_attempt || !sink.knows_size())) {
      return sink.take_refusal().map_error(in_context);
    }
    refused_before |= refused;

    if (!(transient || refused) || last_attempt) {
      if (head) return sink.take_reply();
      return tl::make_unexpected(std::move(head).error());
    }
    GRIDSCOPE_CHECK(pause(request, head, attempts.made()));
  }
}

void Client::count_body(const Request& request, std::uint64_t bytes) {
  if (bytes == 0) return;
  observer_.on_event(RangeRead{
      .source = request.url.display(), .offset = 0, .bytes = bytes, .origin = Origin::kNetwork});
}

SendResult Client::send_once(const Request& request, BodySink& sink) {
  observer_.on_event(
      RequestSent{.method = method_name(request.method), .url = request.url.display()});
  return transport_.send(request, sink, options_.stop);
}

Status Client::pause(const Request& request, const SendResult& failed, int attempt) {
  const auto wait = retry_wait(options_.retry, {.attempt = attempt,
                                                .response = failed ? &*failed : nullptr,
                                                .now = clock_.wall_now(),
                                                .random = random_at(clock_.now())});
  if (!wait) return tl::make_unexpected(with_context(wait.error(), describe_request(request)));
  const std::string what = describe_request(request);
  std::string reason = failed ? fmt::format("status {}", failed->status) : failed.error().message;
  if (reason.starts_with(what + ": ")) reason.erase(0, what.size() + 2);
  observer_.on_event(
      RetryScheduled{.what = what, .reason = reason, .attempt = attempt, .wait = *wait});
  return clock_.sleep_for(*wait, options_.stop);
}

}  // namespace gridscope::http
