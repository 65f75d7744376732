#pragma once

// The use case behind `gridscope inspect`.

#include <string>

#include "gridscope/analysis/inspection.hpp"
#include "gridscope/app/context.hpp"
#include "gridscope/core/result.hpp"

namespace gridscope::app {

struct InspectRequest {
  std::string model;          // a reference, see store/reference.hpp
  std::string revision = {};  // an error when the reference names another one
  analysis::InspectOptions options = {};
};

// Reference to report: parse, open, load, inspect, with what was read and how long it took.
// Adds to the findings: RANGE_IGNORED, for each server that answers with whole files.
[[nodiscard]] Result<analysis::Inspection> inspect(const InspectRequest& request, Context& context);

}  // namespace gridscope::app
