#pragma once

// From the address of a file to where its bytes lie. The Hub answers a resolve URL with the bytes
// themselves, with a redirect to another place of its own, or with a redirect to a signed URL on a
// content host. Only answers of the Hub's own hops say what the file is: the content host has an
// ETag too, but it is not the file's sha256.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "gridscope/core/result.hpp"
#include "gridscope/http/transport.hpp"
#include "gridscope/http/url.hpp"
#include "gridscope/store/remote_session.hpp"

namespace gridscope::store {

// What the own hops tell about a file; a later hop's word stands.
struct HopMetadata {
  std::string commit;                 // X-Repo-Commit
  std::optional<std::uint64_t> size;  // X-Linked-Size; never a Content-Length
  std::string content_id;             // X-Linked-ETag, else ETag; without quotes

  friend bool operator==(const HopMetadata&, const HopMetadata&) = default;
};

struct Resolution {
  http::Url url;           // of the last own hop, or of the content host
  bool elsewhere = false;  // the content lies on another host, which was not asked yet
  HopMetadata metadata = {};
};

// Asks one hop. Redirects are returned, not followed.
using AskHop = std::function<Result<http::ResponseHead>(const http::Url&)>;

// Follows redirects from `start` until a hop answers something else or leads to another host.
// Errors: those of `ask` and of redirect_target, kCorrupt after kMaxRedirects.
[[nodiscard]] Result<Resolution> resolve_chain(RemoteSession& session, const http::Url& start,
                                               const AskHop& ask);

}  // namespace gridscope::store
