#include "open_model.hpp"

#include <fmt/format.h>

#include <utility>

#include "exists_on_disk.hpp"
#include "gridscope/core/text.hpp"
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

// A name that is no path here was looked for on the Hub; it may have been meant as a path all the
// same.
Error as_seen_from_here(Error error, const store::ModelReference& reference) {
  const bool bare = reference.kind == store::ReferenceKind::kHub &&
                    reference.text.find("://") == std::string::npos;
  const bool may_be_path =
      bare && reference.revision.empty() &&
      (error.code == ErrorCode::kNotFound || error.code == ErrorCode::kUnavailable ||
       error.code == ErrorCode::kTimeout);
  if (!may_be_path) return error;
  return with_context(std::move(error),
                      fmt::format("{} is no path on disk and was taken for a repository of the Hub",
                                  quote(reference.text)));
}

}  // namespace

// Which web pages are the Hub's is all that a reference needs to know of it. A wrong endpoint has
// none; it is complained about when the Hub is asked.
Result<store::ModelReference> resolve_model(const std::string& reference,
                                            const std::string& revision, const Context& context) {
  store::ReferenceOptions options{.exists_on_disk = exists_on_disk};
  auto endpoint = context.settings().environment("HF_ENDPOINT");
  if (endpoint && !endpoint->empty()) options.hub_endpoint = *std::move(endpoint);
  GRIDSCOPE_TRY(auto resolved, store::parse_reference(reference, options));
  GRIDSCOPE_CHECK(apply_revision(resolved, revision));
  return resolved;
}

Result<OpenModel> open_model(const store::ModelReference& reference, Context& context,
                             Observer& observer) {
  GRIDSCOPE_TRY(const auto around, surroundings(reference.kind, observer, context));
  OpenModel opened;
  auto repository = store::open_repository(reference, around);
  if (!repository) {
    return tl::make_unexpected(as_seen_from_here(std::move(repository).error(), reference));
  }
  opened.repository = *std::move(repository);
  GRIDSCOPE_TRY(opened.checkpoint,
                model::load_checkpoint(*opened.repository, observer,
                                       {.limits = context.settings().limits,
                                        .readers = 2 * context.settings().connections,
                                        .stop = context.stop()}));
  return opened;
}

}  // namespace gridscope::app
