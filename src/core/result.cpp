#include "gridscope/core/result.hpp"

namespace gridscope {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kPermission:
      return "permission";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kChanged:
      return "changed";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kLimit:
      return "limit";
    case ErrorCode::kInternal:
      break;
  }
  return "internal";
}

int exit_code(ErrorCode code) {
  return code == ErrorCode::kInvalidArgument ? 2 : 3;
}

std::string describe(const Error& error) {
  return error.remedy.empty() ? error.message : error.message + "; " + error.remedy;
}

Error with_context(Error error, std::string_view what) {
  error.message = std::string(what) + ": " + error.message;
  return error;
}

}  // namespace gridscope
