#include "support/hub_server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include "support/hub_server_parts.hpp"

namespace gridscope::test {

using namespace hub;

namespace {

// The real bridge refuses whole files from somewhere above 50 GB; here it is less, for the tests'
// memory.
constexpr std::uint64_t kMaxWithoutRange = 1ULL * 1024 * 1024 * 1024;
constexpr std::string_view kSecret = "the-key-that-signs-content-urls";

std::int64_t system_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const std::size_t size = std::filesystem::file_size(path);
  if (size == 0) return;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw std::runtime_error("cannot open " + path.string());
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  ::close(file);
  if (start == MAP_FAILED) throw std::runtime_error("cannot map " + path.string());
  bytes_ = {static_cast<const char*>(start), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

HubRepo hub_repo_from_directory(std::string id, const std::filesystem::path& directory) {
  HubRepo repo{.id = std::move(id)};
  std::string names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    const std::string path = entry.path().lexically_relative(directory).generic_string();
    const std::string ending = entry.path().extension().string();
    const HubStorage storage = ending == ".json"  ? HubStorage::kGitCached
                               : ending == ".txt" ? HubStorage::kGit
                                                  : HubStorage::kLarge;
    repo.files[path] = {.mapped = std::make_shared<MappedFile>(entry.path()), .storage = storage};
    names += fmt::format("{} {}\n", path, entry.file_size());
  }
  repo.commit = sha1({repo.id, names});
  return repo;
}

// ---- The server

struct HubServer::State {
  HubServerOptions options;
  std::mutex mutex;  // tests change faults and repositories between requests
  std::map<std::string, Repo> repos;
  struct Armed {
    HubFault fault;
    std::size_t met = 0;
  };
  std::vector<Armed> faults;
  std::size_t request_number = 0;
  int port = 0;

  struct Routed {
    std::optional<HubStage> stage;
    HttpReply reply;
  };
  // What a request is about, once its repository is known and may be seen.
  struct Subject {
    const HttpRequest& request;
    const Repo& repo;
    std::vector<std::string> rest;  // of the path, after the repository
  };

  HttpReply handle(const HttpRequest& request);
  Routed route(const HttpRequest& request);
  Routed route_api(const HttpRequest& request);
  Routed route_file(const HttpRequest& request);

  const Repo* find(const std::string& id) const;
  // The canonical id of a repository that is asked for by an old name or in other letters.
  std::string canonical(const std::string& id) const;
  std::optional<HttpReply> refuse(const HttpRequest& request, const Repo* repo,
                                  bool asks_for_content) const;
  static bool knows_revision(const Repo& repo, const std::string& revision);

  HttpReply resolve(const Subject& subject) const;
  HttpReply resolve_cache(const HttpRequest& request) const;
  HttpReply content(const HttpRequest& request) const;

  std::int64_t now() const { return options.now ? options.now() : system_seconds(); }
  std::string sign(const std::string& path, const std::string& expires) const {
    return sha256({kSecret, path, expires});
  }
};

HttpReply HubServer::State::handle(const HttpRequest& request) {
  const std::scoped_lock lock(mutex);
  ++request_number;
  auto [stage, reply] = route(request);
  if (stage != HubStage::kContent) {
    add(reply, "X-Request-Id", fmt::format("Root=1-{}", request_number));
    add(reply, "RateLimit", "\"resolvers\";r=2999;t=172");
    add(reply, "RateLimit-Policy", "\"fixed window\";\"resolvers\";q=3000;w=300");
  }
  for (Armed& armed : faults) {
    if (armed.fault.stage != stage) continue;
    const std::size_t met = armed.met++;
    const bool strikes = met >= armed.fault.spare && met - armed.fault.spare < armed.fault.times;
    if (strikes) reply = armed.fault.change(request, std::move(reply));
  }
  return reply;
}

HubServer::State::Routed HubServer::State::route(const HttpRequest& request) {
  if (request.host() == "localhost") return {HubStage::kContent, content(request)};
  const std::string path = request.path();
  if (path.starts_with("/api/resolve-cache/")) {
    return {HubStage::kResolveCache, resolve_cache(request)};
  }
  if (path.starts_with("/api/models/")) return route_api(request);
  if (path.find("/resolve/") != std::string::npos || path.find("/raw/") != std::string::npos) {
    return route_file(request);
  }
  return {std::nullopt, page_reply(404)};
}

const Repo* HubServer::State::find(const std::string& id) const {
  const auto found = repos.find(id);
  return found == repos.end() ? nullptr : &found->second;
}

std::string HubServer::State::canonical(const std::string& id) const {
  for (const auto& [name, repo] : repos) {
    if (repo.facts.moved_from == id || lower(name) == lower(id)) return name;
  }
  return {};
}

std::optional<HttpReply> HubServer::State::refuse(const HttpRequest& request, const Repo* repo,
                                                  bool asks_for_content) const {
  const bool with_token = request.has_authorization();
  if (with_token && request.field("Authorization") != "Bearer " + options.token) {
    return error_reply(401, "", "Invalid credentials in Authorization header");
  }
  const HubAccess access = repo == nullptr ? HubAccess::kPrivate : repo->facts.access;
  if (repo == nullptr && with_token)
    return error_reply(404, "RepoNotFound", "Repository not found");
  if (access == HubAccess::kPrivate && !with_token) {
    return error_reply(401, "", "Invalid username or password.");
  }
  if (access == HubAccess::kDisabled) {
    return error_reply(403, "", "Access to this resource is disabled.");
  }
  if (access != HubAccess::kGated || !asks_for_content) return std::nullopt;
  if (!with_token) {
    return error_reply(401, "GatedRepo", "Access to this model is restricted. Please log in.");
  }
  if (options.token_in_list) return std::nullopt;
  return error_reply(403, "GatedRepo", "You are not in the authorized list.");
}

bool HubServer::State::knows_revision(const Repo& repo, const std::string& revision) {
  constexpr std::size_t kShortestAbbreviation = 7;
  const HubRepo& facts = repo.facts;
  if (std::ranges::find(facts.revisions, revision) != facts.revisions.end()) return true;
  return revision.size() >= kShortestAbbreviation && facts.commit.starts_with(revision);
}

HubServer::State::Routed HubServer::State::route_api(const HttpRequest& request) {
  const std::vector<std::string> parts =
      split(std::string_view(request.path()).substr(std::string_view("/api/models/").size()), '/');
  std::size_t taken = 1;
  std::string id = parts[0];
  const bool known = find(id) != nullptr || !canonical(id).empty();
  if (!known && parts.size() > 1) {
    taken = 2;
    id += '/' + parts[1];
  }
  const std::string verb = taken < parts.size() ? parts[taken] : "";
  const HubStage stage = verb == "tree" ? HubStage::kTree : HubStage::kInfo;
  const Repo* repo = find(id);
  if (const std::string moved = canonical(id); repo == nullptr && !moved.empty()) {
    std::string target = request.target;
    target.replace(target.find(id), id.size(), moved);
    return {stage, redirect_reply(307, target)};
  }
  if (auto refusal = refuse(request, repo, false)) return {stage, *std::move(refusal)};
  Subject subject{.request = request, .repo = *repo, .rest = {}};
  for (std::size_t i = taken + 1; i < parts.size(); ++i) subject.rest.push_back(decode(parts[i]));
  if (verb == "refs") return {stage, refs_reply(*repo)};
  if (!subject.rest.empty() && !knows_revision(*repo, subject.rest[0])) {
    return {stage, error_reply(404, "RevisionNotFound", "Invalid rev id: " + subject.rest[0])};
  }
  if (verb.empty() || verb == "revision") return {stage, info_reply(*repo, request.query())};
  if (verb == "tree") {
    return {stage, tree_reply(*repo, request, join(subject.rest, 1), options.page_size)};
  }
  if (verb == "paths-info") return {stage, paths_info_reply(*repo, request)};
  return {stage, page_reply(404)};
}

HubServer::State::Routed HubServer::State::route_file(const HttpRequest& request) {
  const std::string path = request.path();
  std::size_t verb = path.find("/resolve/");
  if (verb == std::string::npos) verb = path.find("/raw/");
  const std::string id = path.substr(1, verb - 1);
  const Repo* repo = find(id);
  if (const std::string moved = canonical(id); repo == nullptr && !moved.empty()) {
    std::string target = request.target;
    target.replace(1, id.size(), moved);
    return {HubStage::kResolve, redirect_reply(307, target)};
  }
  if (auto refusal = refuse(request, repo, true)) return {HubStage::kResolve, *std::move(refusal)};
  Subject subject{.request = request, .repo = *repo, .rest = {}};
  const std::vector<std::string> parts = split(std::string_view(path).substr(verb + 1), '/');
  for (std::size_t i = 1; i < parts.size(); ++i) subject.rest.push_back(decode(parts[i]));
  return {HubStage::kResolve, resolve(subject)};
}

HttpReply HubServer::State::resolve(const Subject& subject) const {
  const HubRepo& facts = subject.repo.facts;
  if (!knows_revision(subject.repo, subject.rest[0])) {
    return error_reply(404, "RevisionNotFound", "Invalid rev id: " + subject.rest[0]);
  }
  const std::string path = join(subject.rest, 1);
  const auto found = subject.repo.files.find(path);
  HttpReply reply;
  if (found == subject.repo.files.end()) {
    reply = error_reply(404, "EntryNotFound", "Entry not found");
  } else if (found->second.is_large()) {
    const std::string place = fmt::format("/xet-bridge-us/660f/{}", found->second.sha256);
    const std::string expires = std::to_string(now() + options.lifetime);
    reply = redirect_reply(
        302, fmt::format("http://localhost:{}{}?response-content-disposition=inline&Expires={}"
                         "&Signature={}&Key-Pair-Id=K2L8F4GPSG1IFC",
                         port, place, expires, sign(place, expires)));
    add(reply, "X-Linked-Size", std::to_string(found->second.content().size()));
    add(reply, "X-Linked-ETag", in_quotes(found->second.sha256));
  } else if (found->second.file.storage == HubStorage::kGitCached) {
    reply = redirect_reply(
        307, fmt::format("/api/resolve-cache/models/{}/{}/{}?{}=&etag={}", facts.id, facts.commit,
                         encode(path, "/"), encode(subject.request.path(), ""),
                         encode(in_quotes(found->second.git_id), "")));
    add(reply, "X-Linked-Size", std::to_string(found->second.content().size()));
    add(reply, "X-Linked-ETag", in_quotes(found->second.git_id));
  } else {
    reply = serve_content(subject.request, found->second.content());
    add(reply, "Content-Type", "text/plain; charset=utf-8");
    add(reply, "ETag", in_quotes(found->second.git_id));
  }
  add(reply, "X-Repo-Commit", facts.commit);
  return reply;
}

HttpReply HubServer::State::resolve_cache(const HttpRequest& request) const {
  constexpr std::string_view kPrefix = "/api/resolve-cache/models/";
  const std::string etag = query_value(request.query(), "etag");
  for (const auto& [id, repo] : repos) {
    const std::string start = fmt::format("{}{}/{}/", kPrefix, id, repo.facts.commit);
    if (!request.path().starts_with(start)) continue;
    if (auto refusal = refuse(request, &repo, true)) return *std::move(refusal);
    const auto found = repo.files.find(decode(request.path().substr(start.size())));
    if (found == repo.files.end()) break;
    HttpReply reply = serve_content(request, found->second.content());
    add(reply, "Content-Type", "text/plain; charset=utf-8");
    if (etag != in_quotes(found->second.git_id)) return reply;
    add(reply, "ETag", etag);
    add(reply, "X-Repo-Commit", repo.facts.commit);
    return reply;
  }
  return page_reply(404);
}

HttpReply HubServer::State::content(const HttpRequest& request) const {
  const std::string path = request.path();
  const std::string expires = query_value(request.query(), "Expires");
  if (request.has_authorization()) {
    return xml_reply(400, "InvalidArgument", "Only one auth mechanism allowed");
  }
  const bool signed_well = query_value(request.query(), "Signature") == sign(path, expires);
  if (!signed_well || request.method != "GET") {
    return xml_reply(403, "SignatureDoesNotMatch", "The signature does not match");
  }
  if (std::stoll(expires) <= now()) return xml_reply(403, "AccessDenied", "Request has expired");
  const std::string id = path.substr(path.rfind('/') + 1);
  for (const auto& [name, repo] : repos) {
    for (const auto& [file, stored] : repo.files) {
      if (stored.sha256 != id) continue;
      if (request.range().empty() && stored.content().size() > kMaxWithoutRange) {
        return page_reply(400);
      }
      HttpReply reply = serve_content(request, stored.content());
      add(reply, "Content-Type", "application/octet-stream");
      add(reply, "ETag", in_quotes(sha256({"content host", id})));  // as long as a sha256, but none
      return reply;
    }
  }
  return xml_reply(404, "NoSuchKey", "The key does not exist");
}

HubServer::HubServer(std::vector<HubRepo> repos, HubServerOptions options)
    : state_(std::make_unique<State>()) {
  const HttpServerOptions server = options.server;
  state_->options = std::move(options);
  for (HubRepo& repo : repos) set_repo(std::move(repo));
  server_ = std::make_unique<HttpServer>(
      [state = state_.get()](const HttpRequest& request) { return state->handle(request); },
      server);
  const std::scoped_lock lock(state_->mutex);
  state_->port = server_->port();
}

HubServer::~HubServer() = default;

std::string HubServer::endpoint() const {
  std::string url = server_->url();
  url.pop_back();
  return url;
}

std::string HubServer::content_origin() const {
  std::string url = server_->localhost_url();
  url.pop_back();
  return url;
}

std::string HubServer::certificate_file() const {
  return server_->certificate_file();
}

void HubServer::add_fault(HubFault fault) {
  const std::scoped_lock lock(state_->mutex);
  state_->faults.push_back({.fault = std::move(fault)});
}

void HubServer::clear_faults() {
  const std::scoped_lock lock(state_->mutex);
  state_->faults.clear();
}

void HubServer::set_repo(HubRepo repo) {
  Repo stored{.facts = repo, .files = {}};
  for (auto& [path, file] : repo.files) stored.files[path] = store(path, std::move(file));
  stored.facts.files.clear();
  const std::scoped_lock lock(state_->mutex);
  state_->repos[repo.id] = std::move(stored);
}

std::vector<HttpRequest> HubServer::requests() const {
  return server_->requests();
}

void HubServer::forget_requests() {
  server_->forget_requests();
}

}  // namespace gridscope::test
