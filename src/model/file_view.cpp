#include "gridscope/model/file_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gridscope/core/checked.hpp"
#include "gridscope/core/parallel.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/format/container.hpp"
#include "gridscope/store/file_list.hpp"

namespace gridscope::model {
namespace {

constexpr std::size_t kProbesAtOnce = 8;

}  // namespace

std::span<const store::FileEntry> FileView::files() const {
  const auto& listing = repository_.listing();
  return listing ? std::span<const store::FileEntry>(*listing)
                 : std::span<const store::FileEntry>();
}

Status FileView::probe(std::span<const std::string> paths) {
  if (can_list()) return {};
  std::vector<std::optional<store::FileEntry>> found(paths.size());
  GRIDSCOPE_CHECK(parallel_chunks(paths.size(), kProbesAtOnce, [&](std::size_t i) -> Status {
    GRIDSCOPE_TRY(found[i], repository_.find(paths[i]));
    return {};
  }));
  for (std::size_t i = 0; i < paths.size(); ++i) probed_[paths[i]] = std::move(found[i]);
  return {};
}

const store::FileEntry* FileView::find(std::string_view path) const {
  if (!can_list()) {
    const auto at = probed_.find(path);
    if (at == probed_.end()) return nullptr;
    const std::optional<store::FileEntry>& entry = at->second;
    return entry ? &*entry : nullptr;
  }
  const auto all = files();
  const auto at = std::ranges::lower_bound(
      all, path, {}, [](const store::FileEntry& entry) { return std::string_view(entry.path); });
  return at != all.end() && at->path == path ? &*at : nullptr;
}

bool FileView::has_folder(std::string_view folder) const {
  const auto all = files();
  const auto at = std::ranges::lower_bound(
      all, folder, {}, [](const store::FileEntry& entry) { return std::string_view(entry.path); });
  return at != all.end() && at->path.starts_with(folder);
}

Result<std::string> read_file(const store::Repository& repository, std::string_view path,
                              std::uint64_t max_bytes) {
  GRIDSCOPE_TRY(const auto source, repository.open(path));
  const std::optional<std::size_t> size = to_size(source->size());
  if (source->size() > max_bytes || !size) {
    return fail(ErrorCode::kLimit,
                fmt::format("{}: {}, more than the limit of {}", printable(path),
                            format_bytes(source->size()), format_bytes(max_bytes)));
  }
  std::string text(*size, '\0');
  GRIDSCOPE_CHECK(source->read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

std::optional<Error> lfs_pointer_error(std::string_view path, std::string_view text) {
  const auto pointer = format::parse_lfs_pointer(std::as_bytes(std::span(text)));
  if (!pointer) return std::nullopt;
  return Error{.code = ErrorCode::kCorrupt,
               .message = fmt::format("{} is the Git LFS pointer that stands in place of {} bytes",
                                      printable(path), with_thousands(pointer->size)),
               .remedy = std::string(format::container_remedy(format::Container::kLfsPointer))};
}

NamedPlace named_place(const store::Repository& repository) {
  const std::string& named = repository.named_file();
  if (named.empty()) return {};
  const FileView files(repository);
  const bool is_file =
      files.can_list() ? files.find(named) != nullptr : store::has_model_ending(named);
  if (is_file) return {.folder = std::string(folder_of(named)), .file = named};
  return {.folder = named.ends_with('/') ? named : named + "/", .file = {}};
}

std::string_view folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash + 1);
}

std::string_view file_name_of(std::string_view path) {
  return path.substr(folder_of(path).size());
}

}  // namespace gridscope::model
