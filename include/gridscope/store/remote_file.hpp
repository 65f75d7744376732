#pragma once

// A file behind HTTP as a ByteSource: a Hub file by its resolve URL, or a file of a web server.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gridscope/core/result.hpp"
#include "gridscope/http/url.hpp"
#include "gridscope/io/byte_source.hpp"
#include "gridscope/store/remote_session.hpp"

namespace gridscope::store {

// What is known of a file before the next read.
struct RemoteFileSpec {
  std::shared_ptr<RemoteSession> session;
  http::Url url;
  std::string name = {};  // for people
  std::uint64_t size = 0;
  std::string content_id = {};         // the source's version; a sha256 is held against the Hub's
  std::string commit = {};             // Hub: answers that come from another one give kChanged
  std::string repo_id = {};            // Hub: for messages
  std::string etag = {};               // web: another one gives kChanged
  std::string validator = {};          // web: what tells its version for good; may be empty
  std::vector<std::byte> prefix = {};  // the first bytes, already read
  // For an answer of the server, as far as is known.
  std::chrono::nanoseconds shortest_wait = std::chrono::nanoseconds::max();
};

// Reads by range, neighbours merged, up to the session's connections at once unless the server
// answers so soon that nothing is lost by asking for one after the other. The content URL is
// found by the first read and used until it is about to expire; when the content host refuses it
// (401, 403, 404) or contradicts the Hub, it is looked up anew, once for each read. A server that
// ignores ranges gives one RANGE_IGNORED warning and is read from the start, up to kMaxReadAround.
// The prefix is given up once it was read as a whole.
// An answer that makes no sense gives kUnavailable: kCorrupt and kUnsupported are kept for what is
// said of a file for its own bytes.
[[nodiscard]] std::unique_ptr<io::ByteSource> make_remote_file(RemoteFileSpec spec);

inline constexpr std::uint64_t kMaxReadAround = 64ULL * 1024 * 1024;

// One read of the start of a file on a web server, which tells size and ETag; most headers and all
// small files need no second one.
inline constexpr std::size_t kProbeBytes = std::size_t{128} * 1024;

// Empty when the server says that there is no such file. The validator is a strong ETag or, without
// any ETag, Last-Modified and the size. Errors: kPermission, kNotFound for a web page in the file's
// place, kUnsupported when the server tells no size, and those of the client.
[[nodiscard]] Result<std::optional<RemoteFileSpec>> probe_remote_file(
    const std::shared_ptr<RemoteSession>& session, const http::Url& url,
    std::size_t first_bytes = kProbeBytes);

}  // namespace gridscope::store
