#pragma once

// The inspections that the tests of this room render.

#include <string>

#include "gridscope/analysis/inspection.hpp"

namespace gridscope::test {

// The published E2B checkpoint, quantized by compressed-tensors, divided as `options` ask.
[[nodiscard]] analysis::Inspection e2b_inspection(const analysis::InspectOptions& options = {});

// A small model on disk in two files, not quantized, with a finding of each severity and every
// tensor listed.
[[nodiscard]] analysis::Inspection small_inspection();

// The small model with names that try to break a terminal, a table and a page.
[[nodiscard]] analysis::Inspection hostile_inspection();

// Text that has a meaning to terminals and to Markdown.
inline const std::string kHostile = "\x1b[2J<b>|`*_x_*`[l](u)\n# h\r\xC2\x9B\xE2\x80\xAE&amp;\\";

}  // namespace gridscope::test
