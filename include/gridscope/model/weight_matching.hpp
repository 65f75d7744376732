#pragma once

// Which rows of a build's weights stand for which rows of the source's. Exporters rename, fuse,
// split, stack and permute; both sides are taken apart into the smallest units that either of them
// stores (one projection of one expert), units are matched by canonical name and shape, and
// neighbours that came apart alike are put together again. Nothing is left out silently: what has
// no counterpart is listed, with the reason where there is a good one.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gridscope/core/finding.hpp"
#include "gridscope/core/result.hpp"
#include "gridscope/model/weights.hpp"

namespace gridscope::model {

// Rows of one weight in the order in which they correspond to the rows of another.
struct RowSelection {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t stride = 1;  // 2 where gate and up rows alternate
  // Llama-family GGUF and Mistral's own files: within each head of that many rows, row 2c + b here
  // is row b * (head/2) + c of the other side. 0: in order.
  std::uint64_t rotary_head = 0;

  // The row that stands at place i. Requires: i < count.
  [[nodiscard]] std::uint64_t row(std::uint64_t i) const;
  friend bool operator==(const RowSelection&, const RowSelection&) = default;
};

struct WeightPair {
  // The build's weight, and the part of it where only a part is meant:
  // "model.layers.0.experts.gate_up_proj[3].up".
  std::string name;
  std::string source_name;   // likewise
  std::uint32_t source = 0;  // into the list of the source's weights
  std::uint32_t build = 0;
  RowSelection source_rows;
  RowSelection build_rows;
  std::uint64_t columns = 0;
  // Added by the exporter to every value of the build (GGUF norms of Gemma 1 to 3: 1).
  double build_offset = 0.0;
  // What the model adds to this norm's weight before it multiplies (Gemma 1 to 3: 1).
  double norm_offset = 0.0;
  // The pair, in Matching::plain, of the norm whose output this weight reads: where smoothing would
  // have gone.
  std::optional<std::uint32_t> norm = {};
};

struct Absence {
  std::string name;
  std::string reason;  // "the output layer is tied to the embedding"
};

struct Matching {
  std::vector<WeightPair> quantized;  // the build's weight is quantized; in order of name
  std::vector<WeightPair> plain;      // it is not
  std::vector<std::string> source_only;
  std::vector<std::string> build_only;
  std::vector<Absence> absent_by_design;
  // SHAPE_MISMATCH, WEIGHT_NOT_COMPARABLE (an obstacle on either side), SOURCE_ONLY, BUILD_ONLY
  // (errors: nothing may be left out silently); VOCABULARY_PADDED (a warning: rows of an embedding
  // that only one side has were left out).
  std::vector<Finding> findings;
};

// Errors: kInvalidArgument when two weights of one side have the same canonical name, naming both.
[[nodiscard]] Result<Matching> match_weights(const Checkpoint& source,
                                             std::span<const Weight> source_weights,
                                             const Checkpoint& build,
                                             std::span<const Weight> build_weights);

}  // namespace gridscope::model
