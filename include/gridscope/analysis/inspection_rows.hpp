#pragma once

// The rows of an inspection: a checkpoint's tensors, gathered under one heading each.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/analysis/inspection.hpp"

namespace gridscope::analysis {

// What the tensors of a checkpoint are parts of: a language model has an embedding, a body, towers;
// a diffusers repository has components. Where both occur, the files of a component are that
// component and all others have the parts of a model. The checkpoint must outlive this view of it.
class PartTable {
 public:
  explicit PartTable(const model::Checkpoint& checkpoint);

  // A small number that stands for the part of that tensor.
  [[nodiscard]] std::uint32_t part_of(std::uint32_t tensor) const;
  [[nodiscard]] std::string_view key(std::uint32_t part) const;
  [[nodiscard]] std::string_view title(std::uint32_t part) const;

 private:
  const model::Checkpoint& checkpoint_;
  std::vector<std::string_view> components_;                // each once, in order of first file
  std::vector<std::optional<std::uint32_t>> part_of_file_;  // of files that belong to a component
};

// One row for every value of `by` that occurs. Parts, roles and dtypes come by bytes, largest
// first; layers by number, decoder before towers, what lies outside layers last; files in the
// checkpoint's order, those without tensors left out.
[[nodiscard]] std::vector<InspectionRow> inspection_rows(const model::Checkpoint& checkpoint,
                                                         const PartTable& parts, GroupBy by);

// The sum of two counts that strangers wrote; stays at the largest number instead of wrapping.
[[nodiscard]] std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b);

}  // namespace gridscope::analysis
