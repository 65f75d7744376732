#pragma once

// Lists of files: walking a directory, looking names up, keeping a list as text.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/core/observer.hpp"
#include "gridscope/core/result.hpp"
#include "gridscope/store/repository.hpp"

namespace gridscope::store {

inline constexpr int kMaxDirectoryDepth = 8;
inline constexpr std::size_t kMaxListedFiles = 1'000'000;

struct WalkOptions {
  int depth = kMaxDirectoryDepth;             // 0: the directory alone
  std::size_t max_entries = kMaxListedFiles;  // files and directories together
  Observer* observer = nullptr;               // told what is left out
};

// The regular files below `directory`, sorted by path. Symbolic links are followed, unless they
// lead back to a directory that they lie in. Hidden directories and names that no repository could
// have are left out; so are directories that cannot be listed (a DIRECTORY_SKIPPED warning) and
// links to nothing (LINK_DANGLING, when they are named like a file of a model). Errors: kNotFound
// and kPermission for `directory` itself, kLimit.
[[nodiscard]] Result<std::vector<FileEntry>> walk_directory(const std::filesystem::path& directory,
                                                            const WalkOptions& options = {});

// A symbolic link to something that does not exist.
[[nodiscard]] bool is_dangling_link(const std::filesystem::path& path);

// Whether a file of that name may be one of a model: ".safetensors", ".json", ".gguf" and so on.
[[nodiscard]] bool has_model_ending(std::string_view path);

// Sorted by path; of entries of the same path one stays.
void sort_files(std::vector<FileEntry>& files);

// Null when there is none. Requires: `files` sorted by path.
[[nodiscard]] const FileEntry* find_file(const std::vector<FileEntry>& files,
                                         std::string_view path);

// Whether some file lies in the folder `path`. Requires: `files` sorted by path.
[[nodiscard]] bool has_folder(const std::vector<FileEntry>& files, std::string_view path);

// A list as text and back, for keeping. Errors: kCorrupt.
[[nodiscard]] std::string write_file_list(const std::vector<FileEntry>& files);
[[nodiscard]] Result<std::vector<FileEntry>> read_file_list(std::string_view text);

}  // namespace gridscope::store
