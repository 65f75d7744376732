#include "gridscope/store/hub_repository.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "gridscope/core/text.hpp"
#include "gridscope/http/retry.hpp"
#include "gridscope/io/file_source.hpp"
#include "gridscope/store/file_list.hpp"
#include "gridscope/store/hub_api.hpp"
#include "gridscope/store/hub_cache.hpp"
#include "gridscope/store/remote_file.hpp"
#include "listed_repository.hpp"

namespace gridscope::store {
namespace {

constexpr std::string_view kDefaultRevision = "main";
constexpr std::string_view kOnlineRemedy = "unset HF_HUB_OFFLINE (and TRANSFORMERS_OFFLINE)";

void say(const StoreContext& context, std::string_view message) {
  context.observer->on_event(Detail{.message = message});
}

// Documents and ranges in the range cache are kept under names of this shape.
std::string cache_key(const StoreContext& context, std::string_view repo_id,
                      std::string_view commit, std::string_view rest) {
  return fmt::format("hub {} {}@{} {}", context.hub.endpoint, repo_id, commit, rest);
}

std::optional<std::string> kept_document(const StoreContext& context, const std::string& key) {
  if (context.cache == nullptr) return std::nullopt;
  const auto bytes = context.cache->get_document(key);
  if (!bytes) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

void keep_document(const StoreContext& context, const std::string& key, std::string_view text) {
  if (context.cache == nullptr) return;
  context.cache->put_document(key, std::as_bytes(std::span(text)));
}

// A file of which only the listing is known, and nothing may be sent.
class OfflineSource final : public io::ByteSource {
 public:
  OfflineSource(std::uint64_t size, io::SourceIdentity identity)
      : size_(size), identity_(std::move(identity)) {}

  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] const io::SourceIdentity& identity() const override { return identity_; }
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> into) const override {
    GRIDSCOPE_CHECK(check_range(*this, offset, into.size()));
    if (into.empty()) return {};
    return fail(
        ErrorCode::kUnavailable,
        fmt::format("{}: bytes {} to {} are not kept on this machine, and HF_HUB_OFFLINE is "
                    "set",
                    identity_.name, offset, offset + into.size() - 1),
        std::string(kOnlineRemedy));
  }

 private:
  const std::uint64_t size_;
  const io::SourceIdentity identity_;
};

using SessionPtr = std::shared_ptr<RemoteSession>;  // null: offline

// What was found out about a repository before it is opened.
struct Pinned {
  RepositoryInfo info;
  std::vector<FileEntry> files;
};

class HubRepository final : public ListedRepository {
 public:
  HubRepository(Pinned pinned, std::string named_file, StoreContext context, SessionPtr session)
      : ListedRepository(std::move(pinned.info), std::move(pinned.files), std::move(named_file)),
        context_(std::move(context)),
        session_(std::move(session)),
        hub_cache_(context_.hub.cache, info().location) {}

  [[nodiscard]] Result<std::unique_ptr<io::ByteSource>> open(std::string_view path) const override {
    GRIDSCOPE_TRY(const std::optional<FileEntry> entry, find(path));
    if (!entry) {
      return fail(ErrorCode::kNotFound, fmt::format("{} has no file {} at commit {}",
                                                    info().location, quote(path), info().commit));
    }
    if (auto local = open_downloaded(*entry)) return local;
    GRIDSCOPE_TRY(auto source, open_remote(*entry));
    if (context_.cache == nullptr) return source;
    return io::make_cached_source(std::move(source), *context_.cache,
                                  cache_key(context_, info().location, info().commit, entry->path),
                                  *context_.observer);
  }

 private:
  // From the Hub's own cache; null when it is not there, or not whole.
  [[nodiscard]] std::unique_ptr<io::ByteSource> open_downloaded(const FileEntry& entry) const {
    const auto path = hub_cache_.file(info().commit, entry.path);
    if (!path) return nullptr;
    auto source = io::open_file(*path, *context_.observer);
    if (!source) return nullptr;
    if ((*source)->size() == entry.size) return *std::move(source);
    say(context_, fmt::format("{} has {} bytes in the Hub's cache instead of {}; it is not used",
                              quote(entry.path), (*source)->size(), entry.size));
    return nullptr;
  }

  [[nodiscard]] Result<std::unique_ptr<io::ByteSource>> open_remote(const FileEntry& entry) const {
    std::string name =
        fmt::format("hf://{}@{}/{}", info().location, info().commit, printable(entry.path));
    if (session_ == nullptr) {
      return std::make_unique<OfflineSource>(
          entry.size, io::SourceIdentity{.name = std::move(name), .version = entry.content_id});
    }
    GRIDSCOPE_TRY(http::Url url,
                  resolve_url_of(*session_, info().location, info().commit, entry.path));
    return make_remote_file({.session = session_,
                             .url = std::move(url),
                             .name = std::move(name),
                             .size = entry.size,
                             .content_id = entry.content_id,
                             .commit = info().commit,
                             .repo_id = info().location});
  }

  const StoreContext context_;
  const SessionPtr session_;
  const HubCache hub_cache_;
};

// Finds out commit and files.
class Opening {
 public:
  Opening(const ModelReference& reference, const StoreContext& context, SessionPtr session)
      : reference_(reference),
        context_(context),
        session_(std::move(session)),
        revision_(reference.revision.empty() ? kDefaultRevision : reference.revision),
        hub_cache_(context.hub.cache, reference.location) {}

  Result<Pinned> pin() {
    GRIDSCOPE_TRY(const std::string commit, find_commit());
    GRIDSCOPE_TRY(std::vector<FileEntry> files, find_files(commit));
    return Pinned{.info = {.kind = ReferenceKind::kHub,
                           .reference = reference_.text,
                           .location = reference_.location,
                           .revision = revision_,
                           .commit = commit},
                  .files = std::move(files)};
  }

 private:
  Result<std::string> find_commit() {
    if (is_commit(revision_)) return revision_;
    const std::string key = cache_key(context_, reference_.location, revision_, "commit");
    if (session_ == nullptr) return offline_commit(key);
    auto commit = fetch_commit(*session_, reference_.location, revision_);
    if (commit) {
      keep_document(context_, key, *commit);
    } else if (http::is_transient(commit.error().code) && last_seen(key)) {
      std::string& remedy = commit.error().remedy;
      if (!remedy.empty()) remedy += ", or ";
      remedy += "set HF_HUB_OFFLINE=1 to read what is kept on this machine";
    }
    return commit;
  }

  // The commit that the revision was when it was last asked for, by anybody on this machine.
  std::optional<std::string> last_seen(const std::string& key) {
    auto commit = hub_cache_.commit_of(revision_);
    if (!commit) commit = kept_document(context_, key);
    return commit && is_commit(*commit) ? commit : std::nullopt;
  }

  // A branch may have moved since; which commit stands for it is therefore said.
  Result<std::string> offline_commit(const std::string& key) {
    auto commit = last_seen(key);
    if (!commit) {
      return fail(ErrorCode::kUnavailable,
                  fmt::format("nothing on this machine tells which commit {}@{} is, and "
                              "HF_HUB_OFFLINE is set",
                              reference_.location, revision_),
                  std::string(kOnlineRemedy));
    }
    say(context_, fmt::format("offline: {}@{} is taken to be commit {}, as it was last seen",
                              reference_.location, revision_, *commit));
    return *std::move(commit);
  }

  Result<std::vector<FileEntry>> find_files(const std::string& commit) {
    const std::string key = cache_key(context_, reference_.location, commit, "files");
    if (const auto kept = kept_document(context_, key)) {
      if (auto files = read_file_list(*kept)) return files;
    }
    if (auto files = hub_cache_.listing(commit)) return *std::move(files);
    if (session_ == nullptr) return offline_files(commit);
    GRIDSCOPE_TRY(std::vector<FileEntry> files,
                  fetch_listing(*session_, reference_.location, commit));
    keep_document(context_, key, write_file_list(files));
    return files;
  }

  Result<std::vector<FileEntry>> offline_files(const std::string& commit) {
    auto files = hub_cache_.snapshot(commit);
    if (!files) {
      return fail(ErrorCode::kUnavailable,
                  fmt::format("{} at commit {} was never downloaded or inspected on this machine, "
                              "and HF_HUB_OFFLINE is set",
                              reference_.location, commit),
                  std::string(kOnlineRemedy));
    }
    say(context_, fmt::format("offline: only the {} of {} that were downloaded are seen",
                              count_of(files->size(), "file"), reference_.location));
    return *std::move(files);
  }

  const ModelReference& reference_;
  const StoreContext& context_;
  const SessionPtr session_;
  const std::string revision_;
  const HubCache hub_cache_;
};

Status check_named(const Pinned& pinned, const std::string& path) {
  if (path.empty() || find_file(pinned.files, path) != nullptr) return {};
  if (has_folder(pinned.files, path)) return {};
  return fail(ErrorCode::kNotFound,
              fmt::format("{} has no file or folder {} at commit {}", pinned.info.location,
                          quote(path), pinned.info.commit),
              "leave the path out to see the whole repository");
}

}  // namespace

Result<std::unique_ptr<Repository>> open_hub_repository(const ModelReference& reference,
                                                        const StoreContext& context) {
  GRIDSCOPE_CHECK(check_repo_id(reference.location));
  if (!reference.revision.empty()) GRIDSCOPE_CHECK(check_revision(reference.revision));
  SessionPtr session;
  if (!context.hub.offline) {
    GRIDSCOPE_TRY(session,
                  RemoteSession::make(RemoteSession::Kind::kHub, context.hub.endpoint, context));
  }
  GRIDSCOPE_TRY(Pinned pinned, Opening(reference, context, session).pin());
  GRIDSCOPE_CHECK(check_named(pinned, reference.path));
  return std::make_unique<HubRepository>(std::move(pinned), reference.path, context,
                                         std::move(session));
}

}  // namespace gridscope::store
