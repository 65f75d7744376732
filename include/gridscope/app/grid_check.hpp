#pragma once

// The use cases behind `gridscope grid-check`.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "gridscope/analysis/grid_plan.hpp"
#include "gridscope/analysis/grid_report.hpp"
#include "gridscope/analysis/requirements.hpp"
#include "gridscope/app/context.hpp"
#include "gridscope/core/result.hpp"

namespace gridscope::app {

struct GridCheckRequest {
  std::string source;
  std::vector<std::string> builds;
  analysis::GridSelection selection = {};
  analysis::Requirements requirements = {};
  std::size_t jobs = 2;
  std::optional<analysis::Shard> shard = {};
  // A journal: finished items are appended as they come, and taken from it when it is there
  // already.
  std::filesystem::path resume = {};
};

// What would be read.
[[nodiscard]] Result<analysis::GridCost> plan_grid_check(const GridCheckRequest& request,
                                                         Context& context);

// Reference to report. Errors: kInvalidArgument when `resume` is the journal of another check.
[[nodiscard]] Result<analysis::GridReport> grid_check(const GridCheckRequest& request,
                                                      Context& context);

// Does the request's shard and returns its part: a journal's text, which merge_grid_parts() and
// `resume` understand.
[[nodiscard]] Result<std::string> grid_check_part(const GridCheckRequest& request,
                                                  Context& context);

// The report that one run would have given, of the parts of all shards. Reads headers alone.
// Errors: kInvalidArgument for parts of different checks, a part that is missing, not whole or
// there twice.
[[nodiscard]] Result<analysis::GridReport> merge_grid_parts(
    const std::vector<std::filesystem::path>& paths, const analysis::Requirements& requirements,
    Context& context);

}  // namespace gridscope::app
