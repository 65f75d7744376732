#pragma once

// What every report closes with: the findings, and what was read.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "gridscope/core/finding.hpp"
#include "gridscope/core/observer.hpp"

namespace gridscope::report {

// How many tensors of a finding are named; the others are counted.
inline constexpr std::size_t kTensorsNamed = 3;

// "No findings", "Findings: 1 error, 2 warnings".
[[nodiscard]] std::string findings_summary(std::span<const Finding> findings);

// The summary, each finding with its remedy and tensors, line by line.
[[nodiscard]] std::string findings_text(std::span<const Finding> findings);
// The same as a section.
[[nodiscard]] std::string findings_markdown(std::span<const Finding> findings);

// "3 requests, 393,216 bytes (384.0 KiB), 0.012 seconds, 1 cache hit".
[[nodiscard]] std::string reads_summary(const ReadTotals& reads, double seconds);

// A foreign string on one line of a terminal, cut where no honest one would be.
[[nodiscard]] std::string one_line(std::string_view text);

}  // namespace gridscope::report
