#pragma once

// The configuration files beside the weights.

#include <optional>
#include <string>
#include <vector>

#include "gridscope/core/finding.hpp"
#include "gridscope/core/result.hpp"
#include "gridscope/model/config.hpp"
#include "gridscope/model/discovery.hpp"
#include "gridscope/model/quantization.hpp"
#include "gridscope/store/repository.hpp"

namespace gridscope::model {

struct ConfigFiles {
  ModelConfig config;  // with an empty source when none could be read
  std::optional<QuantizationConfig> quantization;
  // CONFIG_MISSING for a file that is there but unreadable, LFS_POINTER for the pointer to one.
  std::vector<Finding> findings;
};

// config.json in `folder` and, when it claims nothing, the side files that may hold the claim.
// Nothing that is wrong with the files themselves is an error. Errors: those of the place.
[[nodiscard]] Result<ConfigFiles> read_config_files(const store::Repository& repository,
                                                    const std::string& folder);

// What stands in for config.json in a model of another layout: model_index.json, params.json,
// adapter_config.json. Null config when none of them is there.
[[nodiscard]] Result<ConfigFiles> read_substitute_config(const store::Repository& repository,
                                                         const std::string& folder);

}  // namespace gridscope::model
