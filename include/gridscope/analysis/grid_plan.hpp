#pragma once

// What a grid check will do, decided before anything but headers is read: which pairs, in which
// order, in which part, at what cost.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gridscope/core/result.hpp"
#include "gridscope/model/checkpoint.hpp"
#include "gridscope/model/weight_matching.hpp"
#include "gridscope/model/weights.hpp"

namespace gridscope::analysis {

struct GridSelection {
  // Of names in build or source: of pairs, of weights, of the tensors that they are stored in. Any
  // may match; empty: all.
  std::vector<std::string> globs = {};
  // Pairs that are taken of the quantized weights and as many of the plain ones, spread over layers
  // and roles by a fixed hash.
  std::optional<std::uint64_t> sample_count = {};
  std::optional<double> sample_fraction = {};

  friend bool operator==(const GridSelection&, const GridSelection&) = default;
};

// Part `index` of `count`, from 1.
struct Shard {
  std::uint64_t index = 1;
  std::uint64_t count = 1;

  friend bool operator==(const Shard&, const Shard&) = default;
};

// One pair of weights of one build: the unit of work, of resuming and of sharing out.
struct GridItem {
  enum class Kind : std::uint8_t { kQuantized, kPlain };
  std::uint32_t build = 0;
  Kind kind = Kind::kQuantized;
  std::uint32_t pair = 0;  // into Matching::quantized or Matching::plain
};

struct GridSide {
  const model::Checkpoint* checkpoint = nullptr;
  std::string reference = {};  // as the user wrote it
  std::vector<model::Weight> weights = {};
};

struct GridBuildSide {
  GridSide side;
  model::Matching matching;
};

struct GridPlan {
  GridSide source;
  std::vector<GridBuildSide> builds;
  std::vector<GridItem> items;  // in the order of the report
  std::string selection = {};   // what was taken, for a person; "" for everything
  // Of everything that the results depend on: references, commits or versions and sizes of files,
  // selection, items, how their weights are to be read. Two runs with the same one may be put
  // together.
  std::string fingerprint;
};

struct GridCost {
  std::uint64_t tensors = 0;  // pairs
  std::uint64_t weights = 0;
  std::uint64_t bytes = 0;  // source and build
  // One for each tile of each side. How many requests come of one only the source of its bytes
  // knows: a server is asked for a large tile in several, and for one of strips in many.
  std::uint64_t tile_reads = 0;
};

// The checkpoints must outlive the plan. Errors: kInvalidArgument for a glob that names nothing, a
// sample of nothing, and a build of which nothing is left to compare; those of match_weights.
[[nodiscard]] Result<GridPlan> plan_grid_check(GridSide source, std::vector<GridSide> builds,
                                               const GridSelection& selection);

// The items of one shard, in order: dealt out so that every shard reads about as many bytes. A
// shard of more shards than items may have none. Requires: 1 <= shard.index <= shard.count.
[[nodiscard]] std::vector<std::uint32_t> items_of(const GridPlan& plan, Shard shard);

// Every tile once, from headers alone. Left out are small companions that are read whole (group
// indices, shapes), samples, what is read again of a norm for the weights behind it, and second
// looks at weights that seem to be scaled.
[[nodiscard]] GridCost cost_of(const GridPlan& plan, std::span<const std::uint32_t> items);

[[nodiscard]] const model::WeightPair& pair_of(const GridPlan& plan, const GridItem& item);

}  // namespace gridscope::analysis
