// One source and a build of it in every format that quantizes to four bits.

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <span>

#include "grid_check/world.hpp"
#include "gridscope/quant/codec.hpp"

namespace gridscope::test {
namespace {

using analysis::GridBuild;
using analysis::GridReport;
using analysis::Verdict;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

enum Build : std::uint8_t { kRepack, kAwq, kGptq, kGptqV2, kGguf, kMlx };

class WholeModel : public GridCheckWorld {
 protected:
  // In the order of Build.
  [[nodiscard]] GridReport check_all() {
    return check({.source = source(),
                  .builds = {write(tiny_compressed_tensors(model_), "repack"),
                             write(tiny_awq(smoothed_), "awq"),
                             write(tiny_gptq(model_, GptqVersion::kFirst), "gptq"),
                             write(tiny_gptq(model_, GptqVersion::kSecond), "gptq-v2"),
                             write(tiny_gguf(model_), "gguf"), write(tiny_mlx(model_), "mlx")}});
  }

  TinyGemma smoothed_ = smoothed(model_);
};

// The counts of the definitions, by the definitions.
struct Counts {
  std::uint64_t weights = 0;
  std::uint64_t groups = 0;
  std::uint64_t groups_identical = 0;
  std::uint64_t values_identical = 0;
  std::uint64_t moved = 0;

  friend bool operator==(const Counts&, const Counts&) = default;
};

void PrintTo(const Counts& counts, std::ostream* out) {
  *out << counts.weights << " weights, " << counts.groups << " groups, " << counts.groups_identical
       << " and " << counts.values_identical << " identical, " << counts.moved << " moved";
}

Counts counts_of(const analysis::GridTotals& totals) {
  return {.weights = totals.sums.weights,
          .groups = totals.sums.groups,
          .groups_identical = totals.sums.groups_identical,
          .values_identical = totals.sums.values_identical,
          .moved = totals.sums.moved};
}

void count(const quant::LeveledWeight& source, const quant::LeveledWeight& build, Counts& counts) {
  const std::vector<double> originals = exact_values(source);
  const std::vector<double> values = exact_values(build);
  for (std::size_t group = 0; group < build.scales.size(); ++group) {
    std::uint64_t identical = 0;
    for (std::size_t i = group * 32; i < group * 32 + 32; ++i) {
      const double v = quant::rounded_to(Dtype::kBF16, originals[i]);
      const double y = quant::rounded_to(Dtype::kBF16, values[i]);
      if (y == v) ++identical;
      if (std::abs(y - v) / std::abs(build.scales[group]) > 0.5) ++counts.moved;
    }
    ++counts.groups;
    counts.weights += 32;
    counts.values_identical += identical;
    if (identical == 32) ++counts.groups_identical;
  }
}

enum class SharedKeys : std::uint8_t { kDropped, kKept };
Counts expected_counts(const TinyGemma& source, const TinyGemma& build, SharedKeys keys) {
  Counts counts;
  for (const TinyLinear& linear : source.linears) {
    if (keys == SharedKeys::kDropped && is_shared_away(linear.name)) continue;
    count(linear.weight, build.linear(linear.name), counts);
  }
  return counts;
}

TEST_F(WholeModel, GetsTheRightVerdictInEveryFormat) {
  const GridReport report = check_all();
  std::vector<Verdict> verdicts;
  for (const GridBuild& build : report.builds) verdicts.push_back(build.verdict);
  EXPECT_THAT(verdicts, ElementsAre(Verdict::kExact, Verdict::kSmoothed, Verdict::kExact,
                                    Verdict::kExact, Verdict::kExact, Verdict::kExact));
  EXPECT_EQ(worst_severity(report.findings), Severity::kNote);
  std::vector<std::string> codes;
  for (const Finding& finding : report.findings) codes.push_back(finding.code);
  EXPECT_THAT(codes, ElementsAre("LEVELS_MOVED", "NORM_SMOOTHED", "SMOOTHED"));
}

TEST_F(WholeModel, LeavesNothingUnmatched) {
  const GridReport report = check_all();
  for (const GridBuild& build : report.builds) {
    EXPECT_THAT(build.coverage.source_only, IsEmpty()) << build.model;
    EXPECT_THAT(build.coverage.build_only, IsEmpty()) << build.model;
    EXPECT_EQ(build.coverage.matched, build.coverage.compared) << build.model;
    EXPECT_EQ(build.coverage.matched, build.tensors.size() + build.plain_compared) << build.model;
  }
  for (const Build build : {kRepack, kAwq, kGptq, kGptqV2, kMlx}) {
    std::vector<std::string> reasons;
    for (const auto& [name, reason] : report.builds[build].coverage.absent_by_design) {
      EXPECT_TRUE(is_shared_away(name.substr(std::string("model.language_model.").size()))) << name;
      reasons.push_back(reason);
    }
    EXPECT_THAT(reasons, SizeIs(5));
    EXPECT_THAT(reasons, Each("this layer uses the keys and values of an earlier one"));
    EXPECT_EQ(report.builds[build].plain_compared, 48U);
  }
  EXPECT_THAT(report.builds[kGguf].coverage.absent_by_design, IsEmpty());
  EXPECT_EQ(report.builds[kGguf].plain_compared, 50U);
}

TEST_F(WholeModel, FindsTheGridOfTheSource) {
  const GridReport report = check_all();
  std::uint64_t groups = 0;
  for (const TinyLinear& linear : model_.linears) groups += linear.weight.scales.size();
  EXPECT_EQ(report.source_grid.groups, groups);
  EXPECT_EQ(report.source_grid.on_grid, groups);
  EXPECT_EQ(report.source_grid.group_size(), 32U);
  EXPECT_THAT(report.source_grid.group_sizes, SizeIs(1));
}

TEST_F(WholeModel, CountsWhatTheDefinitionsSay) {
  const GridReport report = check_all();
  const auto same = [&](Build build, const TinyGemma& of, SharedKeys keys) {
    EXPECT_EQ(counts_of(report.builds[build].totals), expected_counts(model_, of, keys)) << build;
  };
  for (const Build build : {kRepack, kGptq, kGptqV2, kMlx}) {
    same(build, model_, SharedKeys::kDropped);
    EXPECT_EQ(report.builds[build].totals.sums.moved, 0U);
    EXPECT_THAT(report.builds[build].totals.level_moves, IsEmpty());
    EXPECT_EQ(report.builds[build].plain_identical, report.builds[build].plain_compared);
  }
  same(kGguf, model_, SharedKeys::kKept);
  same(kAwq, smoothed_, SharedKeys::kDropped);
  EXPECT_GT(report.builds[kAwq].totals.sums.moved, 0U);
}

TEST_F(WholeModel, TellsWhatTheBuildsAreStoredAs) {
  const GridReport report = check_all();
  for (const GridBuild& build : report.builds) EXPECT_EQ(build.group_size, 32U) << build.model;
  EXPECT_EQ(report.builds[kRepack].scale_dtype, "BF16");
  EXPECT_EQ(report.builds[kAwq].scale_dtype, "F16");
  EXPECT_EQ(report.builds[kGptq].scale_dtype, "F16");
  EXPECT_EQ(report.builds[kMlx].scale_dtype, "BF16");
  EXPECT_EQ(report.builds[kGguf].format, "Q4_0");
}

// Two norms in each layer, three in the one with experts; what reads them, and nothing else, is
// smoothed.
TEST_F(WholeModel, UndoesTheSmoothing) {
  const GridReport report = check_all();
  const GridBuild& awq = report.builds[kAwq];
  ASSERT_TRUE(awq.smoothing);
  constexpr auto kReaders =
      std::to_array<const char*>({"q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"});
  EXPECT_EQ(awq.smoothing->norms, 11U);
  EXPECT_THAT(tensors_with(awq, Verdict::kSmoothed), SizeIs(awq.smoothing->tensors));
  for (const analysis::GridTensor& tensor : awq.tensors) {
    const bool behind_norm = std::ranges::any_of(
        kReaders, [&](const char* projection) { return tensor.name.ends_with(projection); });
    EXPECT_EQ(tensor.smoothing.has_value(), behind_norm) << tensor.name;
    if (!tensor.smoothing) continue;
    EXPECT_EQ(tensor.smoothing->evidence, analysis::TensorSmoothing::Evidence::kNorm);
    // The norms were rounded to BF16.
    EXPECT_NEAR(tensor.smoothing->min_factor, 0.76, 0.03);
    EXPECT_NEAR(tensor.smoothing->max_factor, 1.48, 0.03);
  }
  const analysis::GridTotals& after = awq.smoothing->totals_after;
  EXPECT_EQ(after.sums.weights, awq.totals.sums.weights);
  EXPECT_LT(after.moved_share(), awq.totals.moved_share() / 4.0);
  EXPECT_GT(after.sqnr_db().value_or(0.0), awq.totals.sqnr_db().value_or(0.0) + 6.0);
}

}  // namespace
}  // namespace gridscope::test
