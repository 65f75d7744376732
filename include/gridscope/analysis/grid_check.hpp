#pragma once

// Carries a plan out: item by item, on several threads, and puts the results together.

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <stop_token>
#include <variant>
#include <vector>

#include "gridscope/analysis/grid_plan.hpp"
#include "gridscope/analysis/grid_report.hpp"
#include "gridscope/core/observer.hpp"
#include "gridscope/core/result.hpp"

namespace gridscope::analysis {

using GridItemResult = std::variant<GridTensor, PlainTensor>;
using GridResults = std::map<std::uint32_t, GridItemResult>;  // by index into GridPlan::items

struct GridRunOptions {
  std::size_t jobs = 2;
  std::stop_token stop = {};
};

// Called for each item when it is done, from one thread at a time, in any order.
using GridItemSink = std::function<Status(std::uint32_t item, const GridItemResult& result)>;

// Compares the given items. A weight that breaks its format's rules is a result (Verdict::kCorrupt
// with its fault); what cannot be read ends the run. Memory: at most kGridBytesPerJob for each job,
// whatever the size of the model. Results do not depend on `jobs`.
// Errors: those of reading; those of the sink; kCancelled.
[[nodiscard]] Status run_grid_items(const GridPlan& plan, std::span<const std::uint32_t> items,
                                    const GridRunOptions& options, Observer& observer,
                                    const GridItemSink& sink);
inline constexpr std::uint64_t kGridBytesPerJob = 64ULL * 1024 * 1024;

// The report of all items.
// Findings: LEVELS_MOVED (note), LEVELS_SHIFTED (error: common_shift() is not 0), SMOOTHED (note),
// STORAGE_ODD (warning: what decoders remark on), WEIGHT_DIFFERS (error: kDifferentModelSqnrDb),
// WEIGHT_CORRUPT, WEIGHT_UNSUPPORTED (errors), PLAIN_DIFFERS (error), NORM_SMOOTHED (note: norms
// that smoothing explains), and those of matching and of the checkpoints' loading. Errors:
// kInvalidArgument when a result is missing.
[[nodiscard]] Result<GridReport> assemble_grid_report(const GridPlan& plan,
                                                      const GridResults& results);

}  // namespace gridscope::analysis
