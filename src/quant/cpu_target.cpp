#include "gridscope/quant/cpu_target.hpp"

#include <fmt/format.h>
// One kernel has a version of its own for this target (kernels/kept_levels.cpp).
#define HWY_WANT_AVX3_DL
#include <hwy/targets.h>

#include <cstdint>
#include <ranges>

#include "gridscope/core/text.hpp"

namespace gridscope::quant {
namespace {

// Asked once and before any is forced: afterwards Highway only tells of the forced one.
const std::vector<std::int64_t>& supported_targets() {
  static const std::vector<std::int64_t> kTargets = hwy::SupportedAndGeneratedTargets();
  return kTargets;
}

}  // namespace

std::vector<std::string> cpu_targets() {
  std::vector<std::string> names;
  for (const std::int64_t target : supported_targets()) names.emplace_back(hwy::TargetName(target));
  return names;
}

Status force_cpu_target(const std::string& name) {
  const auto& targets = supported_targets();
  if (name.empty()) {
    hwy::SetSupportedTargetsForTest(0);
    return {};
  }
  // With the lesser ones, for kernels that have no version for this one.
  std::int64_t allowed = 0;
  for (const std::int64_t target : std::views::reverse(targets)) {
    allowed |= target;
    if (name != hwy::TargetName(target)) continue;
    hwy::SetSupportedTargetsForTest(allowed);
    return {};
  }
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("there is no CPU target {} here", quote(name)),
              fmt::format("use one of {}", fmt::join(cpu_targets(), ", ")));
}

}  // namespace gridscope::quant
