#include "report/sample_grid_reports.hpp"

namespace gridscope::test {
namespace {

using analysis::GridBuild;
using analysis::GridReport;
using analysis::GridTensor;
using analysis::GridTotals;
using analysis::Verdict;

// Figures that differ from each other, so that no two members can be confused.
GridTotals totals(std::uint64_t seed) {
  GridTotals made;
  made.sums = {.weights = 1000 * seed,
               .groups = 40 + seed,
               .groups_identical = 30 + seed,
               .values_identical = 900 * seed,
               .moved = 50 + seed,
               .saturated_low = 11 + seed,
               .saturated_high = 12 + seed,
               .dead_groups = 3 + seed,
               .dead_in_both = 2 + seed,
               .source_dead_groups = 5 + seed,
               .zero_points_used = 6 + seed,
               .build_non_finite = 0,
               .source_non_finite = 0,
               .abs_error = 0.1 * static_cast<double>(seed),
               .squared_error = 0.3 * static_cast<double>(seed),
               .squared_source = 1.0 / 3.0 + static_cast<double>(seed),
               .squared_build = 1.0 / 7.0 + static_cast<double>(seed),
               .product = 0.2 + static_cast<double>(seed),
               .worst = {.error = 0.0123 * static_cast<double>(seed), .row = 17, .column = seed}};
  made.level_moves = {{-2, seed}, {1, 2 * seed}};
  made.level_ties = 1;
  made.lattice_weights = 640 * seed;
  made.scale_ratio.add(0.9, seed);
  made.scale_ratio.add_allowed(20);
  return made;
}

analysis::SourceGrid grid() {
  analysis::SourceGrid made{
      .groups = 64, .on_grid = 60, .ambiguous = 1, .dead = 2, .off_grid = 1, .non_finite = 0};
  made.group_sizes = {{32, 2048}};
  made.top_levels = {{8, 40}, {7, 20}};
  made.rule_groups = 32;
  made.rule_accepts = 31;
  made.rule_accepts_alone = 1;
  made.rule_misses = 2;
  return made;
}

GridTensor tensor(const std::string& name, std::uint64_t seed, Verdict verdict) {
  GridTensor made{.name = name, .source_name = "model." + name, .shape = {64, 32}};
  made.role = "attention";
  made.format = "int4 g32";
  made.scale_dtype = "BF16";
  made.group_size = 32;
  made.verdict = verdict;
  made.totals = totals(seed);
  made.source_grid = grid();
  return made;
}

GridBuild smoothed_build() {
  GridBuild build{.model = "org/build-awq", .commit = "0123456789abcdef"};
  build.format = "awq int4 g32";
  build.scale_dtype = "F16";
  build.group_size = 32;
  build.verdict = Verdict::kCorrupt;
  build.totals = totals(4);
  build.tensors = {tensor("layers.0.q_proj", 1, Verdict::kSmoothed),
                   tensor("layers.0.v_proj", 3, Verdict::kCorrupt)};
  build.tensors[0].smoothing =
      analysis::TensorSmoothing{.evidence = analysis::TensorSmoothing::Evidence::kNorm,
                                .min_factor = 0.5,
                                .max_factor = 2.25,
                                .totals_after = totals(2)};
  build.tensors[1].fault = "its scale is missing";
  build.tensors[1].is_unsupported = true;
  build.tensors[1].remarks = {"padded"};
  build.different = {{.name = "norm",
                      .source_name = "model.norm",
                      .values = 64,
                      .different = 3,
                      .max_abs_error = 0.25,
                      .fault = ""}};
  build.plain_compared = 5;
  build.plain_identical = 4;
  build.coverage = {.matched = 9,
                    .compared = 7,
                    .source_only = {"layers.9.extra"},
                    .build_only = {"rotary"},
                    .absent_by_design = {{"lm_head", "tied to the embedding"}}};
  build.smoothing = analysis::GridSmoothing{
      .norms = 1, .tensors = 1, .min_factor = 0.5, .max_factor = 2.25, .totals_after = totals(5)};
  return build;
}

}  // namespace

GridReport full_grid_report() {
  GridReport report{.source = "org/source", .source_commit = "fedcba9876543210"};
  report.source_grid = grid();
  GridBuild repack{.model = "org/build-ct"};
  repack.format = "int4 g32";
  repack.verdict = Verdict::kSameGrid;
  repack.totals = totals(1);
  repack.tensors = {tensor("layers.0.q_proj", 1, Verdict::kSameGrid)};
  report.builds = {repack, smoothed_build()};
  report.selection = "a sample of 2 weights of each kind, spread over layers and roles";
  Finding finding{.code = "WEIGHT_CORRUPT",
                  .severity = Severity::kError,
                  .message = "\"org/build-awq\": 1 tensor cannot be decoded",
                  .remedy = "make the build again"};
  finding.add_tensor("layers.0.v_proj");
  report.findings = {finding};
  report.tile_reads = 12;
  report.read_bytes = 3456;
  return report;
}

GridReport published_grid_report() {
  GridReport report{.source = "source"};
  report.source_grid.groups = report.source_grid.on_grid = 360'448;
  report.source_grid.group_sizes = {{32, 11'534'336}};
  GridBuild repack{.model = "repack"};
  repack.verdict = Verdict::kSameGrid;
  repack.totals.sums.weights = 11'534'336;
  repack.totals.sums.groups = 360'448;
  repack.totals.sums.groups_identical = 149'003;
  repack.totals.sums.values_identical = 10'324'000;
  repack.totals.sums.abs_error = 1.18e-05 * 11'534'336;
  repack.totals.sums.squared_error = 0.01;
  repack.totals.sums.squared_source = 100.0;
  repack.totals.sums.worst = {.error = 0.000977, .row = 3, .column = 5};
  GridBuild awq = repack;
  awq.model = "awq";
  awq.verdict = Verdict::kLevelsMoved;
  awq.totals.sums.groups_identical = 23;
  awq.totals.sums.values_identical = 1'415'000;
  awq.totals.sums.moved = 3'495'050;
  awq.totals.sums.worst.error = 0.186;
  report.builds = {repack, awq};
  return report;
}

}  // namespace gridscope::test
