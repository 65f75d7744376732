#pragma once

// Builds model::Checkpoint values by hand, for the rooms that start from one: no file, no parser,
// no classification has a part in it. Data is zero but where a test says otherwise, and takes no
// memory.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gridscope/model/checkpoint.hpp"

namespace gridscope::test {

// A file of which most is zero.
class SparseSource final : public io::ByteSource {
 public:
  SparseSource(std::string name, std::uint64_t size,
               std::map<std::uint64_t, std::vector<std::byte>> islands)
      : size_(size),
        identity_{.name = std::move(name), .version = ""},
        islands_(std::move(islands)) {}

  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] const io::SourceIdentity& identity() const override { return identity_; }
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> into) const override;

 private:
  const std::uint64_t size_;
  const io::SourceIdentity identity_;
  const std::map<std::uint64_t, std::vector<std::byte>> islands_;  // by offset
};

struct ModuleSpec {
  std::string name;
  model::NameInfo place = {};
  model::Scheme scheme = model::Scheme::kPlain;
  std::uint32_t bits = 0;
  std::int64_t group_size = 0;
};

class CheckpointBuilder {
 public:
  // A hub repository of one safetensors file, until file() names others.
  CheckpointBuilder();

  // Tensors that follow lie in that file.
  CheckpointBuilder& file(std::string path, std::string component = "");
  // Tensors that follow belong to that module.
  CheckpointBuilder& module(ModuleSpec spec);
  // `suffix` follows the module's name and a dot. Weights and biases count their elements as
  // parameters, everything else none, unless `parameters` says how many.
  CheckpointBuilder& tensor(const std::string& suffix, Dtype dtype,
                            std::vector<std::uint64_t> shape,
                            model::Storage storage = model::Storage::kWeight,
                            std::optional<std::uint64_t> parameters = {});
  // The bytes of the last tensor, from `offset` within it on.
  CheckpointBuilder& data(std::vector<std::byte> bytes, std::uint64_t offset = 0);
  // int4 codes in groups of 32 with a bfloat16 scale each, as compressed-tensors packs them.
  // Requires: columns is a multiple of 32.
  CheckpointBuilder& int4_module(const std::string& name, const model::NameInfo& place,
                                 std::uint64_t rows, std::uint64_t columns);

  // Everything else of the value, to be set directly.
  model::Checkpoint value;

  // The value with its files' sizes and sources filled in. Call once.
  [[nodiscard]] model::Checkpoint build();

 private:
  std::vector<model::NameInfo> places_;                                   // per module
  std::vector<std::map<std::uint64_t, std::vector<std::byte>>> islands_;  // per file
};

inline constexpr std::uint64_t kHeaderBytes = 1024;  // of every file of a built checkpoint

// The published sizes of google/gemma-4-E2B-it-qat-w4a16-ct: its parts, roles and tensor counts to
// the byte, its module names and shapes simplified. Its config ties the output layer.
[[nodiscard]] CheckpointBuilder e2b_w4a16();

}  // namespace gridscope::test
