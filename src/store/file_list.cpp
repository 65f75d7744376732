#include "gridscope/store/file_list.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <optional>
#include <system_error>
#include <utility>

#include "gridscope/core/text.hpp"
#include "gridscope/http/fields.hpp"

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

// The first names, and how many more there are.
std::string some_of(std::vector<std::string> paths) {
  constexpr std::size_t kMaxShown = 5;
  std::ranges::sort(paths);
  const std::size_t shown = std::min(paths.size(), kMaxShown);
  std::vector<std::string> quoted(shown);
  std::transform(paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(shown), quoted.begin(),
                 [](const std::string& path) { return quote(path); });
  std::string text = fmt::format("{}", fmt::join(quoted, ", "));
  if (shown == paths.size()) return text;
  return fmt::format("{} and {} more", text, with_thousands(paths.size() - shown));
}

// What tells one directory from another, whatever it is called. Empty when it cannot be asked.
std::optional<std::pair<dev_t, ino_t>> identity_of(const fs::path& directory) {
  struct stat state{};
  if (::stat(directory.c_str(), &state) != 0) return std::nullopt;
  return std::pair(state.st_dev, state.st_ino);
}

// Links to directories are followed, but never back to a directory that the walk is in just now or
// that holds the whole of it. Links that cross each other still multiply, so directories count
// towards the limit too.
class Walk {
 public:
  explicit Walk(const WalkOptions& options) : options_(options) {}

  Status run(const fs::path& root) {
    std::error_code error;
    const fs::path whole = fs::canonical(root, error);
    for (fs::path above = whole; above.has_relative_path(); above = above.parent_path()) {
      if (const auto identity = identity_of(above.parent_path())) inside_.push_back(*identity);
    }
    GRIDSCOPE_CHECK(visit(root, "", options_.depth));
    report();
    return {};
  }

  std::vector<FileEntry> take() { return std::move(files_); }

 private:
  Status visit(const fs::path& directory, const std::string& prefix, int depth) {
    if (const auto identity = identity_of(directory)) {
      if (std::ranges::find(inside_, *identity) != inside_.end()) return {};
      inside_.push_back(*identity);
      const Status status = list(directory, prefix, depth);
      inside_.pop_back();
      return status;
    }
    return list(directory, prefix, depth);
  }

  Status list(const fs::path& directory, const std::string& prefix, int depth) {
    std::error_code error;
    fs::directory_iterator entries(directory, error);
    for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
      GRIDSCOPE_CHECK(visit_entry(*entries, prefix, depth));
    }
    if (!error) return {};
    if (prefix.empty()) return tl::make_unexpected(directory_error(directory, error));
    // A directory that is gone by now holds nothing.
    if (error != std::errc::no_such_file_or_directory) unlisted_.push_back(prefix);
    return {};
  }

  Status visit_entry(const fs::directory_entry& entry, const std::string& prefix, int depth) {
    const std::string name = entry.path().filename().string();
    const std::string path = prefix + name;
    std::error_code error;
    if (entry.is_directory(error)) {
      if (name.starts_with('.') || depth == 0) return {};
      GRIDSCOPE_CHECK(count_one());
      return visit(entry.path(), path + '/', depth - 1);
    }
    if (!check_repo_path(path)) return {};
    if (!entry.is_regular_file(error)) {
      if (has_model_ending(path) && is_dangling_link(entry.path())) dangling_.push_back(path);
      return {};
    }
    const std::uintmax_t size = entry.file_size(error);
    if (error) return {};
    GRIDSCOPE_CHECK(count_one());
    files_.push_back({.path = path, .size = size});
    return {};
  }

  Status count_one() {
    if (++entries_ <= options_.max_entries) return {};
    return fail(ErrorCode::kLimit,
                fmt::format("the directory holds more than {} files and directories",
                            with_thousands(options_.max_entries)),
                "name the directory of the model itself");
  }

  void report() const {
    if (options_.observer == nullptr) return;
    const auto warn = [&](std::string_view code, const std::string& message,
                          std::string_view remedy) {
      options_.observer->on_event(Warning{.code = code, .message = message, .remedy = remedy});
    };
    if (!unlisted_.empty()) {
      warn("DIRECTORY_SKIPPED",
           fmt::format("{} cannot be listed: what is in there is left out", some_of(unlisted_)),
           "make it readable if it is part of the model");
    }
    if (!dangling_.empty()) {
      warn("LINK_DANGLING", fmt::format("{}: the link leads to nothing", some_of(dangling_)),
           "fetch the file again if it is part of the model");
    }
  }

  const WalkOptions options_;
  std::size_t entries_ = 0;
  std::vector<std::pair<dev_t, ino_t>> inside_;  // and what holds the first of them
  std::vector<FileEntry> files_;
  std::vector<std::string> unlisted_;
  std::vector<std::string> dangling_;
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
  GRIDSCOPE_CHECK(walk.run(directory));
  std::vector<FileEntry> files = walk.take();
  sort_files(files);
  return files;
}

bool is_dangling_link(const fs::path& path) {
  std::error_code error;
  return fs::is_symlink(fs::symlink_status(path, error)) &&
         fs::status(path, error).type() == fs::file_type::not_found;
}

bool has_model_ending(std::string_view path) {
  constexpr std::array<std::string_view, 12> kEndings = {
      ".safetensors", ".json", ".gguf", ".bin",    ".pt",       ".pth",
      ".ckpt",        ".onnx", ".task", ".tflite", ".litertlm", ".npz"};
  return std::ranges::any_of(kEndings,
                             [&](std::string_view ending) { return path.ends_with(ending); });
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
    const auto bytes = path ? http::parse_digits(*size) : std::nullopt;
    if (!bytes || !check_repo_path(*path)) return corrupt();
    files.push_back(
        {.path = std::string(*path), .size = *bytes, .content_id = std::string(*content_id)});
  }
  sort_files(files);
  return files;
}

}  // namespace gridscope::store
