#include "gridscope/model/weight_units.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "gridscope/core/text.hpp"
#include "gridscope/model/canonical_names.hpp"

// What has no counterpart of its name is taken apart where the other side knows its family: first
// all stacks into matrices, then, where that did not help, fused projections into single ones.

namespace gridscope::model {
namespace {

using Piece = std::pair<std::string, WeightUnit>;
using Pieces = std::vector<Piece>;

tl::unexpected<Error> same_name(std::string_view first, std::string_view second,
                                std::string_view canonical) {
  return fail(
      ErrorCode::kInvalidArgument,
      fmt::format("{} and {} both stand for {}", quote(first), quote(second), quote(canonical)),
      "remove one of them: they cannot both be matched");
}

std::string name_of(const WeightSide& side, const WeightUnit& unit) {
  return side.weights[unit.weight].name + unit.label;
}

Status add_unit(WeightSide& side, std::string name, WeightUnit unit) {
  const auto [at, is_new] = side.units.try_emplace(std::move(name), unit);
  if (is_new) return {};
  return same_name(name_of(side, at->second), name_of(side, unit), at->first);
}

// ---- sizes --------------------------------------------------------------------------------------

using Columns = std::map<std::string, std::uint64_t, std::less<>>;  // by family

Columns columns_by_family(std::span<const Weight> weights) {
  Columns columns;
  for (const Weight& weight : weights) {
    if (!weight.is_flat) columns.emplace(projection_family(weight.canonical), weight.columns());
  }
  return columns;
}

// The rows of a weight of which only the number of elements is known, if the columns divide it.
Extent flat_extent(const Weight& weight, const Columns& other) {
  const auto found = other.find(projection_family(weight.canonical));
  if (found == other.end() || found->second == 0) return {};
  const std::uint64_t columns = found->second;
  const std::uint64_t elements = weight.columns();
  const std::uint64_t rows = elements / columns;
  return elements - rows * columns <= weight.padding ? Extent{.rows = rows, .columns = columns}
                                                     : Extent{};
}

std::vector<Extent> extents_of(std::span<const Weight> weights, std::span<const Weight> others) {
  std::optional<Columns> other_columns;
  std::vector<Extent> extents;
  extents.reserve(weights.size());
  for (const Weight& weight : weights) {
    if (!weight.is_flat) {
      extents.push_back(
          {.rows = weight.rows(), .columns = weight.columns(), .padding = weight.padding});
      continue;
    }
    if (!other_columns) other_columns = columns_by_family(others);
    extents.push_back(flat_extent(weight, *other_columns));
  }
  return extents;
}

Result<WeightSide> take_whole(std::span<const Weight> weights, std::span<const Weight> others) {
  WeightSide side{.weights = weights, .extents = extents_of(weights, others), .units = {}};
  for (std::uint32_t i = 0; i < weights.size(); ++i) {
    WeightUnit unit{.weight = i, .rows = {.count = side.extents[i].rows}};
    GRIDSCOPE_CHECK(add_unit(side, weights[i].canonical, std::move(unit)));
  }
  return side;
}

// ---- taking apart -------------------------------------------------------------------------------

Pieces split_stack(const WeightSide& side, const std::string& name, const WeightUnit& unit) {
  const std::vector<std::uint64_t>& shape = side.weights[unit.weight].shape;
  Pieces pieces;
  if (shape.size() != 3 || !unit.label.empty() || shape.front() == 0) return pieces;
  const std::uint64_t rows = unit.rows.count / shape.front();
  for (std::uint64_t i = 0; i < shape.front(); ++i) {
    std::optional<std::string> matrix = matrix_of_stack(name, i);
    if (!matrix) return {};
    pieces.emplace_back(*std::move(matrix), WeightUnit{.weight = unit.weight,
                                                       .rows = {.first = i * rows, .count = rows},
                                                       .label = fmt::format("[{}]", i)});
  }
  return pieces;
}

Pieces split_gate_up(const std::string& name, const WeightUnit& unit, GateUpOrder order) {
  constexpr std::string_view kFused = "gate_up_proj";
  std::optional<std::string> gate_name = with_projection(name, kFused, "gate_proj");
  std::optional<std::string> up_name = with_projection(name, kFused, "up_proj");
  const bool halves = unit.rows.count != 0 && unit.rows.count % 2 == 0;
  if (!gate_name || !up_name || !halves) return {};
  WeightUnit gate = unit;
  gate.rows.count /= 2;
  WeightUnit up = gate;
  gate.label += ".gate";
  up.label += ".up";
  if (order == GateUpOrder::kAlternating) {
    gate.rows.stride = up.rows.stride = 2;
    up.rows.first += 1;
  } else {
    up.rows.first += gate.rows.count;
  }
  return {{*std::move(gate_name), std::move(gate)}, {*std::move(up_name), std::move(up)}};
}

// Queries, keys and values one below the other; how many rows each has, the other side tells. What
// it does not store takes the rows that are left.
Pieces split_qkv(const std::string& name, const WeightUnit& unit, const WeightSide& other) {
  static constexpr std::array<std::string_view, 3> kProjections = {"q_proj", "k_proj", "v_proj"};
  Pieces pieces;
  std::uint64_t used = 0;
  for (const std::string_view projection : kProjections) {
    std::optional<std::string> piece = with_projection(name, "qkv_proj", projection);
    if (!piece) return {};
    const auto found = other.units.find(*piece);
    const bool last = projection == kProjections.back();
    if (found == other.units.end() && !last) return {};
    const std::uint64_t left = unit.rows.count - used;
    const std::uint64_t rows = found == other.units.end() ? left : found->second.rows.count;
    if (rows > left || (last && rows != left)) return {};
    if (rows == 0) continue;
    pieces.emplace_back(
        *std::move(piece),
        WeightUnit{.weight = unit.weight,
                   .rows = {.first = unit.rows.first + used, .count = rows},
                   .label = fmt::format("{}.{}", unit.label, projection.substr(0, 1))});
    used += rows;
  }
  return pieces;
}

std::set<std::string, std::less<>> families_of(const WeightUnits& units) {
  std::set<std::string, std::less<>> families;
  for (const auto& [name, unit] : units) families.insert(projection_family(name));
  return families;
}

enum class Level : std::uint8_t { kStacks, kProjections };

// Takes apart what `other` stores in another form.
Status split_unmatched(WeightSide& side, const WeightSide& other, GateUpOrder order, Level level) {
  std::vector<std::string> unmatched;
  for (const auto& [name, unit] : side.units) {
    if (!other.units.contains(name)) unmatched.push_back(name);
  }
  if (unmatched.empty()) return {};
  const auto families = families_of(other.units);
  for (const std::string& name : unmatched) {
    if (!families.contains(projection_family(name))) continue;
    const WeightUnit unit = side.units.find(name)->second;
    const bool stacks = level == Level::kStacks;
    Pieces pieces = stacks ? split_stack(side, name, unit) : split_gate_up(name, unit, order);
    if (pieces.empty() && !stacks) pieces = split_qkv(name, unit, other);
    if (pieces.empty()) continue;
    side.units.erase(name);
    for (auto& [piece_name, piece] : pieces) {
      GRIDSCOPE_CHECK(add_unit(side, std::move(piece_name), std::move(piece)));
    }
  }
  return {};
}

}  // namespace

Result<WeightSides> split_alike(std::span<const Weight> source, std::span<const Weight> build,
                                GateUpOrder order) {
  WeightSides sides;
  GRIDSCOPE_TRY(sides.source, take_whole(source, build));
  GRIDSCOPE_TRY(sides.build, take_whole(build, source));
  for (const Level level : {Level::kStacks, Level::kProjections}) {
    GRIDSCOPE_CHECK(split_unmatched(sides.source, sides.build, order, level));
    GRIDSCOPE_CHECK(split_unmatched(sides.build, sides.source, order, level));
  }
  return sides;
}

}  // namespace gridscope::model
