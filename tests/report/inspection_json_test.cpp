#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "gridscope/report/inspection_report.hpp"
#include "report/json_schema.hpp"
#include "report/sample_inspections.hpp"
#include "support/matchers.hpp"

namespace gridscope::report {
namespace {

using analysis::GroupBy;
using analysis::Inspection;
using analysis::InspectOptions;
using nlohmann::json;
using test::Fails;
using test::IsOk;
using test::schema_errors;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

json schema() {
  return json::parse(std::ifstream(std::filesystem::path(GRIDSCOPE_SOURCE_DIR) / "reports" /
                                   "schema" / "inspection-1.schema.json"));
}

json written(const Inspection& inspection) {
  return json::parse(inspection_json(inspection));
}

std::vector<Inspection> samples() {
  std::vector<Inspection> samples = {Inspection{}, test::small_inspection(),
                                     test::hostile_inspection()};
  for (const GroupBy by :
       {GroupBy::kPart, GroupBy::kRole, GroupBy::kDtype, GroupBy::kLayer, GroupBy::kFile}) {
    samples.push_back(test::e2b_inspection({.by = by}));
  }
  samples[0].kind = "disk";
  samples[0].container = "unknown";
  samples.push_back(test::e2b_inspection({.tensors = InspectOptions::Tensors::kList}));
  return samples;
}

TEST(InspectionJson, HasTheMembersInTheOrderOfTheSchema) {
  const auto root = nlohmann::ordered_json::parse(inspection_json(test::e2b_inspection()));
  std::vector<std::string> keys;
  for (const auto& [key, value] : root.items()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("schema", "model", "container", "architecture", "quantization",
                                "totals", "parts", "roles", "findings", "reads"));
}

TEST(InspectionJson, WritesTheFigures) {
  const json root = written(test::e2b_inspection());
  EXPECT_EQ(root["schema"], "gridscope.inspection/1");
  EXPECT_EQ(root["quantization"], json({{"method", "compressed-tensors"},
                                        {"format", "pack-quantized"},
                                        {"bits", 4},
                                        {"group_size", 32},
                                        {"symmetric", true},
                                        {"config_source", "config.json quantization_config"}}));
  EXPECT_EQ(root["totals"]["tensor_bytes"], 8'315'979'014U);
  EXPECT_EQ(root["parts"][2]["part"], "transformer_body");
  EXPECT_EQ(root["parts"][2]["tensors"], 1090);
  EXPECT_EQ(root["parts"][2]["dtypes"], json({{"BF16", 538}, {"I32", 276}, {"I64", 276}}));
  EXPECT_EQ(root["findings"][0]["bytes"], 805'306'368U);
  EXPECT_EQ(root["findings"][0]["tensors"], json({"lm_head.weight"}));
  EXPECT_EQ(root["findings"][0]["tensor_count"], 1);
  EXPECT_EQ(root["reads"],
            json({{"requests", 3}, {"bytes", 393'216}, {"cache_hits", 1}, {"seconds", 0.125}}));
}

TEST(InspectionJson, DividesRolesIntoPartRoleAndStorage) {
  const json root = written(test::e2b_inspection());
  const auto scales = std::ranges::find_if(root["roles"], [](const json& row) {
    return row["part"] == "transformer_body" && row["role"] == "attention" &&
           row["storage"] == "scales";
  });
  ASSERT_NE(scales, root["roles"].end());
  EXPECT_EQ((*scales)["bytes"], 17'399'808);
  EXPECT_EQ((*scales)["stored_as"], "BF16");
}

TEST(InspectionJson, HasGroupsAndTensorsOnlyWhenAskedFor) {
  const json plain = written(test::e2b_inspection());
  EXPECT_FALSE(plain.contains("groups"));
  EXPECT_FALSE(plain.contains("tensors"));
  const json full = written(test::small_inspection());
  EXPECT_EQ(full["groups"]["by"], "layer");
  EXPECT_EQ(full["groups"]["rows"][0]["key"], "transformer_body/0");
  EXPECT_EQ(full["tensors"][1]["shape"], json({256, 64}));
  EXPECT_EQ(written(Inspection{.lists_tensors = true})["tensors"], json::array());
}

TEST(InspectionJson, CapsTheTensorsOfAFindingAndCountsThemAll) {
  const json root = written(test::small_inspection());
  EXPECT_EQ(root["findings"][1]["tensors"].size(), Finding::kMaxTensorsNamed);
  EXPECT_EQ(root["findings"][1]["tensor_count"], 250);
}

TEST(InspectionJson, FitsItsSchema) {
  const json rules = schema();
  for (const Inspection& inspection : samples()) {
    EXPECT_THAT(schema_errors(rules, written(inspection)), IsEmpty());
  }
}

TEST(InspectionSchema, RefusesWhatIsMissingForeignOrOfAnotherType) {
  const json rules = schema();
  const auto errors_after = [&](const std::function<void(json&)>& change) {
    json root = written(test::small_inspection());
    change(root);
    return schema_errors(rules, root);
  };
  EXPECT_THAT(errors_after([](json& root) { root.erase("reads"); }), Not(IsEmpty()));
  EXPECT_THAT(errors_after([](json& root) { root["extra"] = 1; }), Not(IsEmpty()));
  EXPECT_THAT(errors_after([](json& root) { root["parts"][0]["extra"] = 1; }), Not(IsEmpty()));
  EXPECT_THAT(errors_after([](json& root) { root["parts"][0].erase("share"); }), Not(IsEmpty()));
  EXPECT_THAT(errors_after([](json& root) { root["roles"][0].erase("storage"); }), Not(IsEmpty()));
  EXPECT_THAT(errors_after([](json& root) { root["totals"]["tensors"] = -1; }), Not(IsEmpty()));
  EXPECT_THAT(errors_after([](json& root) { root["totals"]["tensors"] = 1.5; }), Not(IsEmpty()));
  EXPECT_THAT(errors_after([](json& root) { root["schema"] = "gridscope.inspection/2"; }),
              Not(IsEmpty()));
  EXPECT_THAT(errors_after([](json& root) { root["findings"][0]["severity"] = "bad"; }),
              Not(IsEmpty()));
  EXPECT_THAT(errors_after([](json& root) { root["quantization"] = 4; }), Not(IsEmpty()));
  EXPECT_THAT(errors_after([](json&) {}), IsEmpty());
}

TEST(ParseInspection, ReadsBackWhatWasWritten) {
  for (const Inspection& inspection : samples()) {
    const Result<Inspection> read = parse_inspection(inspection_json(inspection));
    ASSERT_THAT(read, IsOk());
    EXPECT_TRUE(*read == inspection) << inspection_json(inspection).substr(0, 2000);
  }
}

TEST(ParseInspection, ReadsBackEveryKindOfQuantization) {
  Inspection inspection = test::small_inspection();
  for (const std::optional<std::int64_t> group_size : {std::optional<std::int64_t>(-1), {}}) {
    inspection.quantization = analysis::QuantizationSummary{.method = "x",
                                                            .format = "",
                                                            .bits = std::nullopt,
                                                            .group_size = group_size,
                                                            .symmetric = false,
                                                            .config_source = ""};
    const Result<Inspection> read = parse_inspection(inspection_json(inspection));
    ASSERT_THAT(read, IsOk());
    EXPECT_EQ(read->quantization, inspection.quantization);
  }
}

TEST(ParseInspection, KeepsTheLargestNumbers) {
  Inspection inspection = test::small_inspection();
  inspection.file_bytes = std::numeric_limits<std::uint64_t>::max();
  inspection.tensors[0].shape = {std::numeric_limits<std::uint64_t>::max(), 0};
  EXPECT_TRUE(parse_inspection(inspection_json(inspection)).value() == inspection);
}

TEST(ParseInspection, RefusesOtherSchemas) {
  EXPECT_THAT(parse_inspection(R"({"schema": "gridscope.lint/1"})"),
              Fails(ErrorCode::kUnsupported, HasSubstr("gridscope.lint/1")));
  EXPECT_THAT(parse_inspection(R"({"schema": 1})"),
              Fails(ErrorCode::kCorrupt, HasSubstr("schema")));
  EXPECT_THAT(parse_inspection("[]"), Fails(ErrorCode::kCorrupt, HasSubstr("schema")));
  EXPECT_THAT(parse_inspection("{"), Fails(ErrorCode::kCorrupt, HasSubstr("JSON")));
}

// Whatever member is taken away or turned into something else, reading says which it was.
TEST(ParseInspection, NamesTheMemberThatIsWrong) {
  Inspection inspection = test::small_inspection();
  inspection.findings.resize(1);
  const json sample = written(inspection);
  const json leaves = sample.flatten();
  for (const auto& [pointer, value] : leaves.items()) {
    if (pointer == "/schema") continue;
    const json::json_pointer place(pointer);
    json root = sample;
    root[place] = json::array({true});
    EXPECT_THAT(parse_inspection(root.dump()),
                Fails(ErrorCode::kCorrupt, HasSubstr("inspection report: ")))
        << pointer;
    if (root[place.parent_pointer()].is_array() || pointer.find("/dtypes/") != std::string::npos) {
      continue;
    }
    root[place.parent_pointer()].erase(place.back());
    EXPECT_THAT(parse_inspection(root.dump()),
                Fails(ErrorCode::kCorrupt, HasSubstr(place.back() + "\" is not present")))
        << pointer;
  }
}

TEST(ParseInspection, RefusesNumbersThatDoNotFit) {
  json root = written(test::e2b_inspection());
  root["quantization"]["bits"] = 1ULL << 32;
  EXPECT_THAT(parse_inspection(root.dump()),
              Fails(ErrorCode::kCorrupt, HasSubstr("quantization.bits")));
  root = written(test::e2b_inspection());
  root["quantization"]["group_size"] = std::numeric_limits<std::uint64_t>::max();
  EXPECT_THAT(parse_inspection(root.dump()),
              Fails(ErrorCode::kCorrupt, HasSubstr("quantization.group_size")));
}

// GGUF names are bytes; JSON is UTF-8.
TEST(InspectionJson, ReplacesWhatIsNoUtf8) {
  Inspection inspection = test::small_inspection();
  inspection.tensors[0].name = "a\xFFz";
  EXPECT_EQ(parse_inspection(inspection_json(inspection))->tensors[0].name, "a\xEF\xBF\xBDz");
}

}  // namespace
}  // namespace gridscope::report
