#pragma once

// Models of a few weights in memory: a source whose weights lie on a 4-bit grid, builds of it in
// whatever format has a packer, and the plan that compares them.

#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gridscope/analysis/grid_check.hpp"
#include "gridscope/analysis/grid_plan.hpp"
#include "gridscope/analysis/item_comparison.hpp"
#include "gridscope/quant/codec.hpp"
#include "gridscope/quant/pack.hpp"
#include "model/weight_lists.hpp"
#include "support/matchers.hpp"

namespace gridscope::test {

// Four-bit levels with a step for each group. Every group holds -8, 7, 5 and -3, which leaves no
// doubt about its grid; steps are numbers of BF16 and F16, so that every format can hold them.
// Requires: groups of 4 and more.
inline quant::LeveledWeight on_grid(std::uint64_t rows, std::uint64_t columns,
                                    std::uint64_t group_size = 32, unsigned seed = 1) {
  constexpr std::int16_t kFixed[] = {-8, 7, 5, -3};
  std::mt19937 random(seed);
  quant::LeveledWeight weight{.rows = rows, .columns = columns, .group_size = group_size};
  for (std::uint64_t i = 0; i < rows * columns; ++i) {
    const std::uint64_t place = (i + 5 * (i / columns)) % group_size;  // from row to row elsewhere
    const auto any = static_cast<std::int16_t>(static_cast<int>(random() % 16) - 8);
    weight.levels.push_back(place < std::size(kFixed) ? kFixed[place] : any);
  }
  for (std::uint64_t g = 0; g < rows * columns / group_size; ++g) {
    weight.scales.push_back(static_cast<double>(128 + random() % 128) / 16384.0);
  }
  return weight;
}

// The exact products, not rounded to any type.
inline std::vector<double> products_of(const quant::LeveledWeight& weight) {
  std::vector<double> products(weight.levels.size());
  for (std::size_t i = 0; i < products.size(); ++i) {
    const std::size_t group = i / weight.group_size;
    const int zero = weight.zeros.empty() ? 0 : weight.zeros[group];
    products[i] = (weight.levels[i] - zero) * weight.scales[group];
  }
  return products;
}

// A format: what the packer is asked for, and what its tensors are called after the module's name.
struct Format {
  quant::WeightSpec like;
  std::map<quant::Companion, std::string> suffixes;
};

inline Format plain_format(Dtype dtype = Dtype::kBF16) {
  Format format{.like = {.scheme = quant::Scheme::kPlain},
                .suffixes = {{quant::Companion::kCodes, "weight"}}};
  format.like[quant::Companion::kCodes] = quant::StoredTensor{.dtype = dtype};
  return format;
}

// compressed-tensors, int4 with BF16 scales; with zero points where the weight has them.
inline Format int4_format() {
  return {.like = {.scheme = quant::Scheme::kCtPackQuantized},
          .suffixes = {{quant::Companion::kCodes, "weight_packed"},
                       {quant::Companion::kScale, "weight_scale"},
                       {quant::Companion::kShape, "weight_shape"},
                       {quant::Companion::kZeroPoint, "weight_zero_point"},
                       {quant::Companion::kGroupIndex, "weight_g_idx"}}};
}

inline Format gptq_format() {
  Format format{.like = {.scheme = quant::Scheme::kGptq},
                .suffixes = {{quant::Companion::kCodes, "qweight"},
                             {quant::Companion::kScale, "scales"},
                             {quant::Companion::kZeroPoint, "qzeros"},
                             {quant::Companion::kGroupIndex, "g_idx"}}};
  format.like[quant::Companion::kScale] = quant::StoredTensor{.dtype = Dtype::kF16};
  return format;
}

inline Format nf4_format() {
  return {.like = {.scheme = quant::Scheme::kBnbNf4},
          .suffixes = {{quant::Companion::kCodes, "weight"},
                       {quant::Companion::kScale, "weight.absmax"},
                       {quant::Companion::kQuantMap, "weight.quant_map"},
                       {quant::Companion::kQuantState, "weight.quant_state.bitsandbytes__nf4"}}};
}

inline Format sparse_format() {
  return {.like = {.scheme = quant::Scheme::kCtSparse, .format = "sparse-bitmask"},
          .suffixes = {{quant::Companion::kCodes, "compressed"},
                       {quant::Companion::kBitmask, "bitmask"},
                       {quant::Companion::kRowOffsets, "row_offsets"},
                       {quant::Companion::kShape, "shape"}}};
}

// A model of one safetensors file.
struct SmallModel {
  SafetensorsBuilder tensors = {};
  std::string config = "{}";

  SmallModel& weight(const std::string& module, const quant::LeveledWeight& levels,
                     const Format& format = plain_format()) {
    const auto packed = quant::pack(levels, format.like);
    EXPECT_THAT(packed, IsOk());
    return packed ? stored(module, *packed, format) : *this;
  }
  // A weight that is packed already; companions that it lacks are left out.
  SmallModel& stored(const std::string& module, const quant::WeightSpec& packed,
                     const Format& format) {
    for (const auto& [companion, suffix] : format.suffixes) {
      const quant::StoredTensor* const tensor = packed.find(companion);
      if (tensor == nullptr) continue;
      tensors.tensor(module + "." + suffix, tensor->dtype, tensor->shape, tensor->data);
    }
    return *this;
  }

  // Any plain tensor, its values rounded to `dtype`.
  SmallModel& values(const std::string& name, const std::vector<double>& numbers, Shape shape,
                     Dtype dtype = Dtype::kBF16) {
    Bytes bytes(numbers.size() * dtype_info(dtype).block_bits / 8);
    quant::store_numbers(dtype, numbers, bytes);
    tensors.tensor(name, dtype, std::move(shape), std::move(bytes));
    return *this;
  }
  SmallModel& norm(const std::string& module, const std::vector<double>& numbers,
                   Dtype dtype = Dtype::kBF16) {
    return values(module + ".weight", numbers, {numbers.size()}, dtype);
  }
};

inline analysis::GridSide side_of(const model::Checkpoint& checkpoint, std::string reference) {
  return {.checkpoint = &checkpoint,
          .reference = std::move(reference),
          .weights = model::list_weights(checkpoint)};
}

// A source and its builds, loaded: "source", "build 0", "build 1".
class SmallCheck {
 public:
  SmallCheck(const SmallModel& source, const std::vector<SmallModel>& builds) {
    checkpoints_.push_back(checkpoint_of(source.tensors, source.config));
    for (const SmallModel& build : builds) {
      checkpoints_.push_back(checkpoint_of(build.tensors, build.config));
    }
  }

  // The source is the first, then come the builds.
  [[nodiscard]] model::Checkpoint& checkpoint(std::size_t index) { return checkpoints_[index]; }
  [[nodiscard]] analysis::GridSide side(std::size_t index) const {
    const std::string name = index == 0 ? "source" : "build " + std::to_string(index - 1);
    return side_of(checkpoints_[index], name);
  }

  [[nodiscard]] Result<analysis::GridPlan> try_plan(
      const analysis::GridSelection& selection = {}) const {
    std::vector<analysis::GridSide> builds;
    for (std::size_t i = 1; i < checkpoints_.size(); ++i) builds.push_back(side(i));
    return analysis::plan_grid_check(side(0), std::move(builds), selection);
  }
  [[nodiscard]] analysis::GridPlan plan(const analysis::GridSelection& selection = {}) const {
    auto made = try_plan(selection);
    EXPECT_THAT(made, IsOk());
    return made ? *std::move(made) : analysis::GridPlan();
  }

 private:
  std::deque<model::Checkpoint> checkpoints_;
};

// One item by itself, tile by tile.
inline Result<analysis::GridItemResult> compare_item(const analysis::GridPlan& plan,
                                                     std::uint32_t item = 0) {
  GRIDSCOPE_TRY(const auto comparison, analysis::open_comparison(plan, plan.items.at(item)));
  analysis::ComputeSlots slots(1);
  analysis::TileMemory memory;
  for (std::uint64_t tile = 0; tile < comparison->tiles().tiles(); ++tile) {
    GRIDSCOPE_CHECK(comparison->compare_tile(tile, slots, memory));
  }
  return comparison->finish(slots, memory);
}

template <typename T>
T compared(const analysis::GridPlan& plan, std::uint32_t item = 0) {
  const auto result = compare_item(plan, item);
  EXPECT_THAT(result, IsOk());
  const T* const found = result ? std::get_if<T>(&*result) : nullptr;
  EXPECT_NE(found, nullptr);
  return found != nullptr ? *found : T();
}

}  // namespace gridscope::test
