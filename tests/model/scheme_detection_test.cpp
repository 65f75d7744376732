#include "gridscope/model/scheme_detection.hpp"

#include <gmock/gmock.h>

#include <vector>

#include "model/tensor_values.hpp"

namespace gridscope::model {
namespace {

using format::TensorInfo;
using test::tensor;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A view of tensors whose names are "m." and a suffix.
struct Fixture {
  explicit Fixture(std::vector<TensorInfo> all) : tensors(std::move(all)) {
    for (const TensorInfo& t : tensors) view.add(split_suffix(t.name).suffix, t);
  }
  std::vector<TensorInfo> tensors;
  ModuleView view;
};

struct Case {
  std::string_view key;
  std::vector<TensorInfo> tensors;
};

TEST(SchemeDetection, FollowsTheTable) {
  const std::vector<Case> cases = {
      {"ct_pack_quantized",
       {tensor("m.weight_packed", Dtype::kI32, {8, 4}),
        tensor("m.weight_scale", Dtype::kBF16, {8, 1}),
        tensor("m.weight_shape", Dtype::kI64, {2})}},
      {"ct_nvfp4",
       {tensor("m.weight_packed", Dtype::kU8, {8, 16}),
        tensor("m.weight_scale", Dtype::kF8E4M3, {8, 2}),
        tensor("m.weight_global_scale", Dtype::kF32, {1})}},
      {"ct_mxfp4",
       {tensor("m.weight_packed", Dtype::kU8, {8, 16}),
        tensor("m.weight_scale", Dtype::kU8, {8, 1})}},
      {"ct_marlin_24",
       {tensor("m.weight_packed", Dtype::kI32, {8, 4}),
        tensor("m.scale_packed", Dtype::kF16, {1, 8}), tensor("m.meta", Dtype::kI16, {1, 8})}},
      {"ct_sparse",
       {tensor("m.compressed", Dtype::kBF16, {8}), tensor("m.bitmask", Dtype::kU8, {8, 1}),
        tensor("m.shape", Dtype::kI64, {2})}},
      {"modelopt_nvfp4",
       {tensor("m.weight", Dtype::kU8, {8, 16}), tensor("m.weight_scale", Dtype::kF8E4M3, {8, 2}),
        tensor("m.weight_scale_2", Dtype::kF32, {})}},
      {"modelopt_int4_awq",
       {tensor("m.weight", Dtype::kU8, {4, 32}), tensor("m.weight_scale", Dtype::kF32, {8, 2})}},
      {"fp8_block",
       {tensor("m.weight", Dtype::kF8E4M3, {8, 8}),
        tensor("m.weight_scale_inv", Dtype::kF32, {1, 1})}},
      {"ct_float",
       {tensor("m.weight", Dtype::kF8E4M3, {8, 8}),
        tensor("m.weight_scale", Dtype::kBF16, {8, 1})}},
      {"ct_mxfp8",
       {tensor("m.weight", Dtype::kF8E4M3, {8, 32}), tensor("m.weight_scale", Dtype::kU8, {8, 1})}},
      {"fp8_scaled",
       {tensor("m.weight", Dtype::kF8E4M3, {8, 8}), tensor("m.scale", Dtype::kF8E8M0, {1, 1})}},
      {"packed_fp4",
       {tensor("m.weight", Dtype::kI8, {8, 16}), tensor("m.scale", Dtype::kF8E8M0, {8, 1})}},
      {"ct_int",
       {tensor("m.weight", Dtype::kI8, {8, 8}), tensor("m.weight_scale", Dtype::kF32, {8, 1})}},
      {"bnb_int8", {tensor("m.weight", Dtype::kI8, {8, 8}), tensor("m.SCB", Dtype::kF32, {8})}},
      {"bnb_nf4",
       {tensor("m.weight", Dtype::kU8, {32, 1}), tensor("m.weight.absmax", Dtype::kF32, {1}),
        tensor("m.weight.quant_state.bitsandbytes__nf4", Dtype::kU8, {80})}},
      {"bnb_fp4",
       {tensor("m.weight", Dtype::kBF16, {16, 1}),
        tensor("m.weight.quant_state.bitsandbytes__fp4", Dtype::kU8, {80})}},
      {"gptq",
       {tensor("m.qweight", Dtype::kI32, {8, 16}), tensor("m.scales", Dtype::kF16, {2, 16}),
        tensor("m.qzeros", Dtype::kI32, {2, 2})}},
      {"awq_gemm",
       {tensor("m.qweight", Dtype::kI32, {64, 2}), tensor("m.scales", Dtype::kF16, {2, 16}),
        tensor("m.qzeros", Dtype::kI32, {2, 2})}},
      {"awq_gemv",
       {tensor("m.qweight", Dtype::kI32, {16, 32}), tensor("m.scales", Dtype::kF16, {16, 8}),
        tensor("m.qzeros", Dtype::kI32, {16, 1})}},
      {"awq_gemv_fast",
       {tensor("m.qweight", Dtype::kI16, {4, 64}), tensor("m.scales", Dtype::kF16, {8, 16})}},
      {"marlin",
       {tensor("m.qweight", Dtype::kI32, {4, 32}), tensor("m.scales", Dtype::kF16, {1, 16})}},
      {"marlin",
       {tensor("m.B", Dtype::kI32, {4, 32}), tensor("m.s", Dtype::kF16, {1, 16}),
        tensor("m.workspace", Dtype::kI32, {16})}},
      {"gpt_oss_mxfp4",
       {tensor("m.gate_up_proj_blocks", Dtype::kU8, {2, 8, 1, 16}),
        tensor("m.gate_up_proj_scales", Dtype::kU8, {2, 8, 1})}},
      {"mlx_affine",
       {tensor("m.weight", Dtype::kU32, {8, 8}), tensor("m.scales", Dtype::kBF16, {8, 1}),
        tensor("m.biases", Dtype::kBF16, {8, 1})}},
      {"mlx_fp", {tensor("m.weight", Dtype::kU32, {8, 4}), tensor("m.scales", Dtype::kU8, {8, 1})}},
      {"torchao",
       {tensor("m._weight_qdata", Dtype::kI8, {8, 8}),
        tensor("m._weight_scale", Dtype::kF32, {8})}},
      {"exl3", {tensor("m.trellis", Dtype::kI16, {2, 2, 48})}},
      {"gguf_block", {tensor("m.weight", Dtype::kQ4_0, {8, 32})}},
      {"plain", {tensor("m.weight", Dtype::kBF16, {8, 8}), tensor("m.scale", Dtype::kBF16, {8})}},
      {"plain", {tensor("m.weight", Dtype::kF8E4M3, {8, 8})}},
      {"unknown", {tensor("m.weight", Dtype::kU8, {8, 8})}},
      {"unknown", {tensor("m.weight", Dtype::kI64, {8})}},
  };
  for (const Case& c : cases) {
    const Fixture fixture(c.tensors);
    EXPECT_EQ(scheme_key(detect_scheme(fixture.view)), c.key) << c.tensors.front().name;
  }
}

TEST(SchemeDetection, AsksTheMethodWhereTensorsAreTheSame) {
  Fixture fixture(
      {tensor("m.weight", Dtype::kF8E4M3, {8, 8}), tensor("m.weight_scale", Dtype::kF32, {})});
  fixture.view.method = "modelopt";
  EXPECT_EQ(detect_scheme(fixture.view), Scheme::kModelOptFp8);
}

TEST(SchemeDetection, TellsWordsOf16BitsByTheirZeroPoints) {
  const auto scheme_of = [](Dtype zeros) {
    return detect_scheme(
        Fixture({tensor("m.qweight", Dtype::kI16, {16, 16}), tensor("m.qzeros", zeros, {2, 4}),
                 tensor("m.scales", Dtype::kF16, {2, 16})})
            .view);
  };
  EXPECT_EQ(scheme_of(Dtype::kI16), Scheme::kGptq);
  EXPECT_EQ(scheme_of(Dtype::kF16), Scheme::kAwqGemvFast);
}

TEST(SchemeDetection, AsksTheConfigurationWhereShapesFitGemvAndGptq) {
  // 128 inputs and outputs in groups of 64, as AutoAWQ pads the scales.
  Fixture fixture({tensor("m.qweight", Dtype::kI32, {128, 16}),
                   tensor("m.scales", Dtype::kF16, {128, 16}),
                   tensor("m.qzeros", Dtype::kI32, {128, 2})});
  EXPECT_EQ(detect_scheme(fixture.view), Scheme::kGptq);
  fixture.view.method = "awq";
  EXPECT_EQ(detect_scheme(fixture.view), Scheme::kAwqGemv);
  fixture.view.method = "gptqmodel";
  QuantizationConfig::Scheme claim;
  claim.format = "gptq_v2";
  fixture.view.claim = &claim;
  EXPECT_EQ(detect_scheme(fixture.view), Scheme::kGptq);
  claim.format = "gemv";
  EXPECT_EQ(detect_scheme(fixture.view), Scheme::kAwqGemv);
}

TEST(SchemeDetection, NamesWhatIsMissing) {
  const Fixture packed({tensor("m.weight_packed", Dtype::kI32, {8, 4})});
  EXPECT_THAT(missing_companions(detect_scheme(packed.view), packed.view),
              ElementsAre(Suffix::kWeightScale, Suffix::kWeightShape));
  const Fixture mlx(
      {tensor("m.weight", Dtype::kU32, {8, 8}), tensor("m.scales", Dtype::kF16, {8, 1})});
  EXPECT_THAT(missing_companions(detect_scheme(mlx.view), mlx.view), ElementsAre(Suffix::kBiases));
  const Fixture plain({tensor("m.weight", Dtype::kBF16, {8, 8})});
  EXPECT_THAT(missing_companions(Scheme::kPlain, plain.view), IsEmpty());
}

TEST(SchemeDetection, WantsZeroPointsWhereTheClaimIsAsymmetric) {
  Fixture gptq(
      {tensor("m.qweight", Dtype::kI32, {8, 16}), tensor("m.scales", Dtype::kF16, {2, 16})});
  EXPECT_THAT(missing_companions(Scheme::kGptq, gptq.view), IsEmpty());
  QuantizationConfig::Scheme claim;
  claim.symmetric = false;
  gptq.view.claim = &claim;
  EXPECT_THAT(missing_companions(Scheme::kGptq, gptq.view), ElementsAre(Suffix::kQzeros));
}

TEST(SchemeDetection, TellsWhatEachTensorIs) {
  EXPECT_EQ(storage_of_suffix(Scheme::kPlain, Suffix::kWeight), Storage::kWeight);
  EXPECT_EQ(storage_of_suffix(Scheme::kMlxAffine, Suffix::kWeight), Storage::kPackedWeight);
  EXPECT_EQ(storage_of_suffix(Scheme::kMlxAffine, Suffix::kBiases), Storage::kZeroPoint);
  EXPECT_EQ(storage_of_suffix(Scheme::kGptq, Suffix::kGroupIndex), Storage::kGroupIndex);
  EXPECT_EQ(storage_of_suffix(Scheme::kCtPackQuantized, Suffix::kWeightShape), Storage::kShape);
  EXPECT_EQ(storage_of_suffix(Scheme::kPlain, Suffix::kActivation), Storage::kBuffer);
}

TEST(SchemeDetection, LetsOrdinaryParametersGo) {
  EXPECT_FALSE(belongs_to(Scheme::kPlain, Suffix::kScale));
  EXPECT_TRUE(belongs_to(Scheme::kFp8Scaled, Suffix::kScale));
  EXPECT_FALSE(belongs_to(Scheme::kPlain, Suffix::kBlocks));
  EXPECT_TRUE(belongs_to(Scheme::kPlain, Suffix::kBias));
}

}  // namespace
}  // namespace gridscope::model
