#include "gridscope/store/resolve_chain.hpp"

#include <fmt/format.h>

#include "gridscope/http/client.hpp"
#include "gridscope/http/fields.hpp"

namespace gridscope::store {
namespace {

void collect(HopMetadata& metadata, const http::Headers& headers) {
  if (const std::string* commit = headers.find("X-Repo-Commit")) metadata.commit = *commit;
  if (const std::string* size = headers.find("X-Linked-Size")) {
    metadata.size = http::parse_digits(http::trim_blanks(*size));
  }
  const std::string* linked = headers.find("X-Linked-ETag");
  const std::string* etag = linked != nullptr ? linked : headers.find("ETag");
  if (etag != nullptr) metadata.content_id = http::bare_etag(*etag);
}

}  // namespace

Result<Resolution> resolve_chain(RemoteSession& session, const http::Url& start,
                                 const AskHop& ask) {
  Resolution found{.url = start};
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    GRIDSCOPE_TRY(const http::ResponseHead head, ask(found.url));
    session.note_warnings(head);
    collect(found.metadata, head.headers);
    if (!http::is_redirect(head.status)) return found;
    GRIDSCOPE_TRY(found.url, session.redirect_target(found.url, head));
    found.elsewhere = !session.is_own(found.url);
    if (found.elsewhere) return found;
  }
  return fail(ErrorCode::kCorrupt, fmt::format("{} leads through more than {} redirects",
                                               start.display(), kMaxRedirects));
}

}  // namespace gridscope::store
