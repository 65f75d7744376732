#pragma once

// The weights of a checkpoint with their companions gathered: what a decoder needs to know of each,
// and where its bytes lie. Headers and configuration only; nothing is read but the small companions
// that a decoder wants whole, and those when it is made.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gridscope/core/result.hpp"
#include "gridscope/model/checkpoint.hpp"
#include "gridscope/model/names.hpp"
#include "gridscope/quant/weight_decoder.hpp"
#include "gridscope/quant/weight_spec.hpp"

namespace gridscope::model {

// Where a companion's bytes lie: the whole of a tensor's data, or one matrix of a stack.
struct StoredPlace {
  std::uint32_t file = 0;    // into Checkpoint::files
  std::uint64_t offset = 0;  // in the file
  std::uint64_t bytes = 0;
};

struct Weight {
  std::string name;  // as stored, without the suffix of a companion: "model.layers.0.mlp.up_proj"
  // In one form for all families of names: "layers.0.mlp.up_proj", of a norm "layers.0.norm".
  std::string canonical;
  std::uint32_t module = 0;  // into ModuleTable::modules
  quant::WeightSpec spec;    // without data
  std::array<std::optional<StoredPlace>, quant::kCompanionCount> places = {};
  std::vector<std::uint64_t> shape = {};  // logical: [outputs, inputs], [experts, outputs, inputs]
  // What headers leave open of it, as in LogicalShape.
  std::uint64_t padding = 0;
  bool is_flat = false;
  NameInfo info = {};
  // Why it cannot be compared although it is there ("recognised, but not decoded: ..."), or empty.
  std::string obstacle = {};

  [[nodiscard]] std::uint64_t rows() const;     // product of all dimensions but the last
  [[nodiscard]] std::uint64_t columns() const;  // the last one; 1 for a scalar
};

// Every module that holds numbers, plain tensors of any rank included, in order of name. Biases
// and other parameters that stand beside a weight are weights of their own; a bias is a column, so
// that its rows can be selected like those of its weight. A stack whose matrices do not simply
// follow each other row by row is listed matrix by matrix: "...experts.gate_up_proj[3]".
[[nodiscard]] std::vector<Weight> list_weights(const Checkpoint& checkpoint);

// A decoder for the weight: reads the companions that are wanted whole.
// Errors: those of reading and of quant::make_decoder.
[[nodiscard]] Result<std::unique_ptr<const quant::WeightDecoder>> open_weight(
    const Checkpoint& checkpoint, const Weight& weight);

}  // namespace gridscope::model
