#include "gridscope/io/descriptor.hpp"

#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace gridscope::io {
namespace {

ErrorCode code_of(int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      return ErrorCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::kPermission;
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case ENXIO:  // a socket, or a device that is not there
      return ErrorCode::kInvalidArgument;
    default:
      return ErrorCode::kUnavailable;
  }
}

}  // namespace

Descriptor::Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (is_open()) ::close(fd_);
}

Error system_error(int number, std::string_view what) {
  return with_context({code_of(number), std::generic_category().message(number)}, what);
}

Result<std::size_t> read_up_to(const Descriptor& file, std::uint64_t offset,
                               std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t n = ::pread(file.get(), into.data() + done, into.size() - done,
                              static_cast<off_t>(offset + done));
    if (n == 0) break;
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (errno != EINTR) {
      return tl::make_unexpected(system_error(errno, "reading"));
    }
  }
  return done;
}

Status write_all(const Descriptor& file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file.get(), bytes.data(), bytes.size());
    if (n >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    } else if (errno != EINTR) {
      return tl::make_unexpected(system_error(errno, "writing"));
    }
  }
  return {};
}

}  // namespace gridscope::io
