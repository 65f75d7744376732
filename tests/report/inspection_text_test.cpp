#include <gmock/gmock.h>

#include <algorithm>

#include "gridscope/report/inspection_report.hpp"
#include "report/sample_inspections.hpp"

namespace gridscope::report {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(InspectionText, OpensWithModelAndStorageAndEndsWithWhatWasRead) {
  EXPECT_THAT(
      inspection_text(test::e2b_inspection()),
      AllOf(StartsWith("google/gemma-4-E2B-it-qat-w4a16-ct @ main (commit 1234567): gemma4, "
                       "safetensors, 1 file, 8.316 GB (7.745 GiB); compressed-tensors "
                       "pack-quantized int4, group 32, symmetric\n\n"),
            HasSubstr("\npart "), HasSubstr("\ntotal "),
            EndsWith("\nRead: 3 requests, 393,216 bytes (384.0 KiB), 0.125 seconds, 1 "
                     "cache hit\n")));
}

TEST(InspectionText, NamesAFewTensorsOfAFindingAndCountsTheRest) {
  EXPECT_THAT(inspection_text(test::small_inspection()),
              HasSubstr("warning INDEX_PHANTOM_TENSOR: the index names 250 tensors that no shard "
                        "holds\n"
                        "  remedy: write the index anew\n"
                        "  tensors: gone.0, gone.1, gone.2 and 247 more\n"));
}

TEST(InspectionText, LeavesOutWhatAFindingDoesNotHave) {
  EXPECT_THAT(inspection_text(test::small_inspection()),
              HasSubstr("note INDEX_TOTAL_SIZE: the index gives 1 byte, the shards hold 161,028\n"
                        "\nRead: "));
}

TEST(InspectionText, ListsTensorsOnlyWhenThereAreAny) {
  EXPECT_THAT(inspection_text(test::small_inspection()), HasSubstr("\nmodel.norm.weight "));
  EXPECT_THAT(inspection_text(test::e2b_inspection()), Not(HasSubstr("lm_head.weight  ")));
}

TEST(InspectionText, KeepsForeignStringsOffTheTerminal) {
  const std::string clean = inspection_text(test::small_inspection());
  const std::string text = inspection_text(test::hostile_inspection());
  EXPECT_EQ(std::ranges::count(text, '\n'), std::ranges::count(clean, '\n'));
  EXPECT_TRUE(std::ranges::none_of(text, [](char c) {
    return c != '\n' && (static_cast<unsigned char>(c) < 0x20 || c == '\x7F');
  }));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("\xC2\x9B")), Not(HasSubstr("\xE2\x80\xAE")),
                          HasSubstr("\\x1B[2J")));
}

}  // namespace
}  // namespace gridscope::report
