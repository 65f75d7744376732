#include "grid_journal_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <string_view>
#include <utility>

#include "gridscope/core/text.hpp"

namespace gridscope::app {
namespace {

constexpr std::uint64_t kMaxJournalBytes = 2'000'000'000;
constexpr mode_t kPermissions = 0644;

Error about(const std::filesystem::path& path, Error error) {
  return with_context(std::move(error), quote(path.native()));
}

Result<std::uint64_t> size_of(const io::Descriptor& file) {
  struct stat state{};
  if (::fstat(file.get(), &state) != 0) return tl::make_unexpected(io::system_error(errno, "stat"));
  if (!S_ISREG(state.st_mode)) {
    return fail(ErrorCode::kInvalidArgument, "is no regular file", "name a file");
  }
  return static_cast<std::uint64_t>(state.st_size);
}

Result<std::string> read_all(const io::Descriptor& file) {
  GRIDSCOPE_TRY(const std::uint64_t size, size_of(file));
  if (size > kMaxJournalBytes) {
    return fail(ErrorCode::kLimit, "is longer than any journal of a grid check",
                "check that it is the file you mean");
  }
  std::string text(size, '\0');
  GRIDSCOPE_TRY(const std::size_t read,
                io::read_up_to(file, 0, std::as_writable_bytes(std::span(text))));
  text.resize(read);
  return text;
}

Status write_text(const io::Descriptor& file, std::string_view text) {
  return io::write_all(file, std::as_bytes(std::span(text)));
}

// Keeps two runs from writing to one journal; the system lets go when the process ends.
Status lock(const io::Descriptor& file) {
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return {};
  return fail(ErrorCode::kUnavailable, "another run is writing to it",
              "wait for that run, or name another file");
}

// What stands in the file, when it is the journal of this check. Cuts a last line that is not
// whole.
Result<analysis::GridResults> take_up(const io::Descriptor& file, const std::string& text,
                                      const report::GridJournalHeader& header) {
  GRIDSCOPE_TRY(auto journal, report::parse_journal(text));
  if (journal.header != header) {
    return fail(ErrorCode::kInvalidArgument,
                "is the journal of another grid check, or source or build have changed since",
                "name a new file, or remove this one to begin again");
  }
  const auto whole = static_cast<off_t>(journal.whole_bytes);
  if (::ftruncate(file.get(), whole) != 0 || ::lseek(file.get(), whole, SEEK_SET) != whole) {
    return tl::make_unexpected(io::system_error(errno, "cannot go on with it"));
  }
  return std::move(journal.results);
}

Result<analysis::GridResults> begin_or_take_up(const io::Descriptor& file,
                                               const report::GridJournalHeader& header) {
  GRIDSCOPE_CHECK(lock(file));
  GRIDSCOPE_TRY(const std::string text, read_all(file));
  const std::string first_line = journal_line(header);
  // Empty, or cut off within its first line: nothing was done yet.
  const bool is_begun = text.size() < first_line.size() && first_line.starts_with(text);
  if (!is_begun) return take_up(file, text, header);
  if (::ftruncate(file.get(), 0) != 0 || ::lseek(file.get(), 0, SEEK_SET) != 0) {
    return tl::make_unexpected(io::system_error(errno, "cannot begin it"));
  }
  GRIDSCOPE_CHECK(write_text(file, first_line));
  return analysis::GridResults{};
}

}  // namespace

Result<GridJournalFile> GridJournalFile::open(const std::filesystem::path& path,
                                              const report::GridJournalHeader& header) {
  io::Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, kPermissions));
  if (!file.is_open()) {
    return tl::make_unexpected(io::system_error(errno, "cannot open " + quote(path.native())));
  }
  auto results = begin_or_take_up(file, header);
  if (!results) return tl::make_unexpected(about(path, std::move(results).error()));
  return GridJournalFile(path, std::move(file), *std::move(results));
}

GridJournalFile::GridJournalFile(std::filesystem::path path, io::Descriptor file,
                                 analysis::GridResults results)
    : path_(std::move(path)), file_(std::move(file)), results_(std::move(results)) {}

Status GridJournalFile::append(std::uint32_t item, const analysis::GridItemResult& result) {
  auto status = write_text(file_, report::journal_line(item, result));
  if (!status) return tl::make_unexpected(about(path_, std::move(status).error()));
  return {};
}

Result<std::string> read_journal_text(const std::filesystem::path& path) {
  const io::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) {
    return tl::make_unexpected(io::system_error(errno, "cannot open " + quote(path.native())));
  }
  auto text = read_all(file);
  if (!text) return tl::make_unexpected(about(path, std::move(text).error()));
  return text;
}

}  // namespace gridscope::app
