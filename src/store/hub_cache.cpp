#include "gridscope/store/hub_cache.hpp"

#include <algorithm>
#include <fstream>
#include <system_error>

#include "gridscope/core/json.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/http/fields.hpp"
#include "gridscope/store/file_list.hpp"

namespace gridscope::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolderPrefix = "models--";
constexpr std::string_view kSlash = "--";
constexpr std::size_t kMaxRefBytes = 256;
constexpr std::size_t kMaxListingBytes = std::size_t{64} * 1024 * 1024;

// The whole file; empty when it cannot be read or is longer than `max_bytes`.
std::optional<std::string> read_small_file(const fs::path& path, std::size_t max_bytes) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error || size > max_bytes) return std::nullopt;
  std::string text(static_cast<std::size_t>(size), '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  return in.gcount() == static_cast<std::streamsize>(text.size()) ? std::optional(text)
                                                                  : std::nullopt;
}

std::string text_of(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  return value != nullptr && value->string() != nullptr ? printable(*value->string()) : "";
}

}  // namespace

HubCache::HubCache(const fs::path& cache, std::string_view repo_id) {
  if (cache.empty()) return;
  std::string name(kFolderPrefix);
  for (const char c : repo_id) name += c == '/' ? std::string(kSlash) : std::string(1, c);
  folder_ = cache / name;
}

std::optional<std::string> HubCache::commit_of(std::string_view revision) const {
  if (folder_.empty()) return std::nullopt;
  const auto text = read_small_file(folder_ / "refs" / revision, kMaxRefBytes);
  if (!text || !is_commit(http::trim_blanks(*text))) return std::nullopt;
  return std::string(http::trim_blanks(*text));
}

std::vector<std::string> HubCache::revisions() const {
  std::vector<std::string> names;
  const auto files = walk_directory(folder_ / "refs");
  if (!files) return names;
  for (const FileEntry& file : *files) names.push_back(file.path);
  return names;
}

fs::path HubCache::snapshot_folder(std::string_view commit) const {
  return folder_ / "snapshots" / commit;
}

std::optional<fs::path> HubCache::file(std::string_view commit, std::string_view path) const {
  if (folder_.empty() || !is_commit(commit) || !check_repo_path(path)) return std::nullopt;
  fs::path found = snapshot_folder(commit) / path;
  std::error_code error;
  return fs::is_regular_file(found, error) ? std::optional(std::move(found)) : std::nullopt;
}

std::optional<std::vector<FileEntry>> HubCache::listing(std::string_view commit) const {
  if (folder_.empty() || !is_commit(commit)) return std::nullopt;
  const fs::path path = folder_ / "trees" / (std::string(commit) + ".json");
  const auto text = read_small_file(path, kMaxListingBytes);
  if (!text) return std::nullopt;
  const auto json = parse_json(*text);
  const JsonValue* version = json ? json->find("format_version") : nullptr;
  const JsonValue* entries = json ? json->find("files") : nullptr;
  const bool known = version != nullptr && version->unsigned_integer() != nullptr &&
                     *version->unsigned_integer() == 1 && entries != nullptr &&
                     entries->object() != nullptr;
  if (!known) return std::nullopt;
  std::vector<FileEntry> files;
  for (const auto& [name, entry] : *entries->object()) {
    const JsonValue* size = entry.find("size");
    if (size == nullptr || size->unsigned_integer() == nullptr) return std::nullopt;
    if (!check_repo_path(name)) continue;
    const std::string sha256 = text_of(entry, "lfs_sha256");
    files.push_back({.path = name,
                     .size = *size->unsigned_integer(),
                     .content_id = sha256.empty() ? text_of(entry, "blob_id") : sha256});
  }
  sort_files(files);
  return files;
}

std::optional<std::vector<FileEntry>> HubCache::snapshot(std::string_view commit) const {
  if (folder_.empty() || !is_commit(commit)) return std::nullopt;
  auto files = walk_directory(snapshot_folder(commit));
  return files ? std::optional(*std::move(files)) : std::nullopt;
}

std::string repo_id_of_folder(std::string_view folder) {
  if (!folder.starts_with(kFolderPrefix)) return {};
  folder.remove_prefix(kFolderPrefix.size());
  std::string id(folder);
  if (const std::size_t at = id.find(kSlash); at != std::string::npos) {
    id.replace(at, kSlash.size(), "/");
  }
  return check_repo_id(id) ? id : std::string();
}

}  // namespace gridscope::store
