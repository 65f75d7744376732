#pragma once

// Which files of a repository are "the model". One set is chosen and never added to another:
// variants (fp16), a consolidated copy and PyTorch copies of the same weights are alternatives.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/core/finding.hpp"
#include "gridscope/core/result.hpp"
#include "gridscope/format/container.hpp"
#include "gridscope/format/limits.hpp"
#include "gridscope/format/safetensors_index.hpp"
#include "gridscope/store/repository.hpp"

namespace gridscope::model {

// The weight files of one component: the whole model, or one folder of a diffusers repository.
struct WeightSet {
  std::string component;  // folder of a diffusers repository; empty otherwise
  format::Container container = format::Container::kSafetensors;
  std::vector<std::string> files;  // paths in the repository, in shard order
  std::string index_path;          // empty when there is none
  format::ShardIndex index;
};

struct Discovery {
  std::vector<WeightSet> sets;         // one, or one per diffusers component
  std::vector<std::string> set_aside;  // weight files that are alternatives to the chosen ones
  std::vector<Finding> findings;       // SHARD_MISSING, SHARD_STRAY, ...
};

// Order of choice: the file or folder that the reference names; model.safetensors; its index;
// diffusers components; consolidated.safetensors; adapter_model.safetensors; any other safetensors
// (one group of shards); GGUF; and last, what can be recognised but not read. Dense modules of
// sentence-transformers come along as components. A place that cannot list is asked for the usual
// names. Findings: SHARD_MISSING (also for a component that model_index.json names), SHARD_STRAY,
// INDEX_MISSING (several shards without one), INDEX_STALE (an index beside model.safetensors that
// speaks of other files). Errors: kNotFound when there are no weights at all, listing what is
// there; kCorrupt for a bad index; kInvalidArgument when several groups of files could be the
// model, listing them.
[[nodiscard]] Result<Discovery> discover(const store::Repository& repository,
                                         const format::Limits& limits = {});

// SHARD_MISSING for shards of `set` (paths in the repository) that are not there.
[[nodiscard]] Finding missing_shards(const WeightSet& set, std::span<const std::string> missing);

}  // namespace gridscope::model
