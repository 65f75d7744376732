#include "gridscope/store/file_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "gridscope/core/text.hpp"
#include "header_fields.hpp"

namespace gridscope::store {
namespace {

namespace fs = std::filesystem;

// One file a line: size, content id, path, with tabs between. Paths hold no control bytes.
constexpr std::string_view kFirstLine = "gridscope.files/1";

Error directory_error(const fs::path& directory, const std::error_code& error) {
  const ErrorCode code = error == std::errc::permission_denied           ? ErrorCode::kPermission
                         : error == std::errc::no_such_file_or_directory ? ErrorCode::kNotFound
                         : error == std::errc::not_a_directory           ? ErrorCode::kNotFound
                                                                         : ErrorCode::kUnavailable;
  return {.code = code,
          .message = fmt::format("directory {}: {}", quote(directory.string()), error.message())};
}

class Walk {
 public:
  explicit Walk(const WalkOptions& options) : options_(options) {}

  Status visit(const fs::path& directory, const std::string& prefix, int depth) {
    std::error_code error;
    fs::directory_iterator entries(directory, error);
    for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
      GRIDSCOPE_CHECK(visit_entry(*entries, prefix, depth));
    }
    if (!error) return {};
    return tl::make_unexpected(directory_error(directory, error));
  }

  std::vector<FileEntry> take() { return std::move(files_); }

 private:
  Status visit_entry(const fs::directory_entry& entry, const std::string& prefix, int depth) {
    const std::string name = entry.path().filename().string();
    const std::string path = prefix + name;
    std::error_code error;
    if (entry.is_directory(error) && !entry.is_symlink(error)) {
      if (name.starts_with('.') || depth == 0) return {};
      return visit(entry.path(), path + '/', depth - 1);
    }
    if (!entry.is_regular_file(error) || !check_repo_path(path)) return {};
    const std::uintmax_t size = entry.file_size(error);
    if (error) return {};
    if (files_.size() == options_.max_files) {
      return fail(
          ErrorCode::kLimit,
          fmt::format("the directory holds more than {} files", with_thousands(options_.max_files)),
          "name the directory of the model itself");
    }
    files_.push_back({.path = path, .size = size});
    return {};
  }

  const WalkOptions options_;
  std::vector<FileEntry> files_;
};

// Cuts off what stands before the next `separator`; empty optional when there is none.
std::optional<std::string_view> take_until(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view piece = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return piece;
}

}  // namespace

Result<std::vector<FileEntry>> walk_directory(const fs::path& directory,
                                              const WalkOptions& options) {
  Walk walk(options);
  GRIDSCOPE_CHECK(walk.visit(directory, "", options.depth));
  std::vector<FileEntry> files = walk.take();
  sort_files(files);
  return files;
}

void sort_files(std::vector<FileEntry>& files) {
  std::ranges::sort(files, {}, &FileEntry::path);
  const auto repeated = std::ranges::unique(files, {}, &FileEntry::path);
  files.erase(repeated.begin(), repeated.end());
}

const FileEntry* find_file(const std::vector<FileEntry>& files, std::string_view path) {
  const auto found = std::ranges::lower_bound(files, path, {}, &FileEntry::path);
  return found != files.end() && found->path == path ? &*found : nullptr;
}

bool has_folder(const std::vector<FileEntry>& files, std::string_view path) {
  const std::string prefix = std::string(path) + '/';
  const auto found = std::ranges::lower_bound(files, prefix, {}, &FileEntry::path);
  return found != files.end() && found->path.starts_with(prefix);
}

std::string write_file_list(const std::vector<FileEntry>& files) {
  std::string text = fmt::format("{}\n", kFirstLine);
  for (const FileEntry& file : files) {
    text += fmt::format("{}\t{}\t{}\n", file.size, file.content_id, file.path);
  }
  return text;
}

Result<std::vector<FileEntry>> read_file_list(std::string_view text) {
  const auto corrupt = [] { return fail(ErrorCode::kCorrupt, "a kept list of files is damaged"); };
  if (take_until(text, '\n') != kFirstLine) return corrupt();
  std::vector<FileEntry> files;
  while (!text.empty()) {
    const auto size = take_until(text, '\t');
    const auto content_id = size ? take_until(text, '\t') : std::nullopt;
    const auto path = content_id ? take_until(text, '\n') : std::nullopt;
    const auto bytes = path ? parse_digits(*size) : std::nullopt;
    if (!bytes || !check_repo_path(*path)) return corrupt();
    files.push_back(
        {.path = std::string(*path), .size = *bytes, .content_id = std::string(*content_id)});
  }
  sort_files(files);
  return files;
}

}  // namespace gridscope::store
