#pragma once

// The two questions asked of the Hub's API: which commit a revision is, and which files it holds.

#include <string>
#include <string_view>
#include <vector>

#include "gridscope/core/result.hpp"
#include "gridscope/http/transport.hpp"
#include "gridscope/http/url.hpp"
#include "gridscope/store/remote_session.hpp"
#include "gridscope/store/repository.hpp"

namespace gridscope::store {

inline constexpr std::size_t kMaxListingPages = 1'000;
inline constexpr std::size_t kMaxApiBytes = std::size_t{64} * 1024 * 1024;  // of one answer

// The commit that `revision` is now. Errors: those of hub_error, kUnsupported for an answer that no
// Hub would give.
[[nodiscard]] Result<std::string> fetch_commit(RemoteSession& session, std::string_view repo_id,
                                               std::string_view revision);

// Every file at `commit`, sorted by path. The listing comes in pages; the link to the next one is
// followed only on the Hub itself. Errors: as above, kCorrupt for pages that repeat or leave the
// Hub, kLimit beyond kMaxListingPages or kMaxListedFiles.
[[nodiscard]] Result<std::vector<FileEntry>> fetch_listing(RemoteSession& session,
                                                           std::string_view repo_id,
                                                           std::string_view commit);

// Where the bytes of a file are asked for.
[[nodiscard]] Result<http::Url> resolve_url_of(const RemoteSession& session,
                                               std::string_view repo_id, std::string_view commit,
                                               std::string_view path);

// The target of rel="next" in the Link headers; empty when there is none.
[[nodiscard]] std::string next_link(const http::Headers& headers);

}  // namespace gridscope::store
