#include "gridscope/report/inspection_view.hpp"

#include <gmock/gmock.h>

#include "report/sample_inspections.hpp"

namespace gridscope::report {
namespace {

using analysis::GroupBy;
using analysis::Inspection;
using analysis::QuantizationSummary;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Pair;
using ::testing::SizeIs;

TEST(ModelTitle, NamesRevisionAndCommit) {
  Inspection inspection{.reference = "org/name"};
  EXPECT_EQ(model_title(inspection), "org/name");
  inspection.revision = "main";
  inspection.commit = "1234567890abcdef1234567890abcdef12345678";
  EXPECT_EQ(model_title(inspection), "org/name @ main (commit 1234567)");
}

TEST(ModelTitle, SaysTheRevisionOnce) {
  Inspection inspection{.reference = "hf://org/name@v1"};
  inspection.revision = "v1";
  EXPECT_EQ(model_title(inspection), "hf://org/name@v1");
  inspection.reference = "org/name";
  inspection.revision = inspection.commit = "1234567890abcdef1234567890abcdef12345678";
  EXPECT_EQ(model_title(inspection), "org/name (commit 1234567)");
}

TEST(StorageSummary, NamesModelContainerSizeAndQuantization) {
  EXPECT_EQ(storage_summary(test::e2b_inspection()),
            "gemma4, safetensors, 1 file, 8.316 GB (7.745 GiB); compressed-tensors pack-quantized "
            "int4, group 32, symmetric");
}

TEST(StorageSummary, NamesTheTypesOfPlainTensors) {
  EXPECT_EQ(storage_summary(test::small_inspection()),
            "TinyForCausalLM, safetensors, 2 files, 0.163 MB (0.156 MiB); not quantized (BF16, "
            "F32)");
}

TEST(StorageSummary, SaysNothingOfTensorsThatAreNotRead) {
  const Inspection inspection{.container = "litertlm", .files = 1, .file_bytes = 3'000'000'000};
  EXPECT_EQ(storage_summary(inspection), "litertlm, 1 file, 3.000 GB (2.794 GiB)");
}

TEST(StorageSummary, PutsEveryKindOfQuantizationIntoWords) {
  const auto summary = [](QuantizationSummary quantization) {
    const Inspection inspection{.quantization = std::move(quantization), .tensor_count = 1};
    const std::string text = storage_summary(inspection);
    return text.substr(text.find("; ") + 2);
  };
  EXPECT_EQ(summary({"gguf", "Q4_K", {}, {}, {}, ""}), "gguf Q4_K");
  EXPECT_EQ(summary({"gguf", "MXFP4", 4, 32, {}, ""}), "gguf MXFP4");
  EXPECT_EQ(summary({"gptq", "gptq", 4, 128, {}, ""}), "gptq int4, group 128");
  EXPECT_EQ(summary({"mxfp4", "gpt_oss_mxfp4", 4, 32, {}, ""}), "gpt_oss_mxfp4 4-bit, group 32");
  EXPECT_EQ(summary({"exl3", "exl3", 4, {}, {}, ""}), "exl3 4-bit");
  EXPECT_EQ(summary({"bitsandbytes", "int8", 8, {}, {}, ""}), "bitsandbytes int8");
  EXPECT_EQ(summary({"modelopt", "MXFP4", 4, 32, {}, ""}), "modelopt MXFP4 4-bit, group 32");
  EXPECT_EQ(summary({"modelopt", "mixed_precision", 8, {}, {}, ""}),
            "modelopt mixed_precision 8-bit");
  EXPECT_EQ(summary({"fp8", "", 8, 128, {}, ""}), "fp8 8-bit, group 128");
  EXPECT_EQ(summary({"compressed-tensors", "int-quantized", 8, -1, false, ""}),
            "compressed-tensors int-quantized int8, a group per row, asymmetric");
  EXPECT_EQ(summary({"bitsandbytes", "nf4", 4, 64, {}, ""}), "bitsandbytes nf4 4-bit, group 64");
}

TEST(RowTable, PrintsThePublishedFigures) {
  const TextTable table = row_table(test::e2b_inspection());
  ASSERT_THAT(table.rows, SizeIs(5));
  EXPECT_THAT(table.rows[0], ElementsAre("per-layer embedding", "4.698", "4.375", "56.5%", "1",
                                         "2,348,810,240", "16.00", "BF16"));
  EXPECT_THAT(table.rows[1], ElementsAre("vocabulary embedding", "1.611", "1.500", "19.4%", "2",
                                         "805,306,368", "16.00", "BF16"));
  EXPECT_THAT(table.rows[2], ElementsAre("transformer body", "1.056", "0.984", "12.7%", "1,090",
                                         "1,877,105,955", "4.50", "int4 g32, BF16 scales + BF16"));
  EXPECT_THAT(table.rows[3], ElementsAre("audio tower", "0.614", "0.572", "7.4%", "752",
                                         "307,184,384", "16.00", "BF16"));
  EXPECT_THAT(table.rows[4], ElementsAre("vision tower", "0.337", "0.314", "4.1%", "659",
                                         "168,544,704", "16.00", "BF16"));
  EXPECT_THAT(table.total, ElementsAre("total", "8.316", "7.745", "100.0%", "2,504",
                                       "5,506,951,651", "12.08", ""));
}

TEST(RowTable, ShowsTheDivisionThatWasAskedFor) {
  const auto titles = [](GroupBy by) {
    const TextTable table = row_table(test::e2b_inspection({.by = by}));
    return std::pair(table.columns[0].title, table.rows.front().front());
  };
  EXPECT_THAT(titles(GroupBy::kPart), Pair("part", "per-layer embedding"));
  EXPECT_THAT(titles(GroupBy::kRole), Pair("role", EndsWith("per-layer embedding, weights")));
  EXPECT_THAT(titles(GroupBy::kDtype), Pair("dtype", "BF16"));
  EXPECT_THAT(titles(GroupBy::kLayer), Pair("layer", "transformer body layer 0"));
  EXPECT_THAT(titles(GroupBy::kFile), Pair("file", "model.safetensors"));
}

TEST(RowTable, ShowsSmallModelsInSmallerUnits) {
  const TextTable table = row_table(test::small_inspection());
  EXPECT_EQ(table.columns[1].title, "MB");
  EXPECT_EQ(table.columns[2].title, "MiB");
  EXPECT_EQ(table.total[1], "0.161");
  EXPECT_EQ(table.total[2], "0.154");
  EXPECT_EQ(row_table(test::e2b_inspection()).columns[1].title, "GB");
  EXPECT_EQ(row_table({.tensor_bytes = 100'000'000}).columns[2].title, "GiB");
  EXPECT_EQ(row_table({.tensor_bytes = 99'999'999}).columns[2].title, "MiB");
}

TEST(RowTable, HasNoBitsPerWeightWithoutWeights) {
  const TextTable table = row_table(Inspection{});
  EXPECT_THAT(table.total, ElementsAre("total", "0.000", "0.000", "0.0%", "0", "-", "-", ""));
}

TEST(RowTable, HasNoBitsPerWeightWhereNotAllParametersAreKnown) {
  Inspection inspection{.tensor_bytes = 2000, .parameters = 10};
  analysis::InspectionRow& body = inspection.parts.emplace_back();
  body.bytes = 2000;
  body.parameters = 10;
  const TextTable table = row_table(inspection);
  EXPECT_EQ(table.rows.at(0).at(6), "-");
  EXPECT_EQ(table.total.at(5), "10");
  EXPECT_EQ(table.total.at(6), "-");
}

TEST(TensorTable, ListsEveryTensor) {
  const TextTable table = tensor_table(test::small_inspection());
  ASSERT_THAT(table.rows, SizeIs(4));
  EXPECT_THAT(table.rows[1],
              ElementsAre("model.layers.0.mlp.up_proj.weight", "BF16", "256x64", "32,768", "1,024",
                          "transformer_body", "mlp", "model-00002-of-00002.safetensors"));
  EXPECT_EQ(table.rows[2][2], "scalar");
}

}  // namespace
}  // namespace gridscope::report
