#include "gridscope/io/file_source.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <climits>

#include "gridscope/core/text.hpp"
#include "gridscope/io/coalesce.hpp"
#include "gridscope/io/descriptor.hpp"

namespace gridscope::io {
namespace {

// On a disk a merged read saves a system call, not a round trip, so that there is no reason to hold
// more than this in a buffer.
constexpr CoalesceOptions kMerging = {.max_gap = 16ULL * 1024, .max_length = 4ULL * 1024 * 1024};

// What moves when somebody writes to a file.
std::string version_of(const struct stat& state) {
  return fmt::format("{}-{}-{}.{:09}", state.st_size, state.st_ino, state.st_mtim.tv_sec,
                     state.st_mtim.tv_nsec);
}

class FileSource final : public ByteSource {
 public:
  FileSource(Descriptor file, std::uint64_t size, SourceIdentity identity, Observer& observer)
      : file_(std::move(file)), size_(size), identity_(std::move(identity)), observer_(observer) {}

  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] const SourceIdentity& identity() const override { return identity_; }

  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> into) const override {
    GRIDSCOPE_CHECK(check_range(*this, offset, into.size()));
    if (into.empty()) return {};
    return fetch(offset, into);
  }

  [[nodiscard]] Status read_many(std::span<const ReadRequest> requests) const override {
    for (const ReadRequest& request : requests) {
      GRIDSCOPE_CHECK(check_range(*this, request.offset, request.into.size()));
    }
    std::vector<std::byte> buffer;
    for (const CoalescedRange& merged : coalesce(requests, kMerging)) {
      GRIDSCOPE_CHECK(fill(merged, requests, buffer));
    }
    return {};
  }

 private:
  // A range that one request alone asks for goes straight to where it is wanted.
  [[nodiscard]] Status fill(const CoalescedRange& merged, std::span<const ReadRequest> requests,
                            std::vector<std::byte>& buffer) const {
    const ByteRange& range = merged.range;
    if (merged.requests.size() == 1) {
      const ReadRequest& only = requests[merged.requests.front()];
      return fetch(range.offset, only.into.subspan(range.offset - only.offset, range.length));
    }
    buffer.resize(range.length);
    GRIDSCOPE_CHECK(fetch(range.offset, buffer));
    scatter(merged, buffer, requests);
    return {};
  }

  [[nodiscard]] Status fetch(std::uint64_t offset, std::span<std::byte> into) const {
    const Result<std::size_t> read = read_up_to(file_, offset, into);
    if (!read) return tl::make_unexpected(with_context(read.error(), quote(identity_.name)));
    GRIDSCOPE_CHECK(check_unchanged());
    if (*read < into.size()) {
      return fail(ErrorCode::kChanged, fmt::format("{} ends at byte {}, it had {} when opened",
                                                   quote(identity_.name), offset + *read, size_));
    }
    observer_.on_event(RangeRead{
        .source = identity_.name, .offset = offset, .bytes = into.size(), .origin = Origin::kDisk});
    return {};
  }

  // Looked at after a read, so that a write before or during it is noticed.
  [[nodiscard]] Status check_unchanged() const {
    struct stat state{};
    if (::fstat(file_.get(), &state) != 0) {
      return tl::make_unexpected(system_error(errno, quote(identity_.name)));
    }
    if (version_of(state) == identity_.version) return {};
    return fail(ErrorCode::kChanged,
                fmt::format("{} was written to while it was read", quote(identity_.name)),
                "run again when the file is complete");
  }

  const Descriptor file_;
  const std::uint64_t size_;
  const SourceIdentity identity_;
  Observer& observer_;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> open_file(const std::filesystem::path& path,
                                              Observer& observer) {
  const std::string name = printable(path.native(), PATH_MAX);
  // Without O_NONBLOCK a named pipe would wait here for a writer.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat state{};
  if (!file.is_open() || ::fstat(file.get(), &state) != 0) {
    return tl::make_unexpected(system_error(errno, "cannot open " + quote(name)));
  }
  if (!S_ISREG(state.st_mode)) {
    return fail(ErrorCode::kInvalidArgument,
                quote(name) + (S_ISDIR(state.st_mode) ? " is a directory" : " is not a file"),
                "name a regular file");
  }
  return std::make_unique<FileSource>(std::move(file), static_cast<std::uint64_t>(state.st_size),
                                      SourceIdentity{.name = name, .version = version_of(state)},
                                      observer);
}

}  // namespace gridscope::io
