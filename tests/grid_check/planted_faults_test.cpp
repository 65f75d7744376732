// What goes wrong with builds, one thing at a time: each is found, and the weights concerned are
// named, and no others.

#include <gmock/gmock.h>

#include <string>
#include <utility>

#include "grid_check/world.hpp"

namespace gridscope::test {
namespace {

using analysis::GridBuild;
using analysis::GridReport;
using analysis::GridTensor;
using analysis::Verdict;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

const std::string kPrefix = "model.language_model.";

class PlantedFaults : public GridCheckWorld {
 protected:
  // The tensors of the finding with that code.
  static std::vector<std::string> named(const GridReport& report, std::string_view code) {
    const Finding* finding = find_finding(report, code);
    return finding == nullptr ? std::vector<std::string>() : finding->tensors;
  }

  // Exactly these weights are that bad and named by a finding; all others are exact.
  static void expect_named(const GridReport& report, Verdict verdict, std::string_view code,
                           const std::vector<std::string>& names) {
    const GridBuild& build = report.builds.at(0);
    EXPECT_EQ(build.verdict, verdict);
    EXPECT_THAT(tensors_with(build, verdict), UnorderedElementsAreArray(names));
    EXPECT_THAT(tensors_with(build, Verdict::kExact), SizeIs(build.tensors.size() - names.size()));
    EXPECT_THAT(named(report, code), UnorderedElementsAreArray(names));
  }
};

TEST_F(PlantedFaults, OneLevelOfOneExpert) {
  TinyGemma build = model_;
  std::int16_t& level = build.linear("layers.2.experts.2.down_proj").levels[5 * 32 + 7];
  level = static_cast<std::int16_t>(level == 7 ? 6 : level + 1);
  const int move = level == 6 ? -1 : 1;
  const GridReport report = check(tiny_compressed_tensors(build));
  const std::string name = kPrefix + "layers.2.experts.2.down_proj";
  expect_named(report, Verdict::kLevelsMoved, "LEVELS_MOVED", {name});
  const GridTensor* tensor = find_tensor(report.builds[0], name);
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->source_name, kPrefix + "layers.2.experts.down_proj[2]");
  EXPECT_EQ(tensor->totals.sums.moved, 1U);
  EXPECT_EQ(tensor->totals.sums.worst.row, 5U);
  EXPECT_EQ(tensor->totals.sums.worst.column, 7U);
  EXPECT_THAT(tensor->totals.level_moves, ElementsAre(Pair(move, 1)));
  EXPECT_EQ(report.builds[0].totals.sums.moved, 1U);
}

// Row 37 of "up" stands in the middle of the source's stack.
TEST_F(PlantedFaults, OneLevelWithinAStack) {
  TinyGemma build = model_;
  std::int16_t& level = build.linear("layers.2.experts.3.up_proj").levels[17 * 64 + 40];
  level = static_cast<std::int16_t>(level == -8 ? -7 : level - 1);
  for (const TinyFile& file : {tiny_mlx(build), tiny_gguf(build)}) {
    const GridReport report = check(file);
    EXPECT_EQ(report.builds[0].verdict, Verdict::kLevelsMoved);
    ASSERT_THAT(named(report, "LEVELS_MOVED"), SizeIs(1));
    const GridTensor* tensor = find_tensor(report.builds[0], named(report, "LEVELS_MOVED")[0]);
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->totals.sums.moved, 1U);
    EXPECT_EQ(tensor->totals.sums.worst.row % 32, 17U) << tensor->name;
    EXPECT_EQ(tensor->totals.sums.worst.column, 40U);
  }
}

TEST_F(PlantedFaults, SwappedNibbles) {
  TinyFile build = tiny_compressed_tensors(model_);
  const std::string name = kPrefix + "layers.1.mlp.up_proj";
  for (std::byte& both : build.at(name + ".weight_packed").data) both = both << 4 | both >> 4;
  expect_named(check(build), Verdict::kDifferentModel, "WEIGHT_DIFFERS", {name});
}

TEST_F(PlantedFaults, AwqZerosOffByOne) {
  TinyGemma build = smoothed(model_);
  const std::vector<std::string> names = {"layers.0.self_attn.o_proj", "layers.1.self_attn.q_proj"};
  for (const std::string& name : names) {
    for (std::int16_t& zero : build.linear(name).zeros) {
      zero = static_cast<std::int16_t>(std::min(zero + 1, 7));
    }
  }
  const GridReport report = check(tiny_awq(build));
  EXPECT_THAT(named(report, "LEVELS_SHIFTED"),
              ElementsAre("model." + names[0], "model." + names[1]));
  EXPECT_EQ(worst_severity(report.findings), Severity::kError);
}

// Where symmetry is claimed, the zero point itself tells the version; the label is still wrong.
TEST_F(PlantedFaults, SymmetricGptqOfOneVersionLabelledAsTheOther) {
  TinyFile first = tiny_gptq(model_, GptqVersion::kFirst);
  TinyFile second = tiny_gptq(model_, GptqVersion::kSecond);
  std::swap(first.config, second.config);
  for (const TinyFile& build : {first, second}) {
    const GridReport report = check(build);
    EXPECT_EQ(report.builds[0].verdict, Verdict::kExact);
    EXPECT_THAT(named(report, "STORAGE_ODD"), SizeIs(report.builds[0].tensors.size()));
    EXPECT_THAT(find_finding(report, "STORAGE_ODD")->message, HasSubstr("label says version"));
  }
}

TEST_F(PlantedFaults, GptqOfOneVersionLabelledAsTheOther) {
  TinyFile first = tiny_gptq(model_, GptqVersion::kFirst);
  TinyFile second = tiny_gptq(model_, GptqVersion::kSecond);
  std::swap(first.config, second.config);
  for (TinyFile* build : {&first, &second}) {
    const std::string_view symmetric = R"("sym": true)";
    build->config.replace(build->config.find(symmetric), symmetric.size(), R"("sym": false)");
    const GridReport report = check(*build);
    const GridBuild& found = report.builds[0];
    EXPECT_EQ(found.verdict, Verdict::kLevelsMoved);
    EXPECT_THAT(tensors_with(found, Verdict::kLevelsMoved), SizeIs(found.tensors.size()));
    EXPECT_THAT(named(report, "LEVELS_SHIFTED"), SizeIs(found.tensors.size()));
    EXPECT_EQ(worst_severity(report.findings), Severity::kError);
  }
}

TEST_F(PlantedFaults, AScaleThatF16LosesAltogether) {
  model_.linear("layers.0.self_attn.o_proj").scales[3] = 0x1.8p-26;
  const GridReport report = check(tiny_gptq(model_, GptqVersion::kFirst));
  const std::string name = kPrefix + "layers.0.self_attn.o_proj";
  expect_named(report, Verdict::kCorrupt, "WEIGHT_CORRUPT", {name});
  EXPECT_EQ(report.builds[0].totals.sums.dead_groups, 1U);
  EXPECT_EQ(report.builds[0].totals.sums.dead_in_both, 0U);
}

TEST_F(PlantedFaults, CodesThatAreAllTheMiddle) {
  TinyFile build = tiny_compressed_tensors(model_);
  const std::string name = kPrefix + "layers.2.experts.0.up_proj";
  std::ranges::fill(build.at(name + ".weight_packed").data, std::byte{0x88});
  const GridReport report = check(build);
  expect_named(report, Verdict::kCorrupt, "WEIGHT_CORRUPT", {name});
  EXPECT_EQ(report.builds[0].totals.sums.dead_groups, 64U);
}

TEST_F(PlantedFaults, GateAndUpExchanged) {
  TinyGemma build = model_;
  std::swap(build.linear("layers.0.mlp.gate_proj"), build.linear("layers.0.mlp.up_proj"));
  expect_named(check(tiny_compressed_tensors(build)), Verdict::kDifferentModel, "WEIGHT_DIFFERS",
               {kPrefix + "layers.0.mlp.gate_proj", kPrefix + "layers.0.mlp.up_proj"});
}

TEST_F(PlantedFaults, ALayerOfAnotherModel) {
  TinyGemma build = model_;
  const TinyGemma other = make_tiny_gemma(2);
  std::vector<std::string> weights;
  std::vector<std::string> tables;
  for (std::size_t i = 0; i < other.linears.size(); ++i) {
    if (!other.linears[i].name.starts_with("layers.1.")) continue;
    build.linears[i] = other.linears[i];
    weights.push_back(kPrefix + other.linears[i].name);
  }
  for (std::size_t i = 0; i < other.tables.size(); ++i) {
    if (!other.tables[i].name.starts_with("layers.1.")) continue;
    build.tables[i] = other.tables[i];
    tables.push_back(kPrefix + other.tables[i].name);
  }
  for (std::string& name : tables) {
    constexpr std::string_view kWeight = ".weight";
    if (name.ends_with(kWeight)) name.resize(name.size() - kWeight.size());
  }
  const GridReport report = check(tiny_compressed_tensors(build));
  expect_named(report, Verdict::kDifferentModel, "WEIGHT_DIFFERS", weights);
  EXPECT_THAT(named(report, "PLAIN_DIFFERS"), UnorderedElementsAreArray(tables));
  EXPECT_FALSE(report.builds[0].smoothing);
}

TEST_F(PlantedFaults, ATransposedSquareMatrix) {
  TinyGemma build = model_;
  quant::LeveledWeight& square = build.linear("layers.0.self_attn.q_proj");
  ASSERT_EQ(square.rows, square.columns);
  const std::vector<std::int16_t> levels = square.levels;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    square.levels[i % square.columns * square.columns + i / square.columns] = levels[i];
  }
  expect_named(check(tiny_compressed_tensors(build)), Verdict::kDifferentModel, "WEIGHT_DIFFERS",
               {kPrefix + "layers.0.self_attn.q_proj"});
}

TEST_F(PlantedFaults, OneEditedNorm) {
  TinyGemma build = model_;
  build.table("layers.2.pre_feedforward_layernorm.weight").values[9] *= 1.5;
  const GridReport report = check(tiny_compressed_tensors(build));
  const std::string name = kPrefix + "layers.2.pre_feedforward_layernorm";
  EXPECT_THAT(named(report, "PLAIN_DIFFERS"), ElementsAre(name));
  EXPECT_EQ(find_finding(report, "NORM_SMOOTHED"), nullptr);
  EXPECT_FALSE(report.builds[0].smoothing);
  EXPECT_EQ(report.builds[0].verdict, Verdict::kSameGrid) << "not every value is identical";
  ASSERT_THAT(report.builds[0].different, SizeIs(1));
  EXPECT_EQ(report.builds[0].different[0].name, name);
  EXPECT_EQ(report.builds[0].different[0].different, 1U);
  EXPECT_EQ(worst_severity(report.findings), Severity::kError);
}

// Among norms that smoothing did change, one that it did not is still an edit.
TEST_F(PlantedFaults, OneEditedNormOfASmoothedModel) {
  TinyGemma build = smoothed(model_);
  build.table("layers.3.post_attention_layernorm.weight").values[0] *= 2.0;
  const GridReport report = check(tiny_awq(build));
  EXPECT_THAT(named(report, "PLAIN_DIFFERS"),
              ElementsAre("model.layers.3.post_attention_layernorm"));
  EXPECT_THAT(named(report, "NORM_SMOOTHED"), SizeIs(11));
}

// And so is one that holds more than the inverse of a scale.
TEST_F(PlantedFaults, OneEditedNormThatHoldsAScaleToo) {
  TinyGemma build = smoothed(model_);
  build.table("layers.2.input_layernorm.weight").values[50] *= 1.5;
  const GridReport report = check(tiny_awq(build));
  EXPECT_THAT(named(report, "PLAIN_DIFFERS"), ElementsAre("model.layers.2.input_layernorm"));
  EXPECT_THAT(named(report, "NORM_SMOOTHED"), SizeIs(10));
  EXPECT_EQ(report.builds[0].verdict, Verdict::kSmoothed);
}

}  // namespace
}  // namespace gridscope::test
