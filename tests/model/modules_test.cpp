#include "gridscope/model/modules.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "model/tensor_values.hpp"

namespace gridscope::model {
namespace {

using format::TensorInfo;
using test::tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Module* find(const ModuleTable& table, std::string_view name) {
  const auto at = std::ranges::find(table.modules, name, &Module::name);
  return at == table.modules.end() ? nullptr : &*at;
}

TEST(Modules, GathersTensorsWhereverTheyLie) {
  const std::vector<TensorInfo> tensors = {tensor("l.q_proj.weight_scale", Dtype::kBF16, {8, 4}),
                                           tensor("l.norm.weight", Dtype::kBF16, {8}),
                                           tensor("l.q_proj.weight_packed", Dtype::kI32, {8, 16}),
                                           tensor("l.q_proj.bias", Dtype::kBF16, {8}),
                                           tensor("l.q_proj.weight_shape", Dtype::kI64, {2})};
  const ModuleTable table = detect_modules(tensors, nullptr);
  ASSERT_THAT(table.modules, SizeIs(2));
  const Module& packed = table.modules[0];
  EXPECT_EQ(packed.name, "l.q_proj");
  EXPECT_EQ(packed.scheme, Scheme::kCtPackQuantized);
  EXPECT_EQ(packed.bits, 4U);
  EXPECT_EQ(packed.group_size, 32);
  EXPECT_EQ(packed.parameters, 8U * 128 + 8);
  EXPECT_THAT(packed.tensors, ElementsAre(0, 2, 3, 4));
  EXPECT_THAT(table.module_of, ElementsAre(0, 1, 0, 0, 0));
  EXPECT_THAT(table.storage_of,
              ElementsAre(Storage::kScale, Storage::kWeight, Storage::kPackedWeight, Storage::kBias,
                          Storage::kShape));
  EXPECT_THAT(table.parameters_of, ElementsAre(0, 8, 1024, 8, 0));
}

TEST(Modules, LetsParametersWithScaleLikeNamesStandAlone) {
  const std::vector<TensorInfo> tensors = {
      tensor("l.router.scale", Dtype::kBF16, {16}),
      tensor("l.router.proj.weight", Dtype::kBF16, {4, 16}),
      tensor("l.layer_scalar", Dtype::kBF16, {1}),
      tensor("v.std_scale", Dtype::kBF16, {16}),
      tensor("v.input_max", Dtype::kBF16, {}),
      tensor("embeddings.position_ids", Dtype::kI64, {1, 512})};
  const ModuleTable table = detect_modules(tensors, nullptr);
  EXPECT_THAT(table.findings, IsEmpty());
  EXPECT_THAT(table.parameters_of, ElementsAre(16, 64, 1, 16, 1, 0));
  ASSERT_NE(find(table, "l.router.scale"), nullptr);
  EXPECT_EQ(table.storage_of[5], Storage::kBuffer);
}

TEST(Modules, KeepsActivationScalesInTheirModule) {
  const std::vector<TensorInfo> tensors = {tensor("l.q_proj.weight", Dtype::kF8E4M3, {8, 8}),
                                           tensor("l.q_proj.weight_scale", Dtype::kF32, {}),
                                           tensor("l.q_proj.input_scale", Dtype::kF32, {}),
                                           tensor("l.self_attn.k_scale", Dtype::kF32, {})};
  const ModuleTable table = detect_modules(tensors, nullptr);
  EXPECT_THAT(table.parameters_of, ElementsAre(64, 0, 0, 0));
  EXPECT_THAT(table.module_of, ElementsAre(0, 0, 0, 1));
}

TEST(Modules, FindsTheWeightThatScalesAreNamedAfter) {
  const std::vector<TensorInfo> tensors = {
      tensor("l.experts.down_proj", Dtype::kU8, {2, 32, 8}),
      tensor("l.experts.down_proj_bias", Dtype::kBF16, {2, 32}),
      tensor("l.experts.down_proj_input_scale", Dtype::kF32, {}),
      tensor("l.experts.down_proj_weight_scale", Dtype::kF8E4M3, {2, 32, 1}),
      tensor("l.experts.down_proj_weight_scale_2", Dtype::kF32, {}),
      tensor("m.experts.down_proj", Dtype::kF8E4M3, {2, 16, 32}),
      tensor("m.experts.down_proj_weight_scale", Dtype::kF32, {}),
      tensor("n.experts.down_proj", Dtype::kBF16, {2, 16, 32}),
      tensor("n.experts.down_proj_bias", Dtype::kBF16, {2, 32})};
  QuantizationConfig config;
  config.method = "modelopt";
  const ModuleTable table = detect_modules(tensors, &config);
  const Module* nvfp4 = find(table, "l.experts.down_proj");
  ASSERT_NE(nvfp4, nullptr);
  EXPECT_EQ(nvfp4->scheme, Scheme::kModelOptNvfp4);
  EXPECT_EQ(nvfp4->parameters, 2U * 32 * 16 + 2 * 32);
  EXPECT_THAT(nvfp4->tensors, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(table.storage_of[0], Storage::kPackedWeight);
  EXPECT_EQ(describe_storage(*nvfp4, tensors), "nvfp4 g16 (U8 packed, F8_E4M3 scales)");
  const Module* fp8 = find(table, "m.experts.down_proj");
  ASSERT_NE(fp8, nullptr);
  EXPECT_EQ(fp8->scheme, Scheme::kModelOptFp8);
  EXPECT_EQ(fp8->parameters, 2U * 16 * 32);
  const Module* plain = find(table, "n.experts.down_proj");
  ASSERT_NE(plain, nullptr);
  EXPECT_EQ(plain->scheme, Scheme::kPlain);
  const auto codes = [](const Finding& f) { return f.code.starts_with("COMPANION"); };
  EXPECT_TRUE(std::ranges::none_of(table.findings, codes));
}

TEST(Modules, OrdersModulesByTheirFirstTensor) {
  const std::vector<TensorInfo> tensors = {tensor("b.weight", Dtype::kF32, {2}),
                                           tensor("b.scale", Dtype::kF32, {2}),
                                           tensor("a.weight", Dtype::kF32, {2})};
  const ModuleTable table = detect_modules(tensors, nullptr);
  ASSERT_THAT(table.modules, SizeIs(3));
  EXPECT_EQ(table.modules[1].name, "b.scale");
  EXPECT_THAT(table.module_of, ElementsAre(0, 1, 2));
}

TEST(Modules, ReportsMissingCompanionsOncePerKind) {
  const std::vector<TensorInfo> tensors = {tensor("l.0.q_proj.weight_packed", Dtype::kI32, {8, 16}),
                                           tensor("l.1.q_proj.weight_packed", Dtype::kI32, {8, 16}),
                                           tensor("l.2.q_proj.qweight", Dtype::kI32, {8, 16}),
                                           tensor("l.3.q_proj.weight_scale", Dtype::kF32, {8, 1})};
  QuantizationConfig config;
  config.method = "mystery";
  const ModuleTable table = detect_modules(tensors, &config);
  std::vector<std::string> missing;
  for (const Finding& finding : table.findings) {
    if (finding.code != "COMPANION_MISSING") continue;
    EXPECT_EQ(finding.severity, Severity::kError);
    missing.push_back(finding.message);
  }
  EXPECT_THAT(missing,
              ::testing::UnorderedElementsAre("2 modules (ct_pack_quantized) without weight_scale",
                                              "2 modules (ct_pack_quantized) without weight_shape",
                                              "1 module (gptq) without scales",
                                              "1 module with weight_scale but no weight"));
}

TEST(Modules, ReportsCompanionsThatDoNotFit) {
  const std::vector<TensorInfo> tensors = {tensor("e.down_proj_blocks", Dtype::kU8, {2, 8, 4, 16}),
                                           tensor("e.down_proj_scales", Dtype::kU8, {2, 8, 3})};
  const ModuleTable table = detect_modules(tensors, nullptr);
  const auto found = std::ranges::find(table.findings, "COMPANION_MISMATCH", &Finding::code);
  ASSERT_NE(found, table.findings.end());
  EXPECT_THAT(found->message, HasSubstr("U8 [2, 8, 4, 16]"));
}

TEST(Modules, TakesACheckpointCastToFp8AsPlain) {
  std::vector<TensorInfo> tensors = {tensor("l.0.q_proj.weight", Dtype::kF8E4M3, {8, 8}),
                                     tensor("l.1.q_proj.weight", Dtype::kF8E4M3, {8, 8})};
  EXPECT_THAT(detect_modules(tensors, nullptr).findings, IsEmpty());
  tensors.push_back(tensor("l.1.q_proj.weight_scale_inv", Dtype::kF32, {1, 1}));
  const ModuleTable table = detect_modules(tensors, nullptr);
  const auto found = std::ranges::find(table.findings, "COMPANION_MISSING", &Finding::code);
  ASSERT_NE(found, table.findings.end());
  EXPECT_THAT(found->tensors, ElementsAre("l.0.q_proj.weight"));
}

TEST(Modules, CallsUnexplainedIntegersUnknown) {
  const std::vector<TensorInfo> tensors = {tensor("l.q_proj.codes", Dtype::kI16, {8, 8}),
                                           tensor("l.k_proj.weight", Dtype::kU8, {8, 8})};
  const ModuleTable table = detect_modules(tensors, nullptr);
  EXPECT_EQ(table.modules[0].scheme, Scheme::kUnknown);
  EXPECT_EQ(table.modules[1].scheme, Scheme::kUnknown);
  EXPECT_THAT(table.parameters_of, ElementsAre(0, 64));
}

TEST(Modules, CountsNoAttentionMasks) {
  const std::vector<TensorInfo> tensors = {tensor("h.0.attn.bias", Dtype::kF32, {1, 1, 8, 8}),
                                           tensor("h.0.attn.masked_bias", Dtype::kF32, {}),
                                           tensor("h.1.attn.bias", Dtype::kU8, {1, 1, 8, 8}),
                                           tensor("h.2.attn.bias", Dtype::kBool, {1, 1, 8, 8}),
                                           tensor("h.3.attn.mask", Dtype::kU8, {1, 1, 8, 8}),
                                           tensor("h.0.attn.c_attn.bias", Dtype::kF32, {24})};
  const ModuleTable table = detect_modules(tensors, nullptr);
  EXPECT_THAT(table.parameters_of, ElementsAre(0, 0, 0, 0, 0, 24));
  EXPECT_EQ(table.storage_of[0], Storage::kBuffer);
  EXPECT_EQ(table.storage_of[5], Storage::kBias);
  for (const Module& module : table.modules) EXPECT_EQ(module.scheme, Scheme::kPlain);
}

TEST(Modules, DescribesHowAWeightIsStored) {
  const std::vector<TensorInfo> tensors = {tensor("a.weight_packed", Dtype::kI32, {8, 16}),
                                           tensor("a.weight_scale", Dtype::kBF16, {8, 4}),
                                           tensor("a.weight_shape", Dtype::kI64, {2}),
                                           tensor("b.weight", Dtype::kBF16, {8, 8}),
                                           tensor("c.weight", Dtype::kQ4_0, {8, 32}),
                                           tensor("d.weight", Dtype::kF8E4M3, {256, 256}),
                                           tensor("d.weight_scale_inv", Dtype::kF32, {2, 2}),
                                           tensor("e.weight", Dtype::kU32, {8, 8}),
                                           tensor("e.scales", Dtype::kBF16, {8, 1}),
                                           tensor("e.biases", Dtype::kBF16, {8, 1}),
                                           tensor("f.weight", Dtype::kI8, {8, 8}),
                                           tensor("f.SCB", Dtype::kF32, {8})};
  const ModuleTable table = detect_modules(tensors, nullptr);
  std::vector<std::string> texts;
  for (const Module& module : table.modules) texts.push_back(describe_storage(module, tensors));
  EXPECT_THAT(
      texts, ElementsAre("int4 g32 (I32 packed, BF16 scales)", "BF16", "Q4_0",
                         "fp8 g128 (F8_E4M3, F32 scales)", "mlx int4 g64 (U32 packed, BF16 scales)",
                         "int8 per row (I8, F32 scales)"));
}

TEST(Modules, GivesEverySchemeAndStorageAKey) {
  std::set<std::string_view> keys;
  for (int i = 0; i <= static_cast<int>(Scheme::kUnknown); ++i) {
    keys.insert(scheme_key(static_cast<Scheme>(i)));
  }
  EXPECT_THAT(keys, SizeIs(static_cast<std::size_t>(Scheme::kUnknown) + 1));
  EXPECT_EQ(scheme_key(Scheme::kUnknown), "unknown");
  EXPECT_EQ(storage_key(Storage::kPackedWeight), "packed_weights");
  EXPECT_EQ(storage_title(Storage::kBuffer), "buffers");
}

// What holds whatever names and types come.
TEST(Modules, EveryTensorHasItsModule) {
  std::vector<TensorInfo> tensors;
  const std::vector<std::string> suffixes = {"weight",  "weight_packed", "weight_scale", "scales",
                                             "qweight", "biases",        "scale",        "B",
                                             "s",       "trellis",       "bitmask",      "x"};
  std::uint32_t state = 1;
  for (int i = 0; i < 600; ++i) {
    state = state * 1664525U + 1013904223U;
    const std::string name =
        "m" + std::to_string(state % 97) + "." + suffixes[(state >> 8U) % suffixes.size()];
    const auto exists = std::ranges::find(tensors, name, &TensorInfo::name);
    if (exists != tensors.end()) continue;
    const auto dtype = static_cast<Dtype>((state >> 16U) % 22);
    tensors.push_back(tensor(name, dtype, {(state >> 4U) % 5, 8 * ((state >> 12U) % 5)}));
  }
  const ModuleTable table = detect_modules(tensors, nullptr);
  std::vector<int> seen(tensors.size());
  for (std::size_t m = 0; m < table.modules.size(); ++m) {
    std::uint64_t parameters = 0;
    for (const std::uint32_t t : table.modules[m].tensors) {
      ++seen[t];
      EXPECT_EQ(table.module_of[t], m);
      parameters += table.parameters_of[t];
    }
    EXPECT_EQ(parameters, table.modules[m].parameters);
  }
  EXPECT_TRUE(std::ranges::all_of(seen, [](int n) { return n == 1; }));
}

}  // namespace
}  // namespace gridscope::model
