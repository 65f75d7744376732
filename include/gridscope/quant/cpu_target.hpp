#pragma once

// The instruction sets that the kernels of this room were compiled for. The best one that the CPU
// has is chosen at run time; results are the same bytes with each.

#include <string>
#include <vector>

#include "gridscope/core/result.hpp"

namespace gridscope::quant {

// Of those compiled, the ones this CPU can run, best first: "AVX3_ZEN4", "AVX2", "SSE4", "EMU128".
// The last one is the scalar or emulated reference.
[[nodiscard]] std::vector<std::string> cpu_targets();

// Uses that one for the rest of the process, or the best one again for "". Not thread-safe: call it
// before any kernel runs. Errors: kInvalidArgument for a target that is not in cpu_targets().
[[nodiscard]] Status force_cpu_target(const std::string& name);

}  // namespace gridscope::quant
