// A reference that is accepted keeps the rules for ids, revisions and paths, and can be shown.

#include "fuzz/fuzz_target.hpp"
#include "gridscope/store/reference.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gridscope;
  const auto nothing_on_disk = [](const std::string&) { return false; };
  const auto reference = store::parse_reference(
      test::fuzz_text(data, size),
      {.hub_endpoint = "https://huggingface.co", .exists_on_disk = nothing_on_disk});
  if (!reference) {
    test::require_fit_to_show(reference.error());
    return 0;
  }
  if (reference->kind != store::ReferenceKind::kHub) return 0;
  test::require(store::check_repo_id(reference->location).has_value());
  if (!reference->revision.empty()) {
    test::require(store::check_revision(reference->revision).has_value());
  }
  if (!reference->path.empty()) test::require(store::check_repo_path(reference->path).has_value());
  return 0;
}
