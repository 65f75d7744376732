#include "gridscope/store/disk_repository.hpp"

#include <fmt/format.h>

#include <optional>
#include <system_error>
#include <utility>

#include "gridscope/core/text.hpp"
#include "gridscope/io/file_source.hpp"
#include "gridscope/store/file_list.hpp"
#include "gridscope/store/hub_cache.hpp"
#include "listed_repository.hpp"

namespace gridscope::store {
namespace {

namespace fs = std::filesystem;

class DiskRepository final : public ListedRepository {
 public:
  DiskRepository(RepositoryInfo info, std::vector<FileEntry> files, std::string named_file,
                 Observer& observer)
      : ListedRepository(std::move(info), std::move(files), std::move(named_file)),
        observer_(observer) {}

  [[nodiscard]] Result<std::unique_ptr<io::ByteSource>> open(std::string_view path) const override {
    GRIDSCOPE_CHECK(check_repo_path(path));
    return io::open_file(fs::path(info().location) / path, observer_);
  }

 private:
  Observer& observer_;
};

// For a directory that may be entered but not listed: files are found by name alone.
class UnlistedDiskRepository final : public Repository {
 public:
  UnlistedDiskRepository(RepositoryInfo info, std::string named_file, Observer& observer)
      : info_(std::move(info)), named_file_(std::move(named_file)), observer_(observer) {}

  [[nodiscard]] const RepositoryInfo& info() const override { return info_; }
  [[nodiscard]] const std::optional<std::vector<FileEntry>>& listing() const override {
    return no_listing_;
  }
  [[nodiscard]] const std::string& named_file() const override { return named_file_; }

  [[nodiscard]] Result<std::optional<FileEntry>> find(std::string_view path) const override {
    GRIDSCOPE_CHECK(check_repo_path(path));
    const fs::path file = fs::path(info_.location) / path;
    std::error_code error;
    if (!fs::is_regular_file(file, error)) return std::nullopt;
    const std::uintmax_t size = fs::file_size(file, error);
    if (error) return std::nullopt;
    return FileEntry{.path = std::string(path), .size = size};
  }

  [[nodiscard]] Result<std::unique_ptr<io::ByteSource>> open(std::string_view path) const override {
    GRIDSCOPE_CHECK(check_repo_path(path));
    return io::open_file(fs::path(info_.location) / path, observer_);
  }

 private:
  const RepositoryInfo info_;
  const std::string named_file_;
  const std::optional<std::vector<FileEntry>> no_listing_;
  Observer& observer_;
};

// The commit of a directory .../models--org--name/snapshots/COMMIT; empty for any other.
std::string snapshot_commit(const fs::path& directory) {
  const std::string name = directory.filename().string();
  const fs::path parent = directory.parent_path();
  const bool in_cache = parent.filename() == "snapshots" &&
                        !repo_id_of_folder(parent.parent_path().filename().string()).empty();
  return in_cache && is_commit(name) ? name : std::string();
}

// The snapshot that a folder of the Hub's cache stands for; any other directory is itself.
Result<fs::path> choose_snapshot(const fs::path& directory, Observer& observer) {
  const std::string id = repo_id_of_folder(directory.filename().string());
  std::error_code ignored;
  if (id.empty() || !fs::is_directory(directory / "snapshots", ignored)) return directory;
  const HubCache cache(directory);
  const auto commit = cache.commit_of("main");
  if (!commit || !fs::is_directory(cache.snapshot_folder(*commit), ignored)) {
    return fail(ErrorCode::kNotFound,
                fmt::format("the Hub's cache holds no snapshot of main of {}, only of: {}", id,
                            printable(fmt::format("{}", fmt::join(cache.revisions(), ", ")))),
                fmt::format("name a folder below {}", quote((directory / "snapshots").string())));
  }
  const std::string message = fmt::format("{} is the Hub's cache of {}; commit {} of main is read",
                                          quote(directory.string()), id, *commit);
  observer.on_event(Detail{.message = message});
  return cache.snapshot_folder(*commit);
}

// "dir" and "dir/" are the same place; "." and ".." name none by themselves.
fs::path without_trailing_slash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

void say_chosen(const ModelReference& reference, Observer& observer) {
  if (!reference.chosen_from_disk) return;
  const std::string message =
      fmt::format("{} exists on disk and is read from there; write hf://{} for the Hub",
                  quote(reference.text), reference.text);
  observer.on_event(Detail{.message = message});
}

// What stands at `path`, if it can be read at all.
Result<fs::file_status> status_of(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status) || fs::is_regular_file(status)) return status;
  const std::string name = quote(path.string());
  if (fs::exists(status)) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("{} is not a regular file", name),
                "write what it gives to a file: it is read by range, not from start to end");
  }
  if (error == std::errc::permission_denied) {
    return fail(ErrorCode::kPermission, fmt::format("{}: permission denied", name));
  }
  if (is_dangling_link(path)) {
    const fs::path target = fs::read_symlink(path, error);
    return fail(ErrorCode::kNotFound,
                fmt::format("{} is a dangling link to {}", name, quote(target.string())),
                "fetch the file again, or mend the link");
  }
  return fail(ErrorCode::kNotFound, fmt::format("{}: no such file or directory", name));
}

Result<std::unique_ptr<Repository>> open_whole(const fs::path& directory, RepositoryInfo info,
                                               Observer& observer) {
  GRIDSCOPE_TRY(std::vector<FileEntry> files, walk_directory(directory, {.observer = &observer}));
  return std::make_unique<DiskRepository>(std::move(info), std::move(files), "", observer);
}

Result<std::unique_ptr<Repository>> open_named(const fs::path& directory, std::string name,
                                               RepositoryInfo info, Observer& observer) {
  auto files = walk_directory(directory, {.depth = 0, .observer = &observer});
  if (files) {
    return std::make_unique<DiskRepository>(std::move(info), *std::move(files), std::move(name),
                                            observer);
  }
  if (files.error().code != ErrorCode::kPermission) {
    return tl::make_unexpected(std::move(files).error());
  }
  const std::string message =
      fmt::format("{} cannot be listed; files are looked for by name", quote(directory.string()));
  observer.on_event(Detail{.message = message});
  return std::make_unique<UnlistedDiskRepository>(std::move(info), std::move(name), observer);
}

}  // namespace

Result<std::unique_ptr<Repository>> open_disk_repository(const ModelReference& reference,
                                                         const StoreContext& context) {
  const fs::path path = without_trailing_slash(reference.location);
  GRIDSCOPE_TRY(const fs::file_status status, status_of(path));
  Observer& observer = *context.observer;
  say_chosen(reference, observer);
  const bool whole = fs::is_directory(status);
  fs::path directory = whole ? path : path.parent_path();
  if (directory.empty()) directory = ".";
  if (whole) {
    GRIDSCOPE_TRY(directory, choose_snapshot(directory, observer));
  }
  RepositoryInfo info{.kind = ReferenceKind::kDisk,
                      .reference = reference.text,
                      .location = directory.string(),
                      .revision = {},
                      .commit = snapshot_commit(directory)};
  return whole ? open_whole(directory, std::move(info), observer)
               : open_named(directory, path.filename().string(), std::move(info), observer);
}

}  // namespace gridscope::store
