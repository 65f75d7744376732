#pragma once

// A client whose transport gives answers from a script, for what it makes of documents and ranges.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gridscope/http/client.hpp"
#include "support/fakes.hpp"
#include "support/matchers.hpp"

namespace gridscope::http {

// One answer of the scripted transport: a response, perhaps broken off with an error.
struct Answer {
  int status = 200;
  std::vector<Header> headers = {};
  std::string body = {};
  std::optional<Error> error = {};  // after the body; with status 0, before any response
  HostName host = HostName::kResolved;
};

inline const Error kReset{ErrorCode::kUnavailable, "connection lost"};
inline const Error kNoSuchHost{ErrorCode::kUnavailable, "host not found"};
inline const Answer kUnknownHost{.status = 0, .error = kNoSuchHost, .host = HostName::kUnresolved};

// Gives the answers in order and keeps the requests.
class ScriptedTransport final : public Transport {
 public:
  SendResult send(const Request& request, BodySink& sink, const std::stop_token& stop) override {
    requests.push_back(request);
    const HostName host = script.empty() ? HostName::kResolved : script.front().host;
    return play(sink, stop).map_error([host](const Error& e) { return SendError{e, host}; });
  }

  // The next answer.
  Result<ResponseHead> play(BodySink& sink, const std::stop_token& stop) {
    if (stop.stop_requested()) return fail(ErrorCode::kCancelled, "cancelled");
    if (script.empty()) return fail(ErrorCode::kInternal, "the script is at its end");
    const Answer answer = std::move(script.front());
    script.pop_front();
    if (answer.status == 0) return tl::make_unexpected(answer.error.value());
    ResponseHead head{.status = answer.status, .headers = {}};
    for (const Header& header : answer.headers) head.headers.add(header.name, header.value);
    GRIDSCOPE_TRY(Flow flow, sink.on_head(head));
    // In pieces, as a network would.
    for (std::size_t at = 0; at < answer.body.size() && flow == Flow::kMore; at += kPiece) {
      GRIDSCOPE_TRY(
          flow,
          sink.on_body(
              test::bytes_of(answer.body).subspan(at, std::min(kPiece, answer.body.size() - at))));
    }
    if (answer.error && flow == Flow::kMore) return tl::make_unexpected(*answer.error);
    return head;
  }

  [[nodiscard]] std::vector<std::string> ranges() const {
    std::vector<std::string> values;
    for (const Request& request : requests) {
      for (const Header& header : request.headers) {
        if (header.name == "Range") values.push_back(header.value);
      }
    }
    return values;
  }

  static constexpr std::size_t kPiece = 3;
  std::deque<Answer> script;
  std::vector<Request> requests;
};

inline constexpr std::string_view kFile = "0123456789abcdefghij";

// A right answer for [first, last] of kFile.
inline Answer part(std::size_t first, std::size_t last) {
  return {.status = 206,
          .headers = {{"Content-Range", fmt::format("bytes {}-{}/{}", first, last, kFile.size())},
                      {"Content-Length", std::to_string(last - first + 1)},
                      {"ETag", "\"v1\""}},
          .body = std::string(kFile.substr(first, last - first + 1))};
}

// The same, broken off after `sent` bytes.
inline Answer broken_part(std::size_t first, std::size_t last, std::size_t sent) {
  Answer answer = part(first, last);
  answer.body.resize(sent);
  answer.error = kReset;
  return answer;
}

inline Answer with_header(Answer answer, const std::string& name, const std::string& value) {
  std::erase_if(answer.headers, [&](const Header& header) { return header.name == name; });
  answer.headers.push_back({name, value});
  return answer;
}

// What a query may say beyond its range.
struct Known {
  std::vector<Header> headers = {};
  std::optional<std::uint64_t> size = {};
  std::string etag = {};
};

class ClientTest : public ::testing::Test {
 protected:
  void script(std::deque<Answer> answers) { transport_.script = std::move(answers); }

  // Reads `size` bytes at `offset` of kFile.
  Result<RangeReply> read(std::uint64_t offset, std::size_t size, const Known& known = {}) {
    taken_.clear();
    return client_.read_range({.url = url_,
                               .headers = known.headers,
                               .offset = offset,
                               .length = size,
                               .size = known.size,
                               .etag = known.etag},
                              [this](std::span<const std::byte> bytes) -> Status {
                                taken_ += test::to_text(bytes);
                                return take_answer_;
                              });
  }
  Result<Document> fetch(std::uint64_t max_bytes = 100) {
    return client_.fetch({.url = url_}, max_bytes);
  }

  ScriptedTransport transport_;
  test::ManualClock clock_;
  test::CollectingObserver observer_;
  std::stop_source stop_;
  Client client_{
      transport_, clock_, observer_, {.retry = {.jitter = 0}, .stop = stop_.get_token()}};
  Url url_ = parse_url("https://h/file?Signature=SECRET").value();
  std::string taken_;
  Status take_answer_;
};

}  // namespace gridscope::http
