#pragma once

// Where a result goes: standard output, or a file that is opened before any work is done, written
// aside and renamed at the end. Whatever goes wrong, the file holds the old or the new text whole.

#include <filesystem>
#include <stop_token>
#include <string>
#include <string_view>

#include "gridscope/core/result.hpp"

namespace gridscope::cli {

// Writes all of `text`. Waits for a slow reader, but not beyond a stop request.
// Errors: kUnavailable with the system's reason; kCancelled by a stop request or when nobody reads
// the pipe any more.
[[nodiscard]] Status write_all(int descriptor, std::string_view text, const std::stop_token& stop);

class Output {
 public:
  [[nodiscard]] static Output standard();
  // "-" is standard output. A symbolic link stays and its target is replaced; a device or a pipe is
  // written directly. Errors: kInvalidArgument for a directory, kNotFound, kPermission,
  // kUnavailable.
  [[nodiscard]] static Result<Output> open(const std::string& path);

  Output(Output&& other) noexcept;
  Output& operator=(Output&&) = delete;
  ~Output();  // removes what was written aside and not committed

  // Writes and, for a file, puts it in place. At most once.
  // Errors: kUnavailable (full disk), kCancelled.
  [[nodiscard]] Status commit(std::string_view text, const std::stop_token& stop);

  // Removes what was written aside. May be called from another thread just before the process ends.
  void discard() const;

 private:
  Output(int descriptor, std::filesystem::path target, std::filesystem::path aside);

  int descriptor_;
  std::filesystem::path target_;  // empty: written directly
  std::filesystem::path aside_;
};

}  // namespace gridscope::cli
