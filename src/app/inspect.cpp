#include "gridscope/app/inspect.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "open_model.hpp"

namespace gridscope::app {
namespace {

// Turns a server's disregard for ranges into a finding, so that reports and --fail-on know of it.
class IgnoredRanges final : public Observer {
 public:
  explicit IgnoredRanges(Observer& next) : next_(next) {}

  void on_event(const Event& event) override {
    const auto* const warning = std::get_if<Warning>(&event);
    if (warning != nullptr && warning->code == kCode) note(*warning);
    next_.on_event(event);
  }

  // Keeps the order of findings: worst first, then by code.
  void add_to(std::vector<Finding>& findings) {
    const std::lock_guard lock(mutex_);
    findings.insert(findings.end(), found_.begin(), found_.end());
    analysis::sort_findings(findings);
  }

 private:
  static constexpr std::string_view kCode = "RANGE_IGNORED";

  void note(const Warning& warning) {
    Finding finding{.code = std::string(warning.code),
                    .severity = Severity::kWarning,
                    .message = std::string(warning.message),
                    .remedy = std::string(warning.remedy)};
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(found_, finding) == found_.end()) found_.push_back(std::move(finding));
  }

  Observer& next_;
  std::mutex mutex_;
  std::vector<Finding> found_;
};

// A context may serve several requests: what this one read is the difference.
ReadTotals since(const ReadTotals& before, const ReadTotals& now) {
  return {.requests = now.requests - before.requests,
          .bytes = now.bytes - before.bytes,
          .cache_hits = now.cache_hits - before.cache_hits};
}

}  // namespace

Result<analysis::Inspection> inspect(const InspectRequest& request, Context& context) {
  const auto started = context.clock().now();
  const ReadTotals before = context.observer().totals();
  IgnoredRanges ranges(context.observer());
  GRIDSCOPE_TRY(const auto resolved, resolve_model(request.model, request.revision, context));
  GRIDSCOPE_TRY(const auto opened, open_model(resolved, context, ranges));
  GRIDSCOPE_TRY(auto inspection, analysis::inspect(opened.checkpoint, request.options));
  ranges.add_to(inspection.findings);
  inspection.reads = since(before, context.observer().totals());
  inspection.read_seconds = std::chrono::duration<double>(context.clock().now() - started).count();
  return inspection;
}

}  // namespace gridscope::app
