#include "gridscope/model/quantization.hpp"

#include <gmock/gmock.h>

#include "support/matchers.hpp"

namespace gridscope::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

JsonValue json(std::string_view text) {
  auto value = parse_json(text);
  EXPECT_THAT(value, test::IsOk());
  return value ? *std::move(value) : JsonValue();
}

QuantizationConfig read(std::string_view text) {
  const auto config = quantization_from_config(json(text));
  EXPECT_TRUE(config.has_value()) << text;
  return config.value_or(QuantizationConfig());
}

QuantizationConfig side(std::string_view file, std::string_view text) {
  const auto config = quantization_from_side_file(file, json(text));
  EXPECT_TRUE(config.has_value()) << text;
  return config.value_or(QuantizationConfig());
}

TEST(Quantization, ReadsCompressedTensors) {
  const auto config = read(R"({"quantization_config": {"quant_method": "compressed-tensors",
    "format": "pack-quantized", "ignore": ["lm_head", "re:.*router"],
    "config_groups": {"group_0": {"targets": ["Linear"], "format": null, "input_activations": null,
      "weights": {"num_bits": 4, "type": "int", "symmetric": true, "group_size": 32, "strategy": "group"}}}}})");
  EXPECT_EQ(config.method, "compressed-tensors");
  EXPECT_EQ(config.format, "pack-quantized");
  EXPECT_EQ(config.bits, 4U);
  EXPECT_EQ(config.group_size, 32);
  EXPECT_EQ(config.symmetric, true);
  EXPECT_EQ(config.config_source, "config.json quantization_config");
  EXPECT_THAT(config.ignore, ElementsAre("lm_head", "re:.*router"));
  ASSERT_THAT(config.schemes, SizeIs(1));
  EXPECT_EQ(config.schemes[0].format, "pack-quantized");
}

TEST(Quantization, InfersFormatsAndStrategiesOfGroups) {
  const auto scheme = [](const std::string& weights, const char* activations = "null") {
    const auto config = read(R"({"quantization_config": {"quant_method": "compressed-tensors",
      "config_groups": {"g": {"targets": ["Linear"], "input_activations": )" +
                             std::string(activations) + R"(, "weights": {)" + weights + "}}}}}");
    return config.schemes.at(0);
  };
  EXPECT_EQ(scheme(R"("num_bits": 4, "type": "float", "group_size": 16)").format,
            "nvfp4-pack-quantized");
  EXPECT_EQ(scheme(R"("num_bits": 4, "type": "float", "group_size": 32)").format,
            "mxfp4-pack-quantized");
  EXPECT_EQ(scheme(R"("num_bits": 8, "type": "float")", "{}").format, "float-quantized");
  EXPECT_EQ(scheme(R"("num_bits": 8, "type": "int")", "{}").format, "int-quantized");
  EXPECT_EQ(scheme(R"("num_bits": 8, "type": "float")").format, "naive-quantized");
  EXPECT_EQ(scheme(R"("num_bits": 8, "strategy": "channel")").group_size, -1);
  EXPECT_EQ(scheme(R"("num_bits": 8, "strategy": "tensor")").group_size, 0);
  EXPECT_EQ(scheme(R"("strategy": "block", "block_structure": [64, 128])").group_size, 128);
  EXPECT_EQ(scheme(R"("type": "int")").bits, 8U);
}

TEST(Quantization, ReadsBlocksVersionsAndTheMeaningOfScales) {
  const auto fp8 = read(R"({"quantization_config": {"quant_method": "fp8",
    "weight_block_size": [64, 128], "weight_scale_semantics": "inverse"}})");
  ASSERT_THAT(fp8.schemes, SizeIs(1));
  EXPECT_THAT(fp8.schemes[0].block, ElementsAre(64, 128));
  EXPECT_EQ(fp8.schemes[0].group_size, 128);
  EXPECT_TRUE(fp8.schemes[0].divides_by_scale);
  const auto packed = read(R"({"quantization_config": {"quant_method": "compressed-tensors",
    "version": "0.17.1", "config_groups": {"g": {"targets": ["Linear"], "weights":
    {"num_bits": 8, "strategy": "block", "block_structure": [16, 32]}}}}})");
  EXPECT_EQ(packed.version, "0.17.1");
  EXPECT_THAT(packed.schemes[0].block, ElementsAre(16, 32));
  EXPECT_FALSE(packed.schemes[0].divides_by_scale);
  const auto odd = read(R"({"quantization_config": {"quant_method": "fp8",
    "weight_block_size": [0, 128]}})");
  EXPECT_THAT(odd.schemes[0].block, ElementsAre(0, 0));
}

TEST(Quantization, ReadsPresetsAndSkipsGroupsWithoutWeights) {
  const auto config = read(R"({"quantization_config": {"quant_method": "compressed-tensors",
    "config_groups": {"W4A16": ["Linear"], "kv": {"targets": ["x"], "weights": null}}}})");
  ASSERT_THAT(config.schemes, SizeIs(1));
  EXPECT_EQ(config.schemes[0].bits, 4U);
  EXPECT_THAT(config.schemes[0].targets, ElementsAre("Linear"));
}

TEST(Quantization, LiftsOnlyWhatAllSchemesShare) {
  const auto config = read(R"({"quantization_config": {"quant_method": "compressed-tensors",
    "config_groups": {"a": {"targets": ["x"], "weights": {"num_bits": 4, "group_size": 32}},
                      "b": {"targets": ["y"], "weights": {"num_bits": 8, "group_size": 32}}}}})");
  EXPECT_EQ(config.bits, std::nullopt);
  EXPECT_EQ(config.group_size, 32);
}

TEST(Quantization, LooksInTheOrderOfTheLoaders) {
  EXPECT_EQ(read(R"({"text_config": {"quantization_config": {"quant_method": "awq"}},
                     "compression_config": {"quant_method": "x"}})")
                .config_source,
            "config.json text_config.quantization_config");
  EXPECT_EQ(read(R"({"compression_config": {"format": "pack-quantized"}})").method,
            "compressed-tensors");
  const auto mlx = read(R"({"quantization": {"group_size": 64, "bits": 4},
                            "quantization_config": {"group_size": 64, "bits": 4}})");
  EXPECT_EQ(mlx.method, "mlx");
  EXPECT_EQ(mlx.config_source, "config.json quantization");
  EXPECT_FALSE(quantization_from_config(json("{}")));
  EXPECT_FALSE(quantization_from_config(json(R"({"quantization_config": null})")));
  EXPECT_FALSE(quantization_from_config(json("[]")));
}

TEST(Quantization, KeepsAClaimWithoutMethodApart) {
  const auto config = read(R"({"quantization_config": {"bits": 4, "group_size": 32}})");
  EXPECT_EQ(config.method, "");
  EXPECT_EQ(config.bits, 4U);
}

TEST(Quantization, ReadsAwqUnderItsSynonyms) {
  const auto config = read(R"({"quantization_config": {"quant_method": "AWQ", "w_bit": 4,
    "q_group_size": 128, "zero_point": true, "version": "GEMM", "modules_to_not_convert": ["visual"]}})");
  EXPECT_EQ(config.method, "awq");
  EXPECT_EQ(config.format, "gemm");
  EXPECT_EQ(config.bits, 4U);
  EXPECT_EQ(config.group_size, 128);
  EXPECT_EQ(config.symmetric, false);
  EXPECT_TRUE(is_ignored(config, "model.visual.blocks.0.attn"));
  EXPECT_FALSE(is_ignored(config, "model.layers.0.mlp"));
}

TEST(Quantization, ReadsGptqWithItsDynamicRules) {
  const auto config = read(R"({"quantization_config": {"quant_method": "gptq", "bits": 4,
    "group_size": -1, "sym": true, "desc_act": true, "checkpoint_format": "gptq_v2",
    "dynamic": {"-:.*lm_head": {}, "+:.*down_proj": {"bits": 8, "group_size": 64}}}})");
  EXPECT_EQ(config.format, "gptq_v2");
  EXPECT_EQ(config.bits, std::nullopt);
  EXPECT_EQ(config.symmetric, true);
  ASSERT_THAT(config.schemes, SizeIs(2));
  EXPECT_EQ(config.schemes[0].group_size, -1);
  EXPECT_THAT(config.schemes[1].targets, ElementsAre("re:.*down_proj"));
  EXPECT_EQ(config.schemes[1].bits, 8U);
  EXPECT_TRUE(is_ignored(config, "lm_head"));
}

TEST(Quantization, ReadsTheOtherMethods) {
  const auto nf4 =
      read(R"({"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": true,
    "bnb_4bit_quant_type": "nf4", "llm_int8_skip_modules": ["lm_head"]}})");
  EXPECT_EQ(nf4.format, "nf4");
  EXPECT_EQ(nf4.bits, 4U);
  EXPECT_TRUE(is_ignored(nf4, "lm_head"));

  const auto int8 =
      read(R"({"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": true}})");
  EXPECT_EQ(int8.bits, 8U);

  const auto fp8 = read(R"({"quantization_config": {"quant_method": "fp8", "fmt": "e4m3",
    "weight_block_size": [128, 128], "modules_to_not_convert": ["model.layers.0.mlp.gate"]}})");
  EXPECT_EQ(fp8.format, "e4m3");
  EXPECT_EQ(fp8.group_size, 128);
  EXPECT_TRUE(is_ignored(fp8, "model.layers.0.mlp.gate"));
  EXPECT_FALSE(is_ignored(fp8, "model.layers.0.mlp.gate_proj"));

  const auto mxfp4 = read(R"({"quantization_config": {"quant_method": "mxfp4",
    "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}})");
  EXPECT_EQ(mxfp4.group_size, 32);
  EXPECT_TRUE(is_ignored(mxfp4, "model.layers.7.self_attn.q_proj"));
  EXPECT_FALSE(is_ignored(mxfp4, "model.layers.7.mlp.experts"));

  const auto torchao = read(R"({"quantization_config": {"quant_method": "torchao", "quant_type":
    {"default": {"_type": "Int4WeightOnlyConfig", "_data": {"group_size": 128}}}}})");
  EXPECT_EQ(torchao.bits, 4U);
  EXPECT_EQ(torchao.group_size, 128);

  const auto rounded = read(R"({"quantization_config": {"quant_method": "auto-round", "bits": 4,
    "group_size": 128, "sym": true, "packing_format": "auto_round:auto_gptq",
    "extra_config": {"model.layers.0.mlp.gate": {"bits": 16}, "lm_head": {"bits": 8}}}})");
  EXPECT_EQ(rounded.format, "auto_round:auto_gptq");
  EXPECT_THAT(rounded.ignore, ElementsAre("model.layers.0.mlp.gate"));
  ASSERT_THAT(rounded.schemes, SizeIs(2));

  const auto unknown = read(R"({"quantization_config": {"quant_method": "hqq", "bits": 3}})");
  EXPECT_EQ(unknown.method, "hqq");
  EXPECT_EQ(unknown.bits, 3U);
}

TEST(Quantization, ReadsMlxWithOverrides) {
  const auto config = read(R"({"quantization": {"group_size": 64, "bits": 4, "mode": "affine",
    "model.layers.0.router.proj": {"group_size": 64, "bits": 8}, "model.layers.1.mlp.gate_proj": false}})");
  EXPECT_EQ(config.format, "affine");
  ASSERT_THAT(config.schemes, SizeIs(2));
  EXPECT_EQ(config.schemes[1].bits, 8U);
  EXPECT_TRUE(is_ignored(config, "language_model.model.layers.1.mlp.gate_proj"));
}

TEST(Quantization, ReadsModelOptInBothForms) {
  const auto nested =
      side("hf_quant_config.json", R"({"producer": {"name": "modelopt"}, "quantization":
    {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head", "model.layers.0*"]}})");
  EXPECT_EQ(nested.method, "modelopt");
  EXPECT_EQ(nested.format, "nvfp4");
  EXPECT_EQ(nested.bits, 4U);
  EXPECT_EQ(nested.group_size, 16);
  EXPECT_TRUE(is_ignored(nested, "model.layers.0.mlp.up_proj"));
  EXPECT_FALSE(is_ignored(nested, "model.layers.1.mlp.up_proj"));

  const auto flat =
      read(R"({"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8",
                             "ignore": ["vision_tower.*"]}})");
  EXPECT_EQ(flat.bits, 8U);
  EXPECT_TRUE(is_ignored(flat, "model.vision_tower.encoder.layers.0.mlp"));

  const auto mixed =
      side("hf_quant_config.json", R"({"quantization": {"quant_algo": "MIXED_PRECISION",
    "quantized_layers": {"a": {"quant_algo": "W4A16_AWQ", "group_size": 128}, "b": {"quant_algo": "FP8"}}}})");
  ASSERT_THAT(mixed.schemes, SizeIs(2));
  EXPECT_EQ(mixed.schemes[0].group_size, 128);
  EXPECT_EQ(mixed.schemes[1].bits, 8U);
}

TEST(Quantization, ReadsTheSideFilesOfOlderTools) {
  EXPECT_EQ(side("quantize_config.json", R"({"bits": 4, "group_size": 128})").method, "gptq");
  EXPECT_EQ(side("quant_config.json", R"({"w_bit": 4, "q_group_size": 64, "zero_point": false})")
                .symmetric,
            true);
  EXPECT_EQ(side("params.json", R"({"quantization": {"qformat_weight": "fp8_e4m3"}})").method,
            "fp8");
  EXPECT_FALSE(quantization_from_side_file("params.json", json(R"({"dim": 4096})")));
  EXPECT_EQ(quantization_side_files().front(), "quantize_config.json");
}

TEST(Quantization, TakesNoHarmFromWrongTypes) {
  const auto config =
      read(R"({"quantization_config": {"quant_method": "compressed-tensors", "format": 7,
    "ignore": {"a": 1}, "config_groups": {"g": {"targets": "Linear", "weights": {"num_bits": "four",
    "group_size": -7, "symmetric": 1}}, "h": 3}}})");
  EXPECT_THAT(config.ignore, IsEmpty());
  ASSERT_THAT(config.schemes, SizeIs(1));
  EXPECT_EQ(config.schemes[0].group_size, std::nullopt);
  read(R"({"quantization_config": {"quant_method": "mlx", "bits": 99999999999}})");
  read(R"({"quantization_config": {"quant_method": "gptq", "dynamic": {"x": 3}}})");
}

}  // namespace
}  // namespace gridscope::model
