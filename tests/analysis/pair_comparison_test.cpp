// A quantized weight against its source. What the comparison says is held against loops that are
// written from the definitions alone.

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "analysis/small_models.hpp"

namespace gridscope::analysis {
namespace {

using quant::LeveledWeight;
using test::Format;
using test::gptq_format;
using test::int4_format;
using test::nf4_format;
using test::on_grid;
using test::plain_format;
using test::products_of;
using test::SmallCheck;
using test::SmallModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

const std::string kUp = "model.layers.0.mlp.up_proj";
const std::string kDown = "model.layers.0.mlp.down_proj";
const std::string kQuery = "model.layers.0.self_attn.q_proj";
const std::string kNorm = "model.layers.0.input_layernorm";

SmallModel one(const std::string& module, const LeveledWeight& weight, const Format& format) {
  SmallModel model;
  model.weight(module, weight, format);
  return model;
}

// The two weights by themselves.
GridTensor compare(const LeveledWeight& source, const LeveledWeight& build,
                   const Format& source_format = plain_format(),
                   const Format& build_format = int4_format()) {
  const SmallCheck check(one(kDown, source, source_format), {one(kDown, build, build_format)});
  return test::compared<GridTensor>(check.plan());
}

// The levels that rounding to the nearest gives, with a step for each group from its largest
// weight.
LeveledWeight rounded(const std::vector<double>& values, std::uint64_t columns,
                      std::uint64_t group_size = 32) {
  LeveledWeight weight{
      .rows = values.size() / columns, .columns = columns, .group_size = group_size};
  for (std::size_t first = 0; first < values.size(); first += group_size) {
    double largest = 0.0;
    for (std::size_t i = first; i < first + group_size; ++i) {
      largest = std::max(largest, std::abs(values[i]));
    }
    const double step = quant::rounded_to(Dtype::kBF16, largest / 7);
    weight.scales.push_back(step);
    for (std::size_t i = first; i < first + group_size; ++i) {
      weight.levels.push_back(static_cast<std::int16_t>(std::lround(values[i] / step)));
    }
  }
  return weight;
}

// ---- faithful builds ----------------------------------------------------------------------------

TEST(PairComparison, FindsARepackExact) {
  const LeveledWeight weight = on_grid(24, 96);
  const GridTensor tensor = compare(weight, weight);
  EXPECT_EQ(tensor.verdict, Verdict::kExact);
  EXPECT_EQ(tensor.name, kDown);
  EXPECT_EQ(tensor.source_name, kDown);
  EXPECT_THAT(tensor.shape, ElementsAre(24, 96));
  EXPECT_EQ(tensor.role, "mlp");
  EXPECT_THAT(tensor.format, HasSubstr("int4"));
  EXPECT_EQ(tensor.scale_dtype, "BF16");
  EXPECT_EQ(tensor.group_size, 32U);
  EXPECT_EQ(tensor.totals.sums.weights, 24U * 96);
  EXPECT_EQ(tensor.totals.sums.values_identical, 24U * 96);
  EXPECT_EQ(tensor.totals.sums.groups, 72U);
  EXPECT_EQ(tensor.totals.sums.groups_identical, 72U);
  EXPECT_EQ(tensor.totals.lattice_weights, 24U * 96);
  EXPECT_THAT(tensor.totals.scale_ratio.named(), ElementsAre(Pair("1", 72)));
  EXPECT_EQ(tensor.source_grid.groups, 72U);
  EXPECT_EQ(tensor.source_grid.on_grid, 72U);
  EXPECT_EQ(tensor.source_grid.group_size(), 32U);
  EXPECT_EQ(tensor.source_grid.rule_groups, 3U) << "of the first row";
  EXPECT_FALSE(tensor.smoothing);
  EXPECT_THAT(tensor.fault, IsEmpty());
}

TEST(PairComparison, FindsARepackExactInEveryFormatAndType) {
  const LeveledWeight weight = on_grid(32, 128);
  for (const Dtype dtype : {Dtype::kBF16, Dtype::kF16, Dtype::kF32}) {
    for (const Format& format : {int4_format(), gptq_format()}) {
      const GridTensor tensor = compare(weight, weight, plain_format(dtype), format);
      EXPECT_EQ(tensor.verdict, Verdict::kExact) << dtype_name(dtype) << ' ' << tensor.format;
      EXPECT_EQ(tensor.source_grid.on_grid, 128U);
    }
  }
}

TEST(PairComparison, FindsTheSourcesGroupsWhateverTheBuilds) {
  const LeveledWeight source = on_grid(16, 128, 64);
  LeveledWeight build = source;
  build.group_size = 32;
  build.scales.clear();
  for (const double scale : source.scales) build.scales.insert(build.scales.end(), 2, scale);
  const GridTensor finer = compare(source, build);
  EXPECT_EQ(finer.verdict, Verdict::kExact);
  EXPECT_EQ(finer.group_size, 32U);
  EXPECT_THAT(finer.source_grid.group_sizes, ElementsAre(Pair(64, 16 * 128)));
  EXPECT_EQ(finer.source_grid.groups, 32U);
  EXPECT_THAT(finer.totals.scale_ratio.named(), ElementsAre(Pair("1", 64)));
}

// Rows of padding, or such as have one step each, say nothing of the others.
TEST(PairComparison, FindsTheSourcesGroupsWhateverTheFirstRows) {
  const LeveledWeight usual = on_grid(256, 1024, 32);
  for (const double factor : {0.0, 1.0}) {
    LeveledWeight source = usual;
    constexpr std::size_t kUnlike = 64 * 1024 / 32;
    for (std::size_t g = 0; g < kUnlike; ++g) source.scales[g] = factor * usual.scales[0];
    const GridTensor tensor = compare(source, source);
    EXPECT_EQ(tensor.verdict, Verdict::kExact);
    EXPECT_EQ(tensor.source_grid.group_size(), 32U);
    EXPECT_EQ(tensor.source_grid.on_grid, usual.scales.size() - (factor == 0.0 ? kUnlike : 0));
  }
}

TEST(PairComparison, TakesTheBuildsGroupsWhereTheSourceHasNoGrid) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal(0.0, 0.02);
  std::vector<double> values(16 * 128);
  for (double& value : values) value = normal(random);
  SmallModel source;
  source.values(kDown + ".weight", values, {16, 128});
  const SmallCheck check(source, {one(kDown, rounded(values, 128, 64), int4_format())});
  const GridTensor tensor = test::compared<GridTensor>(check.plan());
  EXPECT_EQ(tensor.source_grid.groups, 32U);
  EXPECT_EQ(tensor.source_grid.off_grid, 32U);
  EXPECT_EQ(tensor.source_grid.group_size(), 0U);
  EXPECT_EQ(tensor.totals.lattice_weights, 0U);
  EXPECT_THAT(tensor.totals.level_moves, IsEmpty());
  EXPECT_LT(tensor.totals.moved_share(), 0.01) << "rounding moves no weight by half a step";
}

TEST(PairComparison, TellsAnotherScaleFromAnotherLevel) {
  const LeveledWeight source = on_grid(16, 64);
  LeveledWeight build = source;
  for (double& scale : build.scales) scale *= 1 + 1.0 / 64;
  build.scales[5] = source.scales[5];
  for (double& scale : build.scales) scale = quant::rounded_to(Dtype::kBF16, scale);
  const GridTensor tensor = compare(source, build);
  EXPECT_EQ(tensor.verdict, Verdict::kSameGrid);
  EXPECT_EQ(tensor.totals.scale_ratio.named().at("1"), 1U);
  EXPECT_EQ(tensor.totals.scale_ratio.named().at("1+"), 31U);
}

// ---- figures ------------------------------------------------------------------------------------

// Counts and sums from the definitions, one weight after the other.
struct Expected {
  GridTotals totals;

  Expected(const LeveledWeight& source, const LeveledWeight& build, Dtype dtype) {
    const std::vector<double> lattice = products_of(source);
    const std::vector<double> exact = products_of(build);
    quant::ErrorSums& sums = totals.sums;
    sums.weights = totals.lattice_weights = exact.size();
    sums.groups = exact.size() / build.group_size;
    for (std::size_t g = 0; g < sums.groups; ++g) {
      bool identical = true;
      bool dead = true;
      for (std::size_t i = g * build.group_size; i < (g + 1) * build.group_size; ++i) {
        const double v = quant::rounded_to(dtype, lattice[i]);
        const double y = quant::rounded_to(dtype, exact[i]);
        add_weight(i, build, v, y);
        identical = identical && y == v;
        dead = dead && y == 0.0;
        const double step = source.scales[i / source.group_size];
        const auto move = static_cast<int>(std::lround((exact[i] - lattice[i]) / step));
        if (move != 0) ++totals.level_moves[move];
      }
      if (identical) ++sums.groups_identical;
      if (dead) ++sums.dead_groups;
    }
  }

  void add_weight(std::size_t i, const LeveledWeight& build, double v, double y) {
    quant::ErrorSums& sums = totals.sums;
    const double error = std::abs(y - v);
    if (y == v) ++sums.values_identical;
    if (error / std::abs(build.scales[i / build.group_size]) > 0.5) ++sums.moved;
    if (build.levels[i] == -8) ++sums.saturated_low;
    if (build.levels[i] == 7) ++sums.saturated_high;
    sums.abs_error += error;
    sums.squared_error += error * error;
    sums.squared_source += v * v;
    sums.squared_build += y * y;
    sums.product += v * y;
    if (error > sums.worst.error) {
      sums.worst = {.error = error, .row = i / build.columns, .column = i % build.columns};
    }
  }
};

void expect_same(const GridTotals& found, const GridTotals& expected) {
  const auto near = [](double a, double b) { EXPECT_NEAR(a, b, 1e-6 * std::abs(b)); };
  EXPECT_EQ(found.sums.weights, expected.sums.weights);
  EXPECT_EQ(found.sums.groups, expected.sums.groups);
  EXPECT_EQ(found.sums.groups_identical, expected.sums.groups_identical);
  EXPECT_EQ(found.sums.values_identical, expected.sums.values_identical);
  EXPECT_EQ(found.sums.moved, expected.sums.moved);
  EXPECT_EQ(found.sums.saturated_low, expected.sums.saturated_low);
  EXPECT_EQ(found.sums.saturated_high, expected.sums.saturated_high);
  EXPECT_EQ(found.sums.dead_groups, expected.sums.dead_groups);
  near(found.sums.abs_error, expected.sums.abs_error);
  near(found.sums.squared_error, expected.sums.squared_error);
  near(found.sums.squared_source, expected.sums.squared_source);
  near(found.sums.squared_build, expected.sums.squared_build);
  near(found.sums.product, expected.sums.product);
  near(found.sums.worst.error, expected.sums.worst.error);
  EXPECT_EQ(found.sums.worst.row, expected.sums.worst.row);
  EXPECT_EQ(found.sums.worst.column, expected.sums.worst.column);
  EXPECT_EQ(found.level_moves, expected.level_moves);
  EXPECT_EQ(found.lattice_weights, expected.lattice_weights);
}

// Another level for every tenth weight, a slightly larger step for every third group.
LeveledWeight disturbed(LeveledWeight weight) {
  std::mt19937 random(11);
  for (std::int16_t& level : weight.levels) {
    if (random() % 10 != 0) continue;
    level = static_cast<std::int16_t>(level > 0 ? level - 1 - static_cast<int>(random() % 3)
                                                : level + 1);
  }
  for (std::size_t g = 0; g < weight.scales.size(); g += 3) {
    weight.scales[g] = quant::rounded_to(Dtype::kBF16, weight.scales[g] * (1 + 1.0 / 64));
  }
  return weight;
}

TEST(PairComparison, GivesTheFiguresOfTheDefinitions) {
  const LeveledWeight source = on_grid(40, 128);
  const LeveledWeight build = disturbed(source);
  for (const Dtype dtype : {Dtype::kBF16, Dtype::kF16, Dtype::kF32}) {
    for (const Format& format : {int4_format(), gptq_format()}) {
      const GridTensor tensor = compare(source, build, plain_format(dtype), format);
      SCOPED_TRACE(tensor.format + " against " + std::string(dtype_name(dtype)));
      expect_same(tensor.totals, Expected(source, build, dtype).totals);
      EXPECT_EQ(tensor.verdict, Verdict::kLevelsMoved);
    }
  }
}

TEST(PairComparison, GivesTheFiguresOfAsymmetricBuilds) {
  const LeveledWeight source = on_grid(32, 64);
  LeveledWeight build = disturbed(source);
  // The same values by other codes, where that leaves them in range.
  for (std::size_t g = 0; g < build.scales.size(); ++g) {
    build.zeros.push_back(static_cast<std::int16_t>(g % 3 == 0 ? 1 : 0));
    const auto levels = std::span(build.levels).subspan(g * 32, 32);
    for (std::int16_t& level : levels) {
      level = static_cast<std::int16_t>(std::min(7, level + build.zeros.back()));
    }
  }
  for (const Format& format : {int4_format(), gptq_format()}) {
    const GridTensor tensor = compare(source, build, plain_format(), format);
    SCOPED_TRACE(tensor.format);
    expect_same(tensor.totals, Expected(source, build, Dtype::kBF16).totals);
    EXPECT_EQ(tensor.totals.sums.zero_points_used, 22U);
  }
}

// More rows than a tile holds: the same figures, and rows counted from the first.
TEST(PairComparison, PutsTilesTogether) {
  const LeveledWeight source = on_grid(2500, 3072);
  LeveledWeight build = source;
  build.levels[2499 * 3072 + 77] = static_cast<std::int16_t>(source.levels[77 + 2499 * 3072] ^ 2);
  build.levels[5] = static_cast<std::int16_t>(source.levels[5] ^ 1);
  const SmallCheck check(one(kDown, source, plain_format()), {one(kDown, build, int4_format())});
  const GridPlan plan = check.plan();
  const auto comparison = open_comparison(plan, plan.items.at(0));
  ASSERT_THAT(comparison, test::IsOk());
  EXPECT_GT((*comparison)->tiles().tiles(), 1U);
  const GridTensor tensor = test::compared<GridTensor>(plan);
  expect_same(tensor.totals, Expected(source, build, Dtype::kBF16).totals);
  EXPECT_EQ(tensor.source_grid.groups, 2500U * 96);
  EXPECT_EQ(tensor.source_grid.rule_groups, 3U * 96) << "of three rows";
}

TEST(PairComparison, SaysTheSameWhetherNormsAreThereOrNot) {
  const LeveledWeight source = on_grid(32, 128);
  const LeveledWeight build = disturbed(source);
  const std::vector<double> norm(128, 1.5);
  std::vector<double> edited = norm;
  edited[7] = 1.0;
  SmallModel from = one(kQuery, source, plain_format());
  SmallModel to = one(kQuery, build, int4_format());
  from.norm(kNorm, norm);
  to.norm(kNorm, edited);
  const GridTensor with_norm = test::compared<GridTensor>(SmallCheck(from, {to}).plan());
  const GridTensor without = compare(source, build);
  EXPECT_EQ(with_norm.totals, without.totals) << "kernels that decode and kernels that do not";
  EXPECT_EQ(with_norm.source_grid, without.source_grid);
}

// ---- layouts ------------------------------------------------------------------------------------

TEST(PairComparison, ComparesPartsOfFusedWeights) {
  const LeveledWeight gate = on_grid(16, 64, 32, 1);
  const LeveledWeight up = on_grid(16, 64, 32, 2);
  LeveledWeight edited = up;
  edited.levels[3 * 64 + 9] = static_cast<std::int16_t>(up.levels[3 * 64 + 9] ^ 1);
  const auto fused = [&](const LeveledWeight& second, const Format& format) {
    LeveledWeight both = gate;
    both.rows = 32;
    both.levels.insert(both.levels.end(), second.levels.begin(), second.levels.end());
    both.scales.insert(both.scales.end(), second.scales.begin(), second.scales.end());
    return one("model.layers.0.mlp.gate_up_proj", both, format);
  };
  const auto split = [&](const LeveledWeight& second, const Format& format) {
    SmallModel model = one("model.layers.0.mlp.gate_proj", gate, format);
    return model.weight(kUp, second, format);
  };
  const SmallCheck checks[] = {
      {fused(up, plain_format()), {split(edited, int4_format())}},
      {split(up, plain_format()), {fused(edited, int4_format())}},
  };
  for (const SmallCheck& check : checks) {
    const GridPlan plan = check.plan();
    ASSERT_EQ(plan.items.size(), 2U);
    EXPECT_EQ(test::compared<GridTensor>(plan, 0).verdict, Verdict::kExact);
    const GridTensor second = test::compared<GridTensor>(plan, 1);
    EXPECT_EQ(second.verdict, Verdict::kLevelsMoved);
    EXPECT_EQ(second.totals.sums.weights, 1024U);
    EXPECT_EQ(second.totals.sums.moved, 1U);
    EXPECT_EQ(second.totals.sums.worst.row, 3U) << "counted within the pair";
    EXPECT_EQ(second.totals.sums.worst.column, 9U);
  }
}

TEST(PairComparison, ComparesSourcesWhoseInputsComeFirst) {
  const LeveledWeight weight = on_grid(24, 64);
  Format transposed = plain_format();
  transposed.like.order = quant::WeightSpec::Order::kInputMajor;
  SmallModel source = one("h.0.attn.c_attn", weight, transposed);
  source.config = R"({"model_type": "gpt2"})";
  const SmallCheck check(source, {one("h.0.attn.c_attn", weight, int4_format())});
  EXPECT_EQ(test::compared<GridTensor>(check.plan()).verdict, Verdict::kExact);
}

TEST(PairComparison, ReadsShapesThatHeadersDoNotTell) {
  const LeveledWeight odd = on_grid(16, 36, 12);
  const GridTensor padded = compare(odd, odd);
  EXPECT_EQ(padded.verdict, Verdict::kExact) << padded.fault;
  EXPECT_THAT(padded.shape, ElementsAre(16, 36)) << "of 40 codes in each row";

  const LeveledWeight flat = on_grid(8, 64, 64);
  const SmallCheck alone(one(kDown, flat, nf4_format()), {});
  ASSERT_EQ(alone.side(0).weights.size(), 1U);
  EXPECT_TRUE(alone.side(0).weights[0].is_flat);
  const GridTensor nf4 = compare(flat, flat, plain_format(), nf4_format());
  EXPECT_THAT(nf4.fault, IsEmpty());
  EXPECT_THAT(nf4.shape, ElementsAre(8, 64));
  EXPECT_EQ(nf4.group_size, 64U);
  EXPECT_EQ(nf4.totals.sums.weights, 512U);
}

TEST(PairComparison, ComparesSparseWeightsOnAGridOfWholeRows) {
  const LeveledWeight weight = on_grid(16, 32, 32);
  const GridTensor tensor = compare(weight, weight, plain_format(), test::sparse_format());
  EXPECT_EQ(tensor.verdict, Verdict::kExact) << tensor.fault;
  EXPECT_EQ(tensor.scale_dtype, "");
  EXPECT_THAT(tensor.totals.scale_ratio.named(), IsEmpty());
}

TEST(PairComparison, FollowsGroupsThatAreMixed) {
  LeveledWeight source = on_grid(16, 64);
  LeveledWeight build = source;
  build.group_of_column.resize(64);
  for (std::uint32_t k = 0; k < 64; ++k) build.group_of_column[k] = k % 2;
  // The same weights: the columns of a group are spread over the row.
  for (std::uint64_t row = 0; row < 16; ++row) {
    for (std::uint64_t k = 0; k < 64; ++k) {
      const std::uint64_t from = k % 2 * 32 + k / 2;
      build.levels[row * 64 + k] = source.levels[row * 64 + from];
    }
  }
  std::vector<double> values(16 * 64);
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    values[i] = build.levels[i] * source.scales[i / 64 * 2 + i % 2];
  }
  SmallModel from;
  from.values(kDown + ".weight", values, {16, 64});
  const SmallCheck check(from, {one(kDown, build, int4_format())});
  const GridTensor tensor = test::compared<GridTensor>(check.plan());
  EXPECT_EQ(tensor.totals.sums.values_identical, 1024U) << tensor.fault;
  EXPECT_EQ(tensor.group_size, 0U);
  EXPECT_EQ(tensor.verdict, Verdict::kExact);
}

// ---- smoothing ----------------------------------------------------------------------------------

class PairSmoothing : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kRows = 64;
  static constexpr std::uint64_t kColumns = 128;

  PairSmoothing() {
    std::mt19937 random(17);
    for (std::uint64_t k = 0; k < kColumns; ++k) {
      factors.push_back(0.5 + static_cast<double>(random() % 1024) / 512.0);
      norm.push_back(1.0 + static_cast<double>(random() % 256) / 256.0);
    }
  }

  // The source times each column's factor, rounded to four bits.
  [[nodiscard]] LeveledWeight smoothed() const {
    std::vector<double> values = products_of(source);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] *= factors[i % kColumns];
    return rounded(values, kColumns);
  }
  // The norm with the factor taken out of what the model multiplies with.
  [[nodiscard]] std::vector<double> divided(double offset) const {
    std::vector<double> values = norm;
    for (std::size_t k = 0; k < kColumns; ++k) {
      values[k] = (norm[k] + offset) / factors[k] - offset;
    }
    return values;
  }

  [[nodiscard]] GridTensor compare_with_norms(const LeveledWeight& build,
                                              const std::vector<double>& build_norm,
                                              const std::string& config = "{}") const {
    SmallModel from = one(kQuery, source, plain_format());
    SmallModel to = one(kQuery, build, int4_format());
    from.norm(kNorm, norm);
    to.norm(kNorm, build_norm);
    from.config = to.config = config;
    return test::compared<GridTensor>(SmallCheck(from, {to}).plan());
  }

  void expect_undone(const GridTensor& tensor, TensorSmoothing::Evidence evidence) const {
    ASSERT_TRUE(tensor.smoothing);
    EXPECT_EQ(tensor.verdict, Verdict::kSmoothed);
    EXPECT_EQ(tensor.smoothing->evidence, evidence);
    EXPECT_NEAR(tensor.smoothing->min_factor, std::ranges::min(factors), 0.03);
    EXPECT_NEAR(tensor.smoothing->max_factor, std::ranges::max(factors), 0.03);
    EXPECT_LT(tensor.totals.sqnr_db().value(), 12.0);
    EXPECT_GT(tensor.smoothing->totals_after.sqnr_db().value(), 15.0);
    EXPECT_LT(tensor.smoothing->totals_after.moved_share(), tensor.totals.moved_share() / 3);
  }

  LeveledWeight source = on_grid(kRows, kColumns);
  std::vector<double> factors;
  std::vector<double> norm;
};

TEST_F(PairSmoothing, IsFoundByTheNorm) {
  const GridTensor tensor = compare_with_norms(smoothed(), divided(0.0));
  expect_undone(tensor, TensorSmoothing::Evidence::kNorm);
  EXPECT_EQ(tensor.smoothing->totals_after.sums.weights, tensor.totals.sums.weights);
}

TEST_F(PairSmoothing, TakesOneFromTheNormsOfModelsThatAddOne) {
  const GridTensor tensor =
      compare_with_norms(smoothed(), divided(1.0), R"({"model_type": "gemma3_text"})");
  expect_undone(tensor, TensorSmoothing::Evidence::kNorm);
}

TEST_F(PairSmoothing, IsNotWhatAnEditedNormShows) {
  const GridTensor tensor = compare_with_norms(source, divided(0.0));
  EXPECT_FALSE(tensor.smoothing);
  EXPECT_EQ(tensor.verdict, Verdict::kExact) << "the weight has not changed";
}

TEST_F(PairSmoothing, IsNotSeenWhereOnlyRoundingDiffers) {
  std::vector<double> nearly = norm;
  for (double& value : nearly) value *= 1.001;
  const GridTensor tensor = compare_with_norms(source, nearly);
  EXPECT_FALSE(tensor.smoothing);
  EXPECT_EQ(tensor.verdict, Verdict::kExact);
}

TEST_F(PairSmoothing, IsFoundByTheColumnsAlone) {
  const GridTensor tensor = compare(source, smoothed());
  expect_undone(tensor, TensorSmoothing::Evidence::kColumns);
}

// Such a model is broken, and judged as it is.
TEST_F(PairSmoothing, IsNoExcuseWhereTheNormDoesNotUndoIt) {
  std::vector<double> other = norm;
  std::ranges::reverse(other);
  for (const auto& build_norm : {norm, other}) {
    const GridTensor tensor = compare_with_norms(smoothed(), build_norm);
    ASSERT_TRUE(tensor.smoothing);
    EXPECT_EQ(tensor.smoothing->evidence, TensorSmoothing::Evidence::kAgainstNorm);
    EXPECT_EQ(tensor.verdict, Verdict::kDifferentModel);
  }
}

TEST_F(PairSmoothing, IsFoundByTheRows) {
  std::vector<double> values = products_of(source);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= factors[i / kColumns];
  const GridTensor tensor = compare(source, rounded(values, kColumns));
  ASSERT_TRUE(tensor.smoothing);
  EXPECT_EQ(tensor.verdict, Verdict::kSmoothed);
  EXPECT_EQ(tensor.smoothing->evidence, TensorSmoothing::Evidence::kRows);
  EXPECT_EQ(tensor.smoothing->min_factor, 1.0);
  EXPECT_NEAR(tensor.smoothing->max_row_factor, std::ranges::max(std::span(factors).first(kRows)),
              0.06);
  EXPECT_GT(tensor.smoothing->totals_after.sqnr_db().value(), 15.0);
}

// As AWQ leaves a projection between a norm and another projection.
TEST_F(PairSmoothing, IsFoundInRowsAndColumnsAtOnce) {
  std::vector<double> values = products_of(source);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] *= factors[i % kColumns] * factors[kRows - 1 - i / kColumns];
  }
  const GridTensor tensor = compare_with_norms(rounded(values, kColumns), divided(0.0));
  expect_undone(tensor, TensorSmoothing::Evidence::kNorm);
  EXPECT_GT(tensor.smoothing->max_row_factor, 1.5 * tensor.smoothing->min_row_factor);
}

TEST_F(PairSmoothing, IsNotWhatMovedLevelsShow) {
  LeveledWeight build = source;
  for (std::size_t i = 0; i < build.levels.size(); i += 3) {
    build.levels[i] = static_cast<std::int16_t>(build.levels[i] ^ 1);
  }
  const GridTensor tensor = compare(source, build);
  EXPECT_GT(tensor.totals.moved_share(), 0.3);
  EXPECT_FALSE(tensor.smoothing);
  EXPECT_EQ(tensor.verdict, Verdict::kLevelsMoved);
}

// Steps are undone with the values, so that the source's own come out.
TEST_F(PairSmoothing, UndoesAFactorOfPowersOfTwoExactly) {
  for (std::size_t k = 0; k < kColumns; ++k) factors[k] = k / 32 % 2 == 0 ? 0.5 : 2.0;
  LeveledWeight build = source;
  for (std::size_t g = 0; g < build.scales.size(); ++g) build.scales[g] *= g % 2 == 0 ? 0.5 : 2.0;
  const GridTensor tensor = compare_with_norms(build, divided(0.0));
  ASSERT_TRUE(tensor.smoothing);
  EXPECT_EQ(tensor.smoothing->min_factor, 0.5);
  EXPECT_EQ(tensor.smoothing->max_factor, 2.0);
  const GridTotals& after = tensor.smoothing->totals_after;
  EXPECT_EQ(after.sums.values_identical, after.sums.weights);
  EXPECT_EQ(after.sums.moved, 0U);
  EXPECT_THAT(after.scale_ratio.named(), ElementsAre(Pair("1", kRows * kColumns / 32)));
  EXPECT_THAT(tensor.totals.scale_ratio.named(),
              ElementsAre(Pair("0.4375", ::testing::_), Pair("0.5", ::testing::_),
                          Pair("1.9375", ::testing::_), Pair("2", ::testing::_)));
}

// ---- broken builds ------------------------------------------------------------------------------

TEST(PairComparison, CallsAnUnrelatedWeightADifferentModel) {
  EXPECT_EQ(compare(on_grid(32, 128, 32, 1), on_grid(32, 128, 32, 2)).verdict,
            Verdict::kDifferentModel);
}

TEST(PairComparison, CallsScalesThatAreNoNumbersCorrupt) {
  const LeveledWeight weight = on_grid(16, 64);
  auto spec = quant::pack(weight, int4_format().like);
  ASSERT_THAT(spec, test::IsOk());
  for (const double value :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 0.0}) {
    const auto scale = std::span((*spec)[quant::Companion::kScale]->data).subspan(6, 2);
    quant::store_numbers(Dtype::kBF16, std::span(&value, 1), scale);
    SmallModel build;
    build.stored(kDown, *spec, int4_format());
    const SmallCheck check(one(kDown, weight, plain_format()), {build});
    const auto result = test::compare_item(check.plan());
    if (!result) {
      EXPECT_THAT(result, test::Fails(ErrorCode::kCorrupt, HasSubstr("down_proj")));
      continue;
    }
    EXPECT_EQ(std::get<GridTensor>(*result).verdict, Verdict::kCorrupt) << value;
  }
}

TEST(PairComparison, RefusesAWeightWithoutItsScales) {
  const LeveledWeight weight = on_grid(16, 64);
  Format bare = int4_format();
  bare.suffixes.erase(quant::Companion::kScale);
  const SmallCheck check(one(kDown, weight, plain_format()), {one(kDown, weight, bare)});
  EXPECT_THAT(test::compare_item(check.plan()),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("scale")));
}

}  // namespace
}  // namespace gridscope::analysis
