#pragma once

// A finding is something about a checkpoint that its owner should know: a stable code, how bad it
// is, the tensors concerned, the bytes at stake and what to do about it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gridscope {

enum class Severity : std::uint8_t { kNote, kWarning, kError };  // in rising order

[[nodiscard]] std::string_view severity_name(Severity severity);

struct Finding {
  std::string code;  // "TIED_HEAD_STORED"
  Severity severity = Severity::kNote;
  std::string message;
  std::string remedy;
  std::vector<std::string> tensors = {};  // the first kMaxTensorsNamed, in order
  std::uint64_t tensor_count = 0;         // all of them
  std::uint64_t bytes = 0;

  static constexpr std::size_t kMaxTensorsNamed = 100;

  // Counts one more tensor and names it while there is room.
  void add_tensor(std::string_view name);

  friend bool operator==(const Finding&, const Finding&) = default;
};

// The worst severity among the findings, if any.
[[nodiscard]] std::optional<Severity> worst_severity(std::span<const Finding> findings);

}  // namespace gridscope
