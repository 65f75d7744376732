#pragma once

// The files of a repository, the same whether the place can list them or only be asked by name.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/core/result.hpp"
#include "gridscope/store/repository.hpp"

namespace gridscope::model {

class FileView {
 public:
  // The repository must outlive the view.
  explicit FileView(const store::Repository& repository) : repository_(repository) {}

  [[nodiscard]] bool can_list() const { return repository_.listing().has_value(); }
  // All files, sorted by path; none when the place cannot list.
  [[nodiscard]] std::span<const store::FileEntry> files() const;

  // Where the place cannot list: asks for all of these at once and remembers the answers.
  // Errors: those of Repository::find.
  [[nodiscard]] Status probe(std::span<const std::string> paths);

  // From the listing, or from what was probed; null when it is not there.
  [[nodiscard]] const store::FileEntry* find(std::string_view path) const;

  // Whether the listing has a file below `folder` (which ends in '/').
  [[nodiscard]] bool has_folder(std::string_view folder) const;

 private:
  const store::Repository& repository_;
  std::map<std::string, std::optional<store::FileEntry>, std::less<>> probed_;
};

// The whole of a small file. Errors: kLimit when it is larger than `max_bytes`; those of opening
// and reading it.
[[nodiscard]] Result<std::string> read_file(const store::Repository& repository,
                                            std::string_view path, std::uint64_t max_bytes);

// What is wrong with a file whose text is only the pointer that Git LFS left in its place; empty
// for any other text.
[[nodiscard]] std::optional<Error> lfs_pointer_error(std::string_view path, std::string_view text);

// What the reference points at: a folder of the repository ("" or ending in '/') and, when it names
// one, a file in it (its path in the repository).
struct NamedPlace {
  std::string folder;
  std::string file;
};
[[nodiscard]] NamedPlace named_place(const store::Repository& repository);

// "a/b/" of "a/b/c", "" of "c"; and "c" of both.
[[nodiscard]] std::string_view folder_of(std::string_view path);
[[nodiscard]] std::string_view file_name_of(std::string_view path);

}  // namespace gridscope::model
