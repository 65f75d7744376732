#pragma once

// What repositories that know all their files have in common.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gridscope/store/file_list.hpp"
#include "gridscope/store/repository.hpp"

namespace gridscope::store {

class ListedRepository : public Repository {
 public:
  // Requires: `files` sorted by path.
  ListedRepository(RepositoryInfo info, std::vector<FileEntry> files, std::string named_file)
      : info_(std::move(info)), files_(std::move(files)), named_file_(std::move(named_file)) {}

  [[nodiscard]] const RepositoryInfo& info() const override { return info_; }
  [[nodiscard]] const std::optional<std::vector<FileEntry>>& listing() const override {
    return files_;
  }
  [[nodiscard]] const std::string& named_file() const override { return named_file_; }

  [[nodiscard]] Result<std::optional<FileEntry>> find(std::string_view path) const override {
    GRIDSCOPE_CHECK(check_repo_path(path));
    const FileEntry* entry = files_ ? find_file(*files_, path) : nullptr;
    return entry == nullptr ? std::nullopt : std::optional(*entry);
  }

 private:
  const RepositoryInfo info_;
  const std::optional<std::vector<FileEntry>> files_;
  const std::string named_file_;
};

}  // namespace gridscope::store
