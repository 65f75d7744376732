#include "gridscope/cli/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "gridscope/core/text.hpp"

namespace gridscope::cli {
namespace {

constexpr std::string_view kStandardOutput = "standard output";

tl::unexpected<Error> system_failure(std::string_view what, std::string_view name, int error) {
  ErrorCode code = ErrorCode::kUnavailable;
  if (error == ENOENT || error == ENOTDIR) code = ErrorCode::kNotFound;
  if (error == EACCES || error == EPERM || error == EROFS) code = ErrorCode::kPermission;
  const std::string reason =
      error == EBADF ? "it is closed" : std::generic_category().message(error);
  return fail(code, fmt::format("cannot {} {}: {}", what, name, reason));
}

// Returns whether the descriptor takes bytes now; false after a while, to look for a stop request.
bool wait_until_writable(int descriptor) {
  constexpr int kPatienceMs = 50;
  pollfd entry = {.fd = descriptor, .events = POLLOUT, .revents = 0};
  return ::poll(&entry, 1, kPatienceMs) != 0;
}

// Opens a name beside `target` that nobody uses.
Result<std::pair<int, std::filesystem::path>> open_aside(const std::filesystem::path& target) {
  constexpr int kAttempts = 100;
  int error = EEXIST;
  for (int attempt = 0; attempt < kAttempts && error == EEXIST; ++attempt) {
    std::filesystem::path aside = target;
    aside.replace_filename(
        fmt::format(".{}.{}-{}.tmp", target.filename().string(), ::getpid(), attempt));
    const int descriptor = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                                  S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH);
    if (descriptor >= 0) return std::pair(descriptor, std::move(aside));
    error = errno;
  }
  return system_failure("write", quote(target.string()), error);
}

// Where the link at `path` leads, so that the link stays when the file behind it is replaced.
std::filesystem::path behind_links(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path resolved = std::filesystem::canonical(path, error);
  return error ? path : resolved;
}

}  // namespace

Status write_all(int descriptor, std::string_view text, const std::stop_token& stop) {
  // What a pipe that is writable takes without blocking, so that a stop request is always seen.
  constexpr std::size_t kPiece = 4096;
  const std::string_view name = descriptor == STDOUT_FILENO ? kStandardOutput : "the output";
  while (!text.empty()) {
    if (stop.stop_requested()) return fail(ErrorCode::kCancelled, "stopped while writing");
    if (!wait_until_writable(descriptor)) continue;
    const ssize_t written = ::write(descriptor, text.data(), std::min(kPiece, text.size()));
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE) {
      return fail(ErrorCode::kCancelled, fmt::format("{} is read no more", name));
    } else if (errno != EINTR && errno != EAGAIN) {
      return system_failure("write", name, errno);
    }
  }
  // Some file systems tell of a full disk only when a descriptor is closed.
  if (const int copy = ::dup(descriptor); copy >= 0 && ::close(copy) != 0) {
    return system_failure("write", name, errno);
  }
  return {};
}

Output Output::standard() {
  return {STDOUT_FILENO, {}, {}};
}

Result<Output> Output::open(const std::string& path) {
  if (path == "-") return standard();
  const std::filesystem::path target = behind_links(path);
  struct stat status = {};
  const bool exists = ::stat(target.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("the output {} is a directory", quote(path)), "name a file in it");
  }
  if (exists && !S_ISREG(status.st_mode)) {
    const int descriptor = ::open(target.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return system_failure("write", quote(path), errno);
    return Output(descriptor, {}, {});
  }
  GRIDSCOPE_TRY(auto aside, open_aside(target));
  Output output(aside.first, target, std::move(aside.second));
  if (exists && ::fchmod(output.descriptor_, status.st_mode & 0777U) != 0) {
    return system_failure("write", quote(path), errno);
  }
  return output;
}

Output::Output(int descriptor, std::filesystem::path target, std::filesystem::path aside)
    : descriptor_(descriptor), target_(std::move(target)), aside_(std::move(aside)) {}

Output::Output(Output&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, STDOUT_FILENO)),
      target_(std::move(other.target_)),
      aside_(std::exchange(other.aside_, {})) {}

Output::~Output() {
  discard();
  if (descriptor_ != STDOUT_FILENO) ::close(descriptor_);
}

Status Output::commit(std::string_view text, const std::stop_token& stop) {
  GRIDSCOPE_CHECK(write_all(descriptor_, text, stop));
  if (aside_.empty()) return {};
  if (::fsync(descriptor_) != 0) return system_failure("write", quote(target_.string()), errno);
  if (::rename(aside_.c_str(), target_.c_str()) != 0) {
    return system_failure("replace", quote(target_.string()), errno);
  }
  return {};
}

void Output::discard() const {
  if (!aside_.empty()) ::unlink(aside_.c_str());
}

}  // namespace gridscope::cli
