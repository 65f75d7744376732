#pragma once

// The headers of all weight files of a model, read at once.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "gridscope/core/observer.hpp"
#include "gridscope/core/result.hpp"
#include "gridscope/format/container.hpp"
#include "gridscope/format/gguf.hpp"
#include "gridscope/format/limits.hpp"
#include "gridscope/format/tensor_table.hpp"
#include "gridscope/io/byte_source.hpp"
#include "gridscope/model/discovery.hpp"
#include "gridscope/store/repository.hpp"

namespace gridscope::model {

struct FileHeader {
  std::string path;
  std::size_t set = 0;  // into the sets that were given
  // kSafetensors or kGguf when the table was read; else what the file was recognised as.
  format::Container container = format::Container::kUnknown;
  bool missing = false;  // a shard that is not there after all
  std::uint64_t bytes = 0;
  std::shared_ptr<const io::ByteSource> source;  // of a file whose table was read
  format::TensorTable table;
  std::optional<format::GgufSplit> split;
  std::optional<format::LfsPointer> pointer;
};

struct HeaderOptions {
  format::Limits limits = {};
  std::size_t readers = 32;  // at once, as in LoadOptions
  std::stop_token stop = {};
};

// One element per file, in the order of the sets. A file that turns out to be an LFS pointer or a
// container that is only recognised is no error; nor is a missing file of a set that has several.
// Errors: kCorrupt and kLimit with the file's name in front; kUnsupported for bytes of no container
// that is known; kNotFound for the only file of a set; those of the place.
[[nodiscard]] Result<std::vector<FileHeader>> read_headers(const store::Repository& repository,
                                                           std::span<const WeightSet> sets,
                                                           Observer& observer,
                                                           const HeaderOptions& options);

}  // namespace gridscope::model
