#include "gridscope/app/inspect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "exists_on_disk.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/model/checkpoint.hpp"
#include "gridscope/store/open.hpp"
#include "gridscope/store/reference.hpp"

namespace gridscope::app {
namespace {

Status apply_revision(store::ModelReference& reference, const std::string& revision) {
  if (revision.empty()) return {};
  GRIDSCOPE_CHECK(store::check_revision(revision));
  if (reference.kind != store::ReferenceKind::kHub) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("a revision is given, but {} is no repository of the Hub",
                            quote(reference.text)),
                reference.chosen_from_disk ? "write hf:// before it to mean the Hub"
                                           : "leave the revision out");
  }
  if (!reference.revision.empty() && reference.revision != revision) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("two revisions: {} names {}, and {} is given besides",
                            quote(reference.text), quote(reference.revision), quote(revision)),
                "give one of them");
  }
  reference.revision = revision;
  return {};
}

// Which web pages are the Hub's is all that a reference needs to know of it. A wrong endpoint has
// none; it is complained about when the Hub is asked.
Result<store::ModelReference> resolve(const InspectRequest& request, const Settings& settings) {
  store::ReferenceOptions options{.exists_on_disk = exists_on_disk};
  if (auto endpoint = settings.environment("HF_ENDPOINT"); endpoint && !endpoint->empty()) {
    options.hub_endpoint = *std::move(endpoint);
  }
  GRIDSCOPE_TRY(auto reference, store::parse_reference(request.model, options));
  GRIDSCOPE_CHECK(apply_revision(reference, request.revision));
  return reference;
}

Result<store::StoreContext> surroundings(store::ReferenceKind kind, Observer& observer,
                                         Context& context) {
  store::StoreContext made{.observer = &observer, .connections = context.settings().connections};
  if (kind == store::ReferenceKind::kDisk) return made;
  GRIDSCOPE_TRY(const store::HubSettings* const hub, context.hub());
  made.hub = *hub;
  GRIDSCOPE_TRY(made.client, context.client());
  GRIDSCOPE_TRY(made.cache, context.cache());
  return made;
}

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
  GRIDSCOPE_TRY(const auto reference, resolve(request, context.settings()));
  GRIDSCOPE_TRY(const auto around, surroundings(reference.kind, ranges, context));
  GRIDSCOPE_TRY(const auto repository, store::open_repository(reference, around));
  GRIDSCOPE_TRY(const auto checkpoint,
                model::load_checkpoint(*repository, ranges,
                                       {.limits = context.settings().limits,
                                        .readers = 2 * context.settings().connections,
                                        .stop = context.stop()}));
  GRIDSCOPE_TRY(auto inspection, analysis::inspect(checkpoint, request.options));
  ranges.add_to(inspection.findings);
  inspection.reads = since(before, context.observer().totals());
  inspection.read_seconds = std::chrono::duration<double>(context.clock().now() - started).count();
  return inspection;
}

}  // namespace gridscope::app
