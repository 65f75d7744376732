#include "gridscope/store/open.hpp"

#include "gridscope/store/disk_repository.hpp"
#include "gridscope/store/http_repository.hpp"
#include "gridscope/store/hub_repository.hpp"

namespace gridscope::store {

Result<std::unique_ptr<Repository>> open_repository(const ModelReference& reference,
                                                    const StoreContext& context) {
  switch (reference.kind) {
    case ReferenceKind::kHub:
      return open_hub_repository(reference, context);
    case ReferenceKind::kHttp:
      return open_http_repository(reference, context);
    case ReferenceKind::kDisk:
      return open_disk_repository(reference, context);
  }
  return fail(ErrorCode::kInternal, "a reference of no known kind");
}

}  // namespace gridscope::store
