#pragma once

// What the Hub's own tools have downloaded: the folder of one repository in their cache. Read only,
// without locks; incomplete downloads are never linked from a snapshot, so what is there is whole.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/store/repository.hpp"

namespace gridscope::store {

// Thread-safe.
class HubCache {
 public:
  // `cache` may be empty or missing: then nothing is found. Requires: a valid id.
  HubCache(const std::filesystem::path& cache, std::string_view repo_id);
  // The folder of a repository itself, named models--org--name.
  explicit HubCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // The commit that `revision` was when it was last fetched. Requires: a valid revision.
  [[nodiscard]] std::optional<std::string> commit_of(std::string_view revision) const;
  // The revisions that commit_of knows by a plain name.
  [[nodiscard]] std::vector<std::string> revisions() const;

  [[nodiscard]] std::filesystem::path snapshot_folder(std::string_view commit) const;
  // A file of the snapshot, when it is there and a regular file. Only a full commit is looked for.
  [[nodiscard]] std::optional<std::filesystem::path> file(std::string_view commit,
                                                          std::string_view path) const;

  // All files of the commit, downloaded or not, when the tools kept the listing.
  [[nodiscard]] std::optional<std::vector<FileEntry>> listing(std::string_view commit) const;
  // The files of the commit that were downloaded; empty when there is no such snapshot.
  [[nodiscard]] std::optional<std::vector<FileEntry>> snapshot(std::string_view commit) const;

 private:
  std::filesystem::path folder_;
};

// "org/name" from "models--org--name"; empty when `folder` is not so named.
[[nodiscard]] std::string repo_id_of_folder(std::string_view folder);

}  // namespace gridscope::store
