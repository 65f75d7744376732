#pragma once

// Errors are values. A function that can fail returns Result<T>; what went wrong travels as an
// Error whose message is one line: what happened, with the position when there is one. Outer layers
// prefix what they were doing (with_context). The remedy, when somebody can act, is kept apart so
// that every report can show it in its own place.

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace gridscope {

enum class ErrorCode : std::uint8_t {
  kInvalidArgument,  // what the caller asked for is malformed
  kNotFound,         // the thing is certainly not there
  kPermission,       // credentials are missing, wrong or not sufficient; TLS verification failed
  kUnavailable,      // it may work later: network, server fault, rate limit
  kTimeout,          // nothing arrived for too long
  kCancelled,        // a signal or the caller stopped it
  kChanged,          // the file is not the one that was opened (ETag, size or commit moved)
  kCorrupt,          // the bytes break the rules of their format or protocol
  kUnsupported,      // valid, but not something this build reads
  kLimit,            // larger than a named limit
  kInternal,         // a fault of gridscope
};

// The code's stable lower-case name, as in "not_found".
[[nodiscard]] std::string_view error_code_name(ErrorCode code);

// The process exit code for an error that ended a command: 2 for wrong usage, else 3 (no verdict).
[[nodiscard]] int exit_code(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string remedy = {};

  friend bool operator==(const Error&, const Error&) = default;
};

// "message; remedy", on one line.
[[nodiscard]] std::string describe(const Error& error);

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message,
                                                std::string remedy = {}) {
  return tl::make_unexpected(Error{code, std::move(message), std::move(remedy)});
}

// The same error with "what: " before its message.
[[nodiscard]] Error with_context(Error error, std::string_view what);

}  // namespace gridscope

#define GRIDSCOPE_CONCAT_INNER(a, b) a##b
#define GRIDSCOPE_CONCAT(a, b) GRIDSCOPE_CONCAT_INNER(a, b)

// GRIDSCOPE_TRY(auto x, f()): x is the value of f(), or the enclosing function returns its error.
#define GRIDSCOPE_TRY(declaration, expression) \
  GRIDSCOPE_TRY_NAMED(GRIDSCOPE_CONCAT(gridscope_try_, __LINE__), declaration, expression)
#define GRIDSCOPE_TRY_NAMED(name, declaration, expression)        \
  auto name = (expression);                                       \
  if (!name) return tl::make_unexpected(std::move(name).error()); \
  declaration = *std::move(name)

// GRIDSCOPE_CHECK(f()): returns the error of f(), if any; f() returns Status.
#define GRIDSCOPE_CHECK(expression)                            \
  if (auto gridscope_status = (expression); !gridscope_status) \
  return tl::make_unexpected(std::move(gridscope_status).error())
