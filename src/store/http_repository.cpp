#include "gridscope/store/http_repository.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "gridscope/core/text.hpp"
#include "gridscope/store/file_list.hpp"
#include "gridscope/store/remote_file.hpp"

namespace gridscope::store {
namespace {

// Probes that were made by find() and not opened yet, each with its first bytes.
constexpr std::size_t kMaxKeptProbes = 256;

bool names_a_file(const http::Url& url) {
  return !url.query.empty() || has_model_ending(url.path);
}

struct Place {
  http::Url directory;  // ends with '/'
  std::string query;    // of the file that was named
  std::string named_file;
};

class HttpRepository final : public Repository {
 public:
  HttpRepository(RepositoryInfo info, Place place, StoreContext context,
                 std::shared_ptr<RemoteSession> session)
      : info_(std::move(info)),
        place_(std::move(place)),
        context_(std::move(context)),
        session_(std::move(session)) {}

  [[nodiscard]] const RepositoryInfo& info() const override { return info_; }
  [[nodiscard]] const std::optional<std::vector<FileEntry>>& listing() const override {
    return no_listing_;
  }
  [[nodiscard]] const std::string& named_file() const override { return place_.named_file; }

  [[nodiscard]] Result<std::optional<FileEntry>> find(std::string_view path) const override {
    if (auto entry = kept_entry(path)) return entry;
    auto probed = probe(path);
    if (!probed) {
      const bool guess = path != place_.named_file;
      if (guess && counts_as_absent(path, probed.error())) return std::nullopt;
      return tl::make_unexpected(std::move(probed).error());
    }
    std::optional<RemoteFileSpec> spec = *std::move(probed);
    if (!spec) return std::nullopt;
    FileEntry entry = entry_of(path, *spec);
    keep(entry.path, *std::move(spec));
    return entry;
  }

  [[nodiscard]] Result<std::unique_ptr<io::ByteSource>> open(std::string_view path) const override {
    std::optional<RemoteFileSpec> spec = take_kept(path);
    if (!spec) {
      GRIDSCOPE_TRY(spec, probe(path));
    }
    if (!spec) {
      return fail(ErrorCode::kNotFound,
                  fmt::format("{} has no file {}", info_.location, quote(path)),
                  "check the address");
    }
    if (!may_keep(spec->url) || spec->validator.empty()) return make_remote_file(*std::move(spec));
    context_.cache->put_document(validator_key(spec->url),
                                 std::as_bytes(std::span(spec->validator)));
    std::string key = fmt::format("http {} {}", spec->url.text(), spec->validator);
    auto source = make_remote_file(*std::move(spec));
    return io::make_cached_source(std::move(source), *context_.cache, std::move(key),
                                  *context_.observer);
  }

 private:
  [[nodiscard]] Result<std::optional<RemoteFileSpec>> probe(std::string_view path) const {
    GRIDSCOPE_CHECK(check_repo_path(path));
    http::Url url = place_.directory;
    url.path += http::percent_encode(path, "/");
    if (path == place_.named_file) url.query = place_.query;
    const std::string known = validator_of(url);
    if (!known.empty()) {
      GRIDSCOPE_TRY(auto spec, probe_remote_file(session_, url, 1));
      if (!spec || spec->validator == known) return spec;
    }
    return probe_remote_file(session_, url);
  }

  // A guess that is met by a refusal or a web page may be taken for absent: stores that do not let
  // their content be listed refuse what is not there. Whoever needs the file opens it and gets the
  // error.
  [[nodiscard]] bool counts_as_absent(std::string_view path, const Error& error) const {
    if (error.code == ErrorCode::kNotFound) return true;
    if (error.code != ErrorCode::kPermission) return false;
    std::call_once(warned_of_refusal_, [&] {
      session_->warn_once(
          "HTTP_FORBIDDEN",
          fmt::format("{}: {} may not be read; it is taken to be absent, and so is any other file "
                      "that is refused",
                      info_.location, quote(path)),
          "make the files readable if they are part of the model");
    });
    return true;
  }

  [[nodiscard]] bool may_keep(const http::Url& url) const {
    return context_.cache != nullptr && url.query.empty();
  }

  static std::string validator_key(const http::Url& url) { return "http-validator " + url.text(); }

  // What told the file's version when it was last read; empty when that is not known.
  [[nodiscard]] std::string validator_of(const http::Url& url) const {
    if (!may_keep(url)) return {};
    const auto kept = context_.cache->get_document(validator_key(url));
    if (!kept) return {};
    std::string text(kept->size(), '\0');
    std::ranges::copy(std::as_bytes(std::span(*kept)),
                      std::as_writable_bytes(std::span(text)).begin());
    return text;
  }

  static FileEntry entry_of(std::string_view path, const RemoteFileSpec& spec) {
    return {.path = std::string(path), .size = spec.size, .content_id = spec.content_id};
  }

  [[nodiscard]] std::optional<FileEntry> kept_entry(std::string_view path) const {
    const std::scoped_lock lock(mutex_);
    const auto found = kept_.find(path);
    if (found == kept_.end()) return std::nullopt;
    return entry_of(path, found->second);
  }

  void keep(const std::string& path, RemoteFileSpec spec) const {
    const std::scoped_lock lock(mutex_);
    if (kept_.size() < kMaxKeptProbes) kept_.insert_or_assign(path, std::move(spec));
  }

  [[nodiscard]] std::optional<RemoteFileSpec> take_kept(std::string_view path) const {
    const std::scoped_lock lock(mutex_);
    const auto found = kept_.find(path);
    if (found == kept_.end()) return std::nullopt;
    return std::move(kept_.extract(found).mapped());
  }

  const RepositoryInfo info_;
  const Place place_;
  const StoreContext context_;
  const std::shared_ptr<RemoteSession> session_;
  const std::optional<std::vector<FileEntry>> no_listing_;
  mutable std::once_flag warned_of_refusal_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, RemoteFileSpec, std::less<>> kept_;
};

Result<Place> locate(const http::Url& url) {
  if (!url.query.empty() && url.path.ends_with('/')) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: the URL of a directory may not have a query", url.display()),
                "leave the query off, or name one file with its own");
  }
  Place place{.directory = url, .query = url.query, .named_file = {}};
  place.directory.query.clear();
  std::string& path = place.directory.path;
  if (names_a_file(url)) {
    const std::size_t slash = path.rfind('/');
    GRIDSCOPE_TRY(place.named_file, http::percent_decode(path.substr(slash + 1)));
    GRIDSCOPE_CHECK(check_repo_path(place.named_file));
    path.resize(slash + 1);
  } else if (!path.ends_with('/')) {
    path += '/';
  }
  return place;
}

}  // namespace

Result<std::unique_ptr<Repository>> open_http_repository(const ModelReference& reference,
                                                         const StoreContext& context) {
  GRIDSCOPE_TRY(const http::Url url, http::parse_url(reference.location));
  GRIDSCOPE_TRY(Place place, locate(url));
  GRIDSCOPE_TRY(auto session,
                RemoteSession::make(RemoteSession::Kind::kWeb, url.origin() + "/", context));
  RepositoryInfo info{.kind = ReferenceKind::kHttp,
                      .reference = reference.text,
                      .location = place.directory.display(),
                      .revision = {},
                      .commit = {}};
  const std::string named_file = place.named_file;
  auto repository = std::make_unique<HttpRepository>(std::move(info), std::move(place), context,
                                                     std::move(session));
  if (!named_file.empty()) {
    GRIDSCOPE_TRY(const auto entry, repository->find(named_file));
    if (!entry) {
      return fail(ErrorCode::kNotFound, fmt::format("{} is not there", url.display()),
                  "check the address");
    }
  }
  return repository;
}

}  // namespace gridscope::store
