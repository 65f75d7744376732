#pragma once

// A whole checkpoint: every tensor of every file, what each is, what the configuration claims, and
// what does not agree. Headers only; data stays where it is until somebody reads it through
// `sources`.

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gridscope/core/finding.hpp"
#include "gridscope/core/observer.hpp"
#include "gridscope/core/result.hpp"
#include "gridscope/format/container.hpp"
#include "gridscope/format/limits.hpp"
#include "gridscope/format/tensor_table.hpp"
#include "gridscope/io/byte_source.hpp"
#include "gridscope/model/config.hpp"
#include "gridscope/model/modules.hpp"
#include "gridscope/model/names.hpp"
#include "gridscope/model/quantization.hpp"
#include "gridscope/store/repository.hpp"

namespace gridscope::model {

struct CheckpointFile {
  std::string path;       // in the repository
  std::string component;  // of a diffusers repository; empty otherwise
  std::uint64_t bytes = 0;
  std::uint64_t header_bytes = 0;
  std::shared_ptr<const io::ByteSource> source;  // null for a container that is only recognised
};

struct Checkpoint {
  store::RepositoryInfo repository;
  format::Container container = format::Container::kUnknown;
  std::vector<CheckpointFile> files;

  // Parallel arrays, one element per tensor, sorted by file and offset.
  std::vector<format::TensorInfo> tensors;
  std::vector<std::uint32_t> file_of;
  std::vector<NameInfo> names;
  ModuleTable modules;

  // Tensors that were not written because another one is the same: left-out name, kept name. The
  // metadata of a safetensors file says so.
  std::vector<std::pair<std::string, std::string>> aliases;

  ModelConfig config;
  // What the configuration claims; where it claims nothing, what the tensors show (with an empty
  // config_source). Empty when nothing is quantized and no method is claimed.
  std::optional<QuantizationConfig> quantization;
  std::vector<Finding> findings;  // everything that reading and cross-checking found

  // The index of the tensor of that exact name; the first when several files hold it.
  [[nodiscard]] std::optional<std::uint32_t> find_tensor(std::string_view name) const;
};

struct LoadOptions {
  format::Limits limits = {};
  // Headers read at once. Twice the connections to one host: a file of the Hub is asked for at two
  // hosts in turn, and neither should wait for the other.
  std::size_t readers = 32;
  std::stop_token stop = {};
};

// Discovers, reads every header, cross-checks index, shards and configuration. The repository must
// outlive the checkpoint. Disagreements become findings; what cannot be read at all is an error.
// A tensor that several files hold is kept once. Findings: CONFIG_MISSING, INDEX_PHANTOM_TENSOR,
// INDEX_MISSES_TENSOR, INDEX_TOTAL_SIZE, INDEX_STALE, INDEX_MISSING, SHARD_STRAY, SHARD_MISSING,
// LFS_POINTER, DUPLICATE_TENSOR, UNSUPPORTED_CONTAINER, COMPANION_MISSING, COMPANION_MISMATCH,
// CONFIG_TENSOR_MISMATCH, UNKNOWN_QUANTIZATION, PROJECTOR_SET_ASIDE.
[[nodiscard]] Result<Checkpoint> load_checkpoint(const store::Repository& repository,
                                                 Observer& observer,
                                                 const LoadOptions& options = {});

}  // namespace gridscope::model
