#pragma once

// What index and shards say of each other, once all headers are read.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/core/finding.hpp"
#include "gridscope/core/result.hpp"
#include "gridscope/format/safetensors_index.hpp"
#include "gridscope/format/tensor_table.hpp"
#include "gridscope/model/discovery.hpp"
#include "gridscope/model/file_headers.hpp"
#include "gridscope/model/file_view.hpp"
#include "gridscope/model/name_table.hpp"

namespace gridscope::model {

// The tensors of one weight set, and for each the file that holds it.
struct MergedTensors {
  std::vector<format::TensorInfo> tensors;
  std::vector<std::uint32_t> file_of;  // into the headers that were given
  NameTable by_name = {};

  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view name) const {
    return by_name.find(name, [&](std::uint32_t i) -> std::string_view { return tensors[i].name; });
  }
};

// Puts the tables of a set's headers together (and empties them). A tensor that stands in two files
// is kept once: where the index says, else where it stands first; DUPLICATE_TENSOR is a warning
// when the copies agree in type and shape, an error when they do not.
[[nodiscard]] MergedTensors merge_tables(std::span<FileHeader> headers, const WeightSet& set,
                                         std::vector<Finding>& findings);

// INDEX_PHANTOM_TENSOR (error), INDEX_MISSES_TENSOR (warning), INDEX_TOTAL_SIZE (note). Tensors of
// shards that were not read are left out of all of them.
void check_index(const MergedTensors& merged, std::span<const FileHeader> headers,
                 const WeightSet& set, std::vector<Finding>& findings);

// Split GGUF files: numbers, counts and the promised number of tensors.
// Errors: kCorrupt when they contradict each other.
[[nodiscard]] Status check_gguf_split(std::span<const FileHeader> headers,
                                      std::vector<Finding>& findings);

// PROJECTOR_SET_ASIDE (note): files beside a chosen GGUF model that hold its towers and projector.
void check_projectors(const Discovery& discovery, const FileView& files,
                      std::vector<Finding>& findings);

// LFS_POINTER and UNSUPPORTED_CONTAINER, an error each. Errors: kUnsupported when every file is a
// pointer.
[[nodiscard]] Status check_containers(std::span<const FileHeader> headers,
                                      std::vector<Finding>& findings);

}  // namespace gridscope::model
