#pragma once

// From what a user wrote to a loaded checkpoint.

#include <memory>
#include <string>

#include "gridscope/app/context.hpp"
#include "gridscope/core/observer.hpp"
#include "gridscope/core/result.hpp"
#include "gridscope/model/checkpoint.hpp"
#include "gridscope/store/reference.hpp"
#include "gridscope/store/repository.hpp"

namespace gridscope::app {

struct OpenModel {
  std::unique_ptr<store::Repository> repository;  // outlives the checkpoint
  model::Checkpoint checkpoint;
};

// What is meant, without asking anybody but the disk. `revision` may be empty; an error when the
// reference names another one.
[[nodiscard]] Result<store::ModelReference> resolve_model(const std::string& reference,
                                                          const std::string& revision,
                                                          const Context& context);
// Events go to `observer`, which must outlive the result.
[[nodiscard]] Result<OpenModel> open_model(const store::ModelReference& reference, Context& context,
                                           Observer& observer);

}  // namespace gridscope::app
