#pragma once

// A place that holds the files of one model: a Hub repository at one commit, a directory on disk, a
// directory behind HTTP. What lies above asks it for files and never knows which it is.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/core/result.hpp"
#include "gridscope/io/byte_source.hpp"
#include "gridscope/store/reference.hpp"

namespace gridscope::store {

struct RepositoryInfo {
  ReferenceKind kind = ReferenceKind::kDisk;
  std::string reference;  // as the user gave it
  std::string location;   // repository id, URL or directory
  std::string revision;   // asked for; empty outside the Hub
  std::string commit;     // what it resolved to; empty when the place has none
};

struct FileEntry {
  std::string path;  // POSIX, relative to the repository
  std::uint64_t size = 0;
  std::string content_id = {};  // sha256 or ETag, when the place tells it

  friend bool operator==(const FileEntry&, const FileEntry&) = default;
};

// Thread-safe.
class Repository {
 public:
  virtual ~Repository() = default;

  [[nodiscard]] virtual const RepositoryInfo& info() const = 0;

  // Every file, sorted by path; empty optional when the place cannot list (a plain web server),
  // where files can only be asked for by name.
  [[nodiscard]] virtual const std::optional<std::vector<FileEntry>>& listing() const = 0;

  // One file by name; an empty optional when it is certainly not there.
  // Errors: kInvalidArgument for a path that leaves the repository; those of the place.
  [[nodiscard]] virtual Result<std::optional<FileEntry>> find(std::string_view path) const = 0;

  // The repository must outlive the source. Errors: kNotFound and those of find.
  [[nodiscard]] virtual Result<std::unique_ptr<io::ByteSource>> open(
      std::string_view path) const = 0;

  // The file that the reference itself names, relative to the repository (on the Hub also a
  // folder); empty for a whole repository.
  [[nodiscard]] virtual const std::string& named_file() const = 0;
};

}  // namespace gridscope::store
