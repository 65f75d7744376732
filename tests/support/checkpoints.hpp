#pragma once

// Writes tiny checkpoints for tests, without the code under test: safetensors files, indexes, GGUF
// files and whole directories, to memory and to disk. A builder makes what is valid; a defect is
// asked for by name, one at a time.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gridscope/core/dtype.hpp"

namespace gridscope::test {

using Bytes = std::vector<std::byte>;
using Shape = std::vector<std::uint64_t>;

// What can be wrong with a safetensors file.
enum class SafetensorsDefect : std::uint8_t {
  kTruncatedHeader,
  kTruncatedData,  // the last byte is missing
  kTrailingByte,
  kHeaderNotJson,
  kHeaderTooLong,  // the length field says more than the file holds
  kUnknownDtype,   // of the first tensor
  kWrongSize,      // the first tensor's shape needs more than its span
  kHole,           // one byte between the first tensor and the next
  kOverlap,        // the last tensor starts one byte early
  kDuplicateName,  // the first tensor is named twice
};

class SafetensorsBuilder {
 public:
  // Tensors lie in the order in which they are added. Without `data`, bytes count up from 0.
  SafetensorsBuilder& tensor(std::string name, Dtype dtype, Shape shape);
  SafetensorsBuilder& tensor(std::string name, Dtype dtype, Shape shape, Bytes data);
  SafetensorsBuilder& metadata(std::string key, std::string value);

  // The header as the reference writer spells it: compact, padded with spaces to eight bytes.
  [[nodiscard]] std::string header() const;
  [[nodiscard]] std::uint64_t data_bytes() const;
  [[nodiscard]] Bytes build() const;
  // Requires: at least two tensors.
  [[nodiscard]] Bytes build(SafetensorsDefect defect) const;

  // The header followed by a hole: a file of true size that takes no room.
  void write_sparse(const std::filesystem::path& path) const;

  [[nodiscard]] std::vector<std::string> names() const;

 private:
  struct Tensor {
    std::string name;
    Dtype dtype;
    Shape shape;
    std::optional<Bytes> data;
  };
  [[nodiscard]] std::string header_json() const;

  std::vector<Tensor> tensors_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

// Length, `header` as it is, `data_bytes` zeros: for headers that no writer would write.
[[nodiscard]] Bytes safetensors_file(std::string_view header, std::size_t data_bytes = 0);

// The text of an index.
using WeightMap = std::vector<std::pair<std::string, std::string>>;  // tensor, file
[[nodiscard]] std::string index_json(const WeightMap& weight_map,
                                     std::optional<std::uint64_t> total_size = std::nullopt);

// What can be wrong with a GGUF file.
enum class GgufDefect : std::uint8_t {
  kBadMagic,
  kVersion1,
  kBigEndian,
  kTruncatedHeader,
  kTruncatedData,
  kDuplicateKey,     // the first key is written twice
  kDuplicateTensor,  // the first tensor is named twice
  kHole,             // the last tensor lies one alignment further on
};

class GgufBuilder {
 public:
  using Value = std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t,
                             std::int32_t, float, bool, std::string, std::uint64_t, std::int64_t,
                             double, std::vector<std::string>, std::vector<std::uint32_t>>;

  GgufBuilder& version(std::uint32_t version);
  // Writes general.alignment too.
  GgufBuilder& alignment(std::uint32_t alignment);
  GgufBuilder& key(std::string key, Value value);
  // `dims` in GGUF's order: the contiguous dimension first. Without `data`, bytes count up from 0.
  GgufBuilder& tensor(std::string name, Dtype dtype, Shape dims);
  GgufBuilder& tensor(std::string name, Dtype dtype, Shape dims, Bytes data);

  [[nodiscard]] Bytes build() const;
  // Requires: at least one key and two tensors.
  [[nodiscard]] Bytes build(GgufDefect defect) const;

 private:
  struct Tensor {
    std::string name;
    Dtype dtype;
    Shape dims;
    std::uint64_t offset;
    std::uint64_t bytes;
    std::optional<Bytes> data;
  };
  [[nodiscard]] Bytes header() const;

  std::uint32_t version_ = 3;
  std::uint32_t alignment_ = 32;
  std::vector<std::pair<std::string, Value>> keys_;
  std::vector<Tensor> tensors_;
};

// A checkpoint as a directory: config.json, the shards, and the index when there is more than one.
struct CheckpointFiles {
  std::string config = "{}";
  std::vector<std::pair<std::string, SafetensorsBuilder>> shards;
};
void write_checkpoint(const std::filesystem::path& directory, const CheckpointFiles& files);

// Creates the directories on the way.
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file(const std::filesystem::path& path, std::string_view text);
// The whole file. Throws when it cannot be read: a test without its fixture cannot go on.
[[nodiscard]] Bytes read_file(const std::filesystem::path& path);

}  // namespace gridscope::test
