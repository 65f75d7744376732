#include "gridscope/analysis/tile_plan.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "gridscope/core/checked.hpp"

namespace gridscope::analysis {
namespace {

using quant::Companion;
using quant::Scheme;
using quant::WeightSpec;

// Decoded values of a block stay in the second-level cache.
constexpr std::uint64_t kBlockWeights = 64ULL * 1024;
// What is measured by samples is known from so few, at a small part of the cost of all.
constexpr std::uint64_t kBlocksPerSample = 48;
// Of both sides. Large beside what a request costs, small enough for every reader to have one; the
// larger side is read through memory for a block anyway.
constexpr std::uint64_t kTileBytes = 16ULL * 1024 * 1024;
// Layouts that run down the inputs are read whole up to this size: below it strips cost more.
constexpr std::uint64_t kInputMajorTileBytes = 32ULL * 1024 * 1024;

// Whether the bytes of a few rows lie scattered over the whole weight.
bool is_input_major(const WeightSpec& spec) {
  return spec.scheme == Scheme::kGptq || spec.scheme == Scheme::kAwqGemm ||
         spec.scheme == Scheme::kAwqGemvFast || spec.order == WeightSpec::Order::kInputMajor;
}

// Rows that must stay together so that a permutation within heads stays inside the block.
std::uint64_t row_unit(const model::WeightPair& pair) {
  const auto head = [](const model::RowSelection& rows) {
    return std::max<std::uint64_t>(rows.rotary_head, 1);
  };
  return std::lcm(head(pair.source_rows), head(pair.build_rows));
}

std::uint64_t down_to_multiple(std::uint64_t value, std::uint64_t unit) {
  return std::max(value - value % unit, unit);
}

}  // namespace

std::vector<quant::RowRange> cut(quant::RowRange rows, std::uint64_t count) {
  std::vector<quant::RowRange> parts;
  for (std::uint64_t first = rows.first; first < rows.end(); first += count) {
    parts.push_back({.first = first, .count = std::min(count, rows.end() - first)});
  }
  return parts;
}

std::uint64_t bytes_per_row(const model::Weight& weight, std::uint64_t columns) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < weight.places.size(); ++i) {
    const auto& place = weight.places.at(i);
    if (place && !quant::is_read_whole(static_cast<Companion>(i))) bytes += place->bytes;
  }
  // Of flat weights the header tells only how many there are.
  const std::uint64_t rows = weight.is_flat ? weight.columns() / columns : weight.rows();
  return ceil_div(bytes, std::max<std::uint64_t>(rows, 1));
}

std::uint64_t TilePlan::tiles() const {
  return ceil_div(rows, tile_rows);
}

quant::RowRange TilePlan::tile(std::uint64_t index) const {
  const std::uint64_t first = index * tile_rows;
  return {.first = first, .count = std::min(tile_rows, rows - first)};
}

std::vector<quant::RowRange> TilePlan::samples() const {
  constexpr std::uint64_t kSamples = 4;
  if (rows <= block_rows) return {{.first = 0, .count = rows}};
  std::vector<quant::RowRange> samples;
  const std::uint64_t count = ceil_div(block_rows, kSamples);
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    const std::uint64_t first = i * (rows - count) / (kSamples - 1);
    samples.push_back({.first = first, .count = count});
  }
  return samples;
}

bool TilePlan::is_sample(quant::RowRange block) const {
  return block.first / block_rows % kBlocksPerSample == 0;
}

TilePlan plan_tiles(const model::Weight& source, const model::Weight& build,
                    const model::WeightPair& pair) {
  const std::uint64_t unit = row_unit(pair);
  TilePlan plan{.rows = pair.source_rows.count};
  const bool is_scattered = is_input_major(source.spec) || is_input_major(build.spec);
  const std::uint64_t budget = is_scattered ? kInputMajorTileBytes : kTileBytes;
  plan.bytes_per_row = bytes_per_row(source, pair.columns) * pair.source_rows.stride +
                       bytes_per_row(build, pair.columns) * pair.build_rows.stride;
  plan.block_rows = std::min(plan.rows, down_to_multiple(kBlockWeights / pair.columns, unit));
  const std::uint64_t fitting = budget / std::max<std::uint64_t>(plan.bytes_per_row, 1);
  plan.tile_rows = std::min(plan.rows, down_to_multiple(fitting, plan.block_rows));
  return plan;
}

}  // namespace gridscope::analysis
