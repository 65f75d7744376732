#pragma once

// A local file, read with pread.

#include <filesystem>
#include <memory>

#include "gridscope/core/observer.hpp"
#include "gridscope/io/byte_source.hpp"

namespace gridscope::io {

// Opens a regular file (through symbolic links). Its identity is the path as given, its version the
// size, inode and modification time; a file that is written to or cut while it is read gives
// kChanged, one that is replaced by a rename goes on being read as it was opened. Reports a
// RangeRead for every read from disk. The observer must outlive the source. Errors: kNotFound,
// kPermission, kInvalidArgument for a directory or device.
[[nodiscard]] Result<std::unique_ptr<ByteSource>> open_file(const std::filesystem::path& path,
                                                            Observer& observer);

}  // namespace gridscope::io
