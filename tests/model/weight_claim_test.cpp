#include "gridscope/model/weight_claim.hpp"

#include <gmock/gmock.h>

#include "support/matchers.hpp"

namespace gridscope::model {
namespace {

using quant::WeightSpec;
using ::testing::ElementsAre;

QuantizationConfig config_of(std::string_view object) {
  const auto root = parse_json(R"({"quantization_config": )" + std::string(object) + "}");
  EXPECT_THAT(root, test::IsOk());
  return quantization_from_config(root.value_or(JsonValue())).value_or(QuantizationConfig());
}

// The spec of a weight for which the first scheme of the configuration holds.
WeightSpec claimed(quant::Scheme scheme, std::string_view object) {
  const QuantizationConfig config = config_of(object);
  WeightSpec spec{.scheme = scheme};
  apply_claim(config, config.schemes.empty() ? nullptr : &config.schemes.front(), spec);
  return spec;
}

TEST(WeightClaim, TellsTheTwoVersionsOfGptqApart) {
  const auto gptq = [](std::string_view rest) {
    return claimed(quant::Scheme::kGptq,
                   R"({"quant_method": "gptq", "group_size": 128, )" + std::string(rest) + "}");
  };
  const WeightSpec v1 = gptq(R"("bits": 4, "sym": true, "checkpoint_format": "gptq")");
  EXPECT_EQ(v1.gptq_zeros, WeightSpec::GptqZeros::kMinusOne);
  EXPECT_EQ(v1.gptq_packing, WeightSpec::GptqPacking::kBitstream);
  EXPECT_EQ(v1.bits, 4U);
  EXPECT_EQ(v1.group_size, 128);
  EXPECT_EQ(v1.symmetric, true);
  EXPECT_EQ(v1.act_order, std::nullopt);
  EXPECT_EQ(gptq(R"("bits": 4, "desc_act": true)").act_order, true);
  EXPECT_EQ(gptq(R"("bits": 4, "desc_act": false)").act_order, false);
  EXPECT_EQ(gptq(R"("bits": 4)").gptq_zeros, WeightSpec::GptqZeros::kMinusOne);
  EXPECT_EQ(gptq(R"("bits": 4, "checkpoint_format": "gptq_v2")").gptq_zeros,
            WeightSpec::GptqZeros::kAsStored);
  const WeightSpec planar = gptq(R"("bits": 3, "checkpoint_format": "gptq_p")");
  EXPECT_EQ(planar.gptq_zeros, WeightSpec::GptqZeros::kAsStored);
  EXPECT_EQ(planar.gptq_packing, WeightSpec::GptqPacking::kPlanar);
  EXPECT_EQ(gptq(R"("bits": 6)").gptq_packing, WeightSpec::GptqPacking::kPlanar);
}

TEST(WeightClaim, ReadsAutoRoundsPackings) {
  const auto round = [](quant::Scheme scheme, std::string_view packing) {
    return claimed(scheme, R"({"quant_method": "auto-round", "bits": 4, "group_size": 128,
      "sym": true, "packing_format": ")" +
                               std::string(packing) + R"("})");
  };
  const WeightSpec gptq = round(quant::Scheme::kGptq, "auto_round:auto_gptq");
  EXPECT_EQ(gptq.gptq_zeros, WeightSpec::GptqZeros::kMinusOne);
  EXPECT_EQ(gptq.format, "auto_round:auto_gptq");
  EXPECT_EQ(round(quant::Scheme::kAwqGemm, "auto_round:auto_awq").bits, 4U);
}

TEST(WeightClaim, TellsTheTwoPackingsOfCompressedTensorsApart) {
  const auto packing = [](std::string_view version) {
    return claimed(quant::Scheme::kCtPackQuantized,
                   R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
      "version": ")" + std::string(version) +
                       R"(", "config_groups": {"g": {"targets": ["Linear"],
      "weights": {"num_bits": 3, "group_size": 32, "symmetric": false}}}})")
        .ct_packing;
  };
  EXPECT_EQ(packing("0.17.0"), WeightSpec::CtPacking::kDense);
  EXPECT_EQ(packing("1.0"), WeightSpec::CtPacking::kDense);
  EXPECT_EQ(packing("0.16.1.a20260101"), WeightSpec::CtPacking::kWholeCodes);
  EXPECT_EQ(packing("0.9.4"), WeightSpec::CtPacking::kWholeCodes);
  for (const char* odd : {"", "17", "0.x", "x"}) {
    EXPECT_EQ(packing(odd), WeightSpec::CtPacking::kUnknown) << odd;
  }
}

TEST(WeightClaim, PassesOnBlocksFormatsAndTheUseOfScales) {
  const WeightSpec fp8 = claimed(quant::Scheme::kFp8Block, R"({"quant_method": "fp8",
    "weight_block_size": [128, 64], "weight_scale_semantics": "inverse"})");
  EXPECT_THAT(fp8.block, ElementsAre(128, 64));
  EXPECT_EQ(fp8.scale_use, WeightSpec::ScaleUse::kDivide);
  const WeightSpec bnb = claimed(quant::Scheme::kBnbNf4, R"({"quant_method": "bitsandbytes",
    "load_in_4bit": true, "bnb_4bit_quant_type": "nf4"})");
  EXPECT_EQ(bnb.format, "nf4");
}

TEST(WeightClaim, LeavesOpenWhatNoSchemeSays) {
  WeightSpec spec{.scheme = quant::Scheme::kGptq};
  QuantizationConfig config;
  config.format = "gptq_v2";
  apply_claim(config, nullptr, spec);
  EXPECT_EQ(spec.bits, 0U);
  EXPECT_EQ(spec.group_size, 0);
  EXPECT_EQ(spec.symmetric, std::nullopt);
  EXPECT_EQ(spec.gptq_zeros, WeightSpec::GptqZeros::kAsStored);
}

}  // namespace
}  // namespace gridscope::model
