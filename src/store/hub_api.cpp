#include "gridscope/store/hub_api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "gridscope/core/json.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/http/fields.hpp"
#include "gridscope/store/file_list.hpp"
#include "gridscope/store/hub_errors.hpp"
#include "gridscope/store/resolve_chain.hpp"

namespace gridscope::store {
namespace {

// A mirror may answer with the whole description of a model, which nests freely.
constexpr JsonLimits kJsonLimits{.max_depth = 64, .max_bytes = kMaxApiBytes};

struct ApiAnswer {
  http::Headers headers;
  JsonValue json;
};

bool is_json(std::string_view body) {
  body = http::trim_blanks(body);
  return body.starts_with('{') || body.starts_with('[');
}

Result<ApiAnswer> call(RemoteSession& session, std::string_view repo_id, const http::Url& url) {
  http::Document document;
  const AskHop ask = [&](const http::Url& hop) -> Result<http::ResponseHead> {
    const http::Request request{.url = hop, .headers = session.headers_for(hop)};
    GRIDSCOPE_TRY(document, session.client().fetch(request, kMaxApiBytes));
    return document.head;
  };
  GRIDSCOPE_TRY(const Resolution end, resolve_chain(session, url, ask));
  if (end.elsewhere) {
    return tl::make_unexpected(
        not_a_hub(session, url, fmt::format("redirects to {}", quote(end.url.host))));
  }
  constexpr int kOk = 200;
  if (document.head.status != kOk) {
    return tl::make_unexpected(
        hub_error({.head = document.head, .body = document.body, .url = end.url},
                  {.endpoint = session.endpoint(),
                   .repo_id = repo_id,
                   .token_sent = session.sends_token_to(end.url)}));
  }
  if (!is_json(document.body)) {
    return tl::make_unexpected(not_a_hub(session, end.url,
                                         end.metadata.commit.empty()
                                             ? "answered with a page instead of JSON and sent no "
                                               "X-Repo-Commit header"
                                             : "answered with a page instead of JSON"));
  }
  auto json = parse_json(document.body, kJsonLimits);
  if (!json) return tl::make_unexpected(with_context(std::move(json).error(), end.url.display()));
  return ApiAnswer{.headers = std::move(document.head.headers), .json = *std::move(json)};
}

Result<http::Url> api_url(const RemoteSession& session, std::string_view repo_id,
                          std::string_view rest) {
  return http::parse_url(fmt::format("{}/api/models/{}/{}", session.endpoint(), repo_id, rest));
}

// The id of a file's content: the sha256 of a large file, else the git object id.
std::string content_id_of(const JsonValue& entry) {
  const JsonValue* lfs = entry.find("lfs");
  const JsonValue* large = lfs == nullptr ? nullptr : lfs->find("oid");
  const JsonValue* id = large != nullptr ? large : entry.find("oid");
  return id != nullptr && id->string() != nullptr ? printable(*id->string()) : std::string();
}

// Directories, and names that could do harm once they are joined to something, are left out.
Status add_entry(std::vector<FileEntry>& files, const JsonValue& entry) {
  const JsonValue* type = entry.find("type");
  const JsonValue* path = entry.find("path");
  const JsonValue* size = entry.find("size");
  const bool named =
      type != nullptr && type->string() != nullptr && path != nullptr && path->string() != nullptr;
  if (!named) return fail(ErrorCode::kCorrupt, "an entry has no type or path");
  if (*type->string() != "file") return {};
  if (size == nullptr || size->unsigned_integer() == nullptr) {
    return fail(ErrorCode::kCorrupt, fmt::format("{} has no size", quote(*path->string())));
  }
  if (!check_repo_path(*path->string())) return {};
  files.push_back({.path = *path->string(),
                   .size = *size->unsigned_integer(),
                   .content_id = content_id_of(entry)});
  return {};
}

Status add_page(std::vector<FileEntry>& files, const JsonValue& page) {
  if (page.array() == nullptr) return fail(ErrorCode::kCorrupt, "the listing is no JSON array");
  for (const JsonValue& entry : *page.array()) GRIDSCOPE_CHECK(add_entry(files, entry));
  if (files.size() <= kMaxListedFiles) return {};
  return fail(ErrorCode::kLimit, fmt::format("the repository holds more than {} files",
                                             with_thousands(kMaxListedFiles)));
}

// The next page as a URL of the endpoint: a mirror passes the Hub's own links on unchanged.
Result<http::Url> next_page(const RemoteSession& session, const http::Url& page,
                            std::string_view link) {
  GRIDSCOPE_TRY(http::Url next, http::resolve_url(page, link));
  GRIDSCOPE_TRY(const http::Url home, http::parse_url(session.endpoint()));
  if (next.origin() == home.origin()) return next;
  if (!session.is_own(next)) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("the listing goes on at another host, {}", quote(next.host)));
  }
  next.scheme = home.scheme;
  next.host = home.host;
  next.port = home.port;
  next.path = (home.path == "/" ? "" : home.path) + next.path;
  return next;
}

}  // namespace

std::string next_link(const http::Headers& headers) {
  for (const http::Header& header : headers.all()) {
    if (!http::equals_ignoring_case(header.name, "Link")) continue;
    std::string_view rest = header.value;
    while (true) {
      const std::size_t open = rest.find('<');
      const std::size_t close = rest.find('>', open);
      if (open == std::string_view::npos || close == std::string_view::npos) break;
      const std::string_view target = rest.substr(open + 1, close - open - 1);
      rest.remove_prefix(close + 1);
      const std::string_view parameters = rest.substr(0, rest.find('<'));
      if (parameters.find("rel=\"next\"") != std::string_view::npos) return std::string(target);
    }
  }
  return {};
}

Result<std::string> fetch_commit(RemoteSession& session, std::string_view repo_id,
                                 std::string_view revision) {
  GRIDSCOPE_TRY(const http::Url url,
                api_url(session, repo_id,
                        fmt::format("revision/{}?expand=sha", http::percent_encode(revision))));
  GRIDSCOPE_TRY(const ApiAnswer answer, call(session, repo_id, url));
  const JsonValue* sha = answer.json.find("sha");
  if (sha == nullptr || sha->string() == nullptr || !is_commit(*sha->string())) {
    return tl::make_unexpected(not_a_hub(session, url, "named no commit (\"sha\")"));
  }
  return *sha->string();
}

Result<std::vector<FileEntry>> fetch_listing(RemoteSession& session, std::string_view repo_id,
                                             std::string_view commit) {
  GRIDSCOPE_TRY(http::Url url, api_url(session, repo_id,
                                       fmt::format("tree/{}?recursive=true&expand=false", commit)));
  std::vector<FileEntry> files;
  std::set<std::string> seen;
  for (std::size_t page = 0; page < kMaxListingPages; ++page) {
    if (!seen.insert(url.text()).second) {
      return fail(ErrorCode::kCorrupt,
                  fmt::format("{}: the pages of the listing repeat", url.display()));
    }
    GRIDSCOPE_TRY(const ApiAnswer answer, call(session, repo_id, url));
    if (Status added = add_page(files, answer.json); !added) {
      return tl::make_unexpected(with_context(std::move(added).error(), url.display()));
    }
    const std::string link = next_link(answer.headers);
    if (link.empty()) {
      sort_files(files);
      return files;
    }
    GRIDSCOPE_TRY(url, next_page(session, url, link));
  }
  return fail(ErrorCode::kLimit, fmt::format("{}: the listing has more than {} pages",
                                             url.display(), with_thousands(kMaxListingPages)));
}

Result<http::Url> resolve_url_of(const RemoteSession& session, std::string_view repo_id,
                                 std::string_view commit, std::string_view path) {
  return http::parse_url(fmt::format("{}/{}/resolve/{}/{}", session.endpoint(), repo_id, commit,
                                     http::percent_encode(path, "/")));
}

}  // namespace gridscope::store
