#include "grid_json_parts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

namespace gridscope::report {
namespace {

using analysis::GridTensor;
using analysis::GridTotals;
using analysis::PlainTensor;
using analysis::SourceGrid;
using analysis::TensorSmoothing;
using analysis::Verdict;
using quant::ErrorSums;

// A counter or a sum with its name in JSON: writing and reading go by one list.
template <typename Struct, typename T>
struct Field {
  std::string_view name;
  T Struct::* member;
};

constexpr auto kCounters = std::to_array<Field<ErrorSums, std::uint64_t>>({
    {"weights", &ErrorSums::weights},
    {"groups", &ErrorSums::groups},
    {"groups_identical", &ErrorSums::groups_identical},
    {"values_identical", &ErrorSums::values_identical},
    {"moved", &ErrorSums::moved},
    {"saturated_low", &ErrorSums::saturated_low},
    {"saturated_high", &ErrorSums::saturated_high},
    {"dead_groups", &ErrorSums::dead_groups},
    {"dead_in_both", &ErrorSums::dead_in_both},
    {"source_dead_groups", &ErrorSums::source_dead_groups},
    {"zero_points_used", &ErrorSums::zero_points_used},
    {"build_non_finite", &ErrorSums::build_non_finite},
    {"source_non_finite", &ErrorSums::source_non_finite},
});

constexpr auto kSums = std::to_array<Field<ErrorSums, double>>({
    {"abs_error", &ErrorSums::abs_error},
    {"squared_error", &ErrorSums::squared_error},
    {"squared_source", &ErrorSums::squared_source},
    {"squared_build", &ErrorSums::squared_build},
    {"product", &ErrorSums::product},
});

constexpr auto kGridCounters = std::to_array<Field<SourceGrid, std::uint64_t>>({
    {"groups", &SourceGrid::groups},
    {"on_grid", &SourceGrid::on_grid},
    {"ambiguous", &SourceGrid::ambiguous},
    {"dead", &SourceGrid::dead},
    {"off_grid", &SourceGrid::off_grid},
    {"non_finite", &SourceGrid::non_finite},
    {"rule_groups", &SourceGrid::rule_groups},
    {"rule_accepts", &SourceGrid::rule_accepts},
    {"rule_accepts_alone", &SourceGrid::rule_accepts_alone},
    {"rule_misses", &SourceGrid::rule_misses},
});

template <typename Fields, typename Struct>
void write_fields(const Fields& fields, const Struct& from, Json& into) {
  for (const auto& field : fields) into[field.name] = from.*field.member;
}

// Keys of JSON objects are strings.
template <typename Number>
Json keyed_json(const std::map<Number, std::uint64_t>& counts) {
  Json json = Json::object();
  for (const auto& [key, count] : counts) json[std::to_string(key)] = count;
  return json;
}

template <typename Number>
std::map<Number, std::uint64_t> read_keyed(const Members& members, std::string_view name) {
  std::map<Number, std::uint64_t> counts;
  for (const auto& [key, count] : members.count_of_each(name)) {
    Number number{};
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
    if (error != std::errc() || end != key.data() + key.size()) {
      members.refuse(name, "an object with whole numbers for keys");
    }
    counts[number] = count;
  }
  return counts;
}

struct EvidenceName {
  TensorSmoothing::Evidence evidence;
  std::string_view name;
};
constexpr auto kEvidence = std::to_array<EvidenceName>({
    {TensorSmoothing::Evidence::kNorm, "norm"},
    {TensorSmoothing::Evidence::kColumns, "columns"},
    {TensorSmoothing::Evidence::kRows, "rows"},
    {TensorSmoothing::Evidence::kAgainstNorm, "columns_against_norm"},
});

Json smoothing_json(const std::optional<TensorSmoothing>& smoothing) {
  if (!smoothing) return nullptr;
  const auto evidence = std::ranges::find(kEvidence, smoothing->evidence, &EvidenceName::evidence);
  return {{"evidence", evidence->name},
          {"min_factor", smoothing->min_factor},
          {"max_factor", smoothing->max_factor},
          {"min_row_factor", smoothing->min_row_factor},
          {"max_row_factor", smoothing->max_row_factor},
          {"totals_after", grid_totals_json(smoothing->totals_after)}};
}

std::optional<TensorSmoothing> read_smoothing(const Members& tensor) {
  if (tensor.is_null("smoothing")) return std::nullopt;
  const Members members = tensor.object("smoothing");
  const auto* const evidence =
      std::ranges::find(kEvidence, members.text("evidence"), &EvidenceName::name);
  if (evidence == kEvidence.end()) {
    members.refuse("evidence", "norm, columns, rows or columns_against_norm");
    return std::nullopt;
  }
  return TensorSmoothing{.evidence = evidence->evidence,
                         .min_factor = members.real("min_factor"),
                         .max_factor = members.real("max_factor"),
                         .min_row_factor = members.real("min_row_factor"),
                         .max_row_factor = members.real("max_row_factor"),
                         .totals_after = read_grid_totals(members.object("totals_after"))};
}

}  // namespace

Json verdict_json(Verdict verdict) {
  return analysis::verdict_key(verdict);
}

Verdict read_verdict(const Members& members) {
  const auto verdict = analysis::parse_verdict(members.text("verdict"));
  if (!verdict) members.refuse("verdict", "a verdict");
  return verdict.value_or(Verdict::kCorrupt);
}

Json grid_totals_json(const GridTotals& totals) {
  const ErrorSums& sums = totals.sums;
  Json json;
  write_fields(kCounters, sums, json);
  json["moved_share"] = totals.moved_share();
  json["max_abs_error"] = std::max(sums.worst.error, 0.0);
  json["mean_abs_error"] = totals.mean_abs_error();
  json["rmse"] = totals.rmse();
  json["relative_rmse"] = totals.relative_rmse();
  json["sqnr_db"] = optional_json(totals.sqnr_db());
  json["cosine"] = optional_json(totals.cosine());
  json["worst"] = nullptr;
  if (sums.worst.error >= 0.0) {
    json["worst"] = {{"row", sums.worst.row}, {"column", sums.worst.column}};
  }
  json["level_moves"] = keyed_json(totals.level_moves);
  json["level_moves_beyond"] = totals.level_moves_beyond;
  json["level_ties"] = totals.level_ties;
  json["lattice_weights"] = totals.lattice_weights;
  json["scale_ratio"] = totals.scale_ratio.named();
  write_fields(kSums, sums, json["sums"]);
  return json;
}

GridTotals read_grid_totals(const Members& members) {
  GridTotals totals;
  for (const auto& field : kCounters) totals.sums.*field.member = members.count(field.name);
  const Members sums = members.object("sums");
  for (const auto& field : kSums) totals.sums.*field.member = sums.real(field.name);
  if (!members.is_null("worst")) {
    const Members worst = members.object("worst");
    totals.sums.worst = {.error = members.real("max_abs_error"),
                         .row = worst.count("row"),
                         .column = worst.count("column")};
  }
  totals.level_moves = read_keyed<int>(members, "level_moves");
  totals.level_moves_beyond = members.count("level_moves_beyond");
  totals.level_ties = members.count("level_ties");
  totals.lattice_weights = members.count("lattice_weights");
  const auto ratios = analysis::ScaleRatios::from_named(members.count_of_each("scale_ratio"));
  if (!ratios) members.refuse("scale_ratio", "an object with the edges of bins for keys");
  totals.scale_ratio = ratios.value_or(analysis::ScaleRatios());
  return totals;
}

Json source_grid_json(const SourceGrid& grid) {
  Json json;
  write_fields(kGridCounters, grid, json);
  json["group_size"] = grid.group_size();
  json["group_sizes"] = keyed_json(grid.group_sizes);
  json["top_levels"] = keyed_json(grid.top_levels);
  return json;
}

SourceGrid read_source_grid(const Members& members) {
  SourceGrid grid;
  for (const auto& field : kGridCounters) grid.*field.member = members.count(field.name);
  grid.group_sizes = read_keyed<std::uint64_t>(members, "group_sizes");
  grid.top_levels = read_keyed<int>(members, "top_levels");
  return grid;
}

Json grid_tensor_json(const GridTensor& tensor) {
  Json json = {{"name", tensor.name},
               {"source_name", tensor.source_name},
               {"shape", tensor.shape},
               {"role", tensor.role},
               {"format", tensor.format},
               {"scale_dtype", tensor.scale_dtype},
               {"group_size", tensor.group_size},
               {"verdict", verdict_json(tensor.verdict)}};
  json.update(grid_totals_json(tensor.totals));
  json["smoothing"] = smoothing_json(tensor.smoothing);
  json["source_grid"] = source_grid_json(tensor.source_grid);
  json["fault"] = tensor.fault;
  json["unsupported"] = tensor.is_unsupported;
  json["remarks"] = tensor.remarks;
  return json;
}

GridTensor read_grid_tensor(const Members& members) {
  return {.name = members.text("name"),
          .source_name = members.text("source_name"),
          .shape = members.counts("shape"),
          .role = members.text("role"),
          .format = members.text("format"),
          .scale_dtype = members.text("scale_dtype"),
          .group_size = members.count("group_size"),
          .verdict = read_verdict(members),
          .totals = read_grid_totals(members),
          .smoothing = read_smoothing(members),
          .source_grid = read_source_grid(members.object("source_grid")),
          .fault = members.text("fault"),
          .is_unsupported = members.maybe_flag("unsupported").value_or(false),
          .remarks = members.texts("remarks")};
}

Json plain_tensor_json(const PlainTensor& tensor) {
  // JSON has no infinity.
  const Json error = std::isfinite(tensor.max_abs_error) ? Json(tensor.max_abs_error) : nullptr;
  return {{"name", tensor.name},     {"source_name", tensor.source_name},
          {"values", tensor.values}, {"different", tensor.different},
          {"max_abs_error", error},  {"fault", tensor.fault}};
}

PlainTensor read_plain_tensor(const Members& members) {
  return {.name = members.text("name"),
          .source_name = members.text("source_name"),
          .values = members.count("values"),
          .different = members.count("different"),
          .max_abs_error =
              members.maybe_real("max_abs_error").value_or(std::numeric_limits<double>::infinity()),
          .fault = members.text("fault")};
}

}  // namespace gridscope::report
