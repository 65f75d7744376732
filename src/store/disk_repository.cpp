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

}  // namespace

Result<std::unique_ptr<Repository>> open_disk_repository(const ModelReference& reference,
                                                         const StoreContext& context) {
  const fs::path path = without_trailing_slash(reference.location);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    const bool denied = error == std::errc::permission_denied;
    return fail(denied ? ErrorCode::kPermission : ErrorCode::kNotFound,
                fmt::format("{}: {}", quote(path.string()),
                            denied ? "permission denied" : "no such file or directory"));
  }
  say_chosen(reference, *context.observer);
  const bool whole = fs::is_directory(status);
  fs::path directory = whole ? path : path.parent_path();
  if (directory.empty()) directory = ".";
  if (whole) {
    GRIDSCOPE_TRY(directory, choose_snapshot(directory, *context.observer));
  }
  GRIDSCOPE_TRY(std::vector<FileEntry> files,
                walk_directory(directory, {.depth = whole ? kMaxDirectoryDepth : 0}));
  RepositoryInfo info{.kind = ReferenceKind::kDisk,
                      .reference = reference.text,
                      .location = directory.string(),
                      .revision = {},
                      .commit = snapshot_commit(directory)};
  return std::make_unique<DiskRepository>(std::move(info), std::move(files),
                                          whole ? "" : path.filename().string(), *context.observer);
}

}  // namespace gridscope::store
